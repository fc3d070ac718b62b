/* Measuring messages between pairs of ranks, one pair or many at the same time.
 *
 * Each pair sets the length of its batches by itself, and stops when the budget is spent, whatever
 * its messages say (sample.h stops when an interval is narrow): all pairs of a round have to load
 * the network for as long, or the slower ones would be measured on an empty one.
 *
 * Payload: the last messages of each batch are checked whole, outside the time, and the buffers are
 * spoiled. The first batch is a single operation, so the first messages of a point are checked. */
#ifndef ASSAY_METER_H
#define ASSAY_METER_H

#include <mpi.h>

#include "json.h"
#include "memory.h"
#include "sample.h"

enum meter_pattern {
    PING_PONG, /* of one pair: a message there and one back; its time is half of that */
    EXCHANGE,  /* a window of messages both ways at once */
    ONE_WAY,   /* a window of messages, and an empty one back when all are there */
    PATTERNS,
};

struct meter {
    double budget; /* seconds of a point */
    long message;  /* number of the point on this rank: what its messages carry follows from it */
    struct memory_pool send, receive;
    struct sample_clocks clocks[PATTERNS]; /* of all batches of this rank */
};

/* Seconds of an operation, each the mean of a batch. */
struct timing {
    double best, median;
};

/* Writes "time", of which a rate was made. */
void meter_write_timing(const struct timing *timing);

/* Collective over MPI_COMM_WORLD: writes "clocks", an object for each pattern that was measured, summed
 * over all ranks. */
void meter_write_clocks(const struct meter *meter);

/* Messages of `size` bytes that are under way at once. */
int meter_window(enum meter_pattern pattern, size_t size);

/* Bytes of a meter's buffers for messages of two sizes, whatever the number of ranks. */
size_t meter_bytes(size_t small, size_t large);
struct meter meter_make(size_t small, size_t large, double budget);
void meter_free(struct meter *meter);

/* Collective over `comm` of an even number of ranks: those of the first half send first, each to
 * that of the second half with the same number there. The time of a batch is that of the slowest
 * rank; all ranks get the result. */
struct timing meter_measure(struct meter *meter, enum meter_pattern pattern, MPI_Comm comm,
                            size_t size);

#endif
