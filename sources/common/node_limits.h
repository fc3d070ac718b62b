/* The machine's own limits for a node's cores, measured on the ranks and threads of the job.
 *
 * All ranks measure at the same time, each with its OpenMP threads, and each figure is the best of
 * many repeats of some ms: a limit is a bound. */
#ifndef ASSAY_NODE_LIMITS_H
#define ASSAY_NODE_LIMITS_H

#include <mpi.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Collective. Bandwidth of the triad a[i] = b[i] + s * c[i] in bytes/s over all ranks, counted as
 * STREAM counts: 24 bytes an element. `bytes_on_this_rank` is the size of the three arrays together:
 * give the working set of the kernel that is held against it. Takes about `seconds`. */
double limit_triad(MPI_Comm comm, size_t bytes_on_this_rank, double seconds);

/* Collective. Floating-point operations per second of independent fused multiply-adds (2 each) in
 * vectors of the widest kind that the CPU has, over all ranks and threads. */
double limit_vector(MPI_Comm comm, double seconds);

#ifdef __cplusplus
}
#endif

#endif
