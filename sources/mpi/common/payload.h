/* What messages carry: a pattern in which every byte follows from sender, message number and
 * offset, so that lost, stale, shifted, mixed up and damaged data are all seen.
 * Written and checked eight bytes at a time; always outside timed regions. */
#ifndef ASSAY_PAYLOAD_H
#define ASSAY_PAYLOAD_H

#include <stddef.h>

void payload_fill(void *buffer, size_t size, int sender, long message);

/* Writes the complement of what is expected, so that a message that never arrives is noticed. */
void payload_spoil(void *buffer, size_t size, int sender, long message);

/* Aborts with EXIT_WRONG_PAYLOAD and a sentence (rank, source, size, offset, expected, found,
 * hosts) when the buffer is not what `sender` filled. Ranks are those of MPI_COMM_WORLD. */
void payload_check(const void *buffer, size_t size, int sender, long message);

#endif
