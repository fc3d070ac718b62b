/* Several things measured in turn, so that drifts of the machine meet all of them alike and their
 * ratios can be trusted: what sample.h does for one thing.
 *
 * A sample is one turn of a batch of operations of each thing. The controller looks at the time of
 * the whole turn: its interval of the median ends the sampling, or the budget does. */
#ifndef ASSAY_TURNS_H
#define ASSAY_TURNS_H

#include "sample.h"

enum { TURNS_MOST = SAMPLE_MOST_THINGS };

/* As sample_batch, for each thing: seconds[i] for the i-th. Clocks that were told are those of all things
 * together, in the result of the first. */
typedef void turns_batch(void *context, long iterations, double *seconds);

/* Collective over `comm`. results[0 .. things - 1] are valid on rank 0 of `comm` only. */
void turns_run(struct sample_plan plan, MPI_Comm comm, int things, turns_batch *batch,
               void *context, struct sample_result *results);

#endif
