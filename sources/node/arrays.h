/* The three arrays of STREAM on one rank, and its operations on them by the rank's threads. */
#ifndef ASSAY_ARRAYS_H
#define ASSAY_ARRAYS_H

#include <stdbool.h>
#include <stddef.h>

#include "two_clocks.h"
#include "vector_kernels.h"

struct arrays {
    double *a, *b, *c;
    size_t elements; /* of each */
    void *memory;
    size_t bytes; /* of all memory */
};

/* Memory that arrays of so many elements take. */
size_t arrays_bytes(size_t elements);

/* Each thread is the first to touch the part that it will compute, so that it lies in the thread's
 * NUMA domain. At least one cache line for each thread. False: not enough memory. */
bool arrays_take(struct arrays *arrays, size_t elements);
void arrays_return(struct arrays *arrays);

/* The calling thread's part of its team's arrays, on whole cache lines; maybe empty. */
struct arrays_part {
    size_t start, count;
};
struct arrays_part arrays_own_part(const struct arrays *arrays);

/* Element i of `a` at the start, all different nearby; b and c hold none of the values that the
 * operations give them. */
static inline double arrays_start(size_t i)
{
    return 1 + (double)(i % 4093) / 4096;
}

/* What scale and triad multiply with: copy, scale, add and triad one after the other take a to
 * (2s + s^2) a, which is a again. However often they run, nothing grows or vanishes. */
#define ARRAYS_SCALE 0.41421356237309504880

/* Runs the operation `passes` times as STREAM does (c = a; b = s c; c = a + b; a = b + s c); the time
 * of the slowest thread by both clocks.
 * Negative seconds where the threads together made another number of passes: the values would not tell, as
 * a second pass writes what the first one wrote. */
struct two_clocks arrays_run(const struct arrays *arrays, vector_operate *const *operations,
                             enum vector_operation operation, long passes);

#endif
