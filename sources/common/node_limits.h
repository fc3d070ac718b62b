/* The machine's own limits for a node's cores, measured on the ranks and threads of the job.
 *
 * All ranks measure at the same time, each with its OpenMP threads, in windows of 2 ms; a figure is
 * the best of them (windows.h). As many windows as are asked for, and not as many as there is time
 * for: a job sends the same messages in each run.
 *
 * A machine that others share gives more at one time than at another. So a limit is measured a
 * little at a time, between the loops that are held against it. */
#ifndef ASSAY_NODE_LIMITS_H
#define ASSAY_NODE_LIMITS_H

#include <mpi.h>
#include <stddef.h>

#include "windows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that the triad's arrays should take on this rank for a kernel with such a working set: as many,
 * but no more than is far out of any cache. */
double limit_triad_bytes(double working_set);

/* Memory for the triad a[i] = b[i] + s * c[i]. Aborts the job where there is none. */
struct triad_limit;
struct triad_limit *limit_triad_make(MPI_Comm comm, double bytes_on_this_rank);
void limit_triad_free(struct triad_limit *limit);

/* Collective. Bandwidth in bytes/s over all ranks, counted as STREAM counts: 24 bytes an element. */
struct limit limit_triad(struct triad_limit *limit, int windows);

/* Collective. Floating-point operations per second of independent fused multiply-adds (2 each) in
 * vectors of the widest kind that the CPU has, over all ranks and threads. */
struct limit limit_vector(MPI_Comm comm, int windows);

#ifdef __cplusplus
}
#endif

#endif
