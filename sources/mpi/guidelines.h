/* Whether an operation takes longer than others that do the same, each pair measured in turn. */
#ifndef ASSAY_GUIDELINES_H
#define ASSAY_GUIDELINES_H

#include <stddef.h>

/* Bytes that a rank needs for messages of up to `largest` bytes. */
size_t guidelines_bytes(size_t largest);

/* Collective, like the next. `rounds`: that there will be. */
void guidelines_start(size_t largest, int rounds);
void guidelines_round(int round);

/* Before the first round: an operation's size that will be visited too, unless it is visited anyway or has
 * blocks that are longer together than `largest`. */
void guidelines_add(const char *operation, size_t size);

/* Of messages alone, whatever algorithm the MPI has for its own. */
void guidelines_barrier(void);

/* Into the JSON report; and a table of those that took longer in each round. */
void guidelines_end(void);

#endif
