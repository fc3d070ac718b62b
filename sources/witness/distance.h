/* How far apart the cores of a machine's ranks are, where a hypervisor may move them unseen. */
#ifndef ASSAY_WITNESS_DISTANCE_H
#define ASSAY_WITNESS_DISTANCE_H

#include <mpi.h>

/* Collective over the ranks of `comm`, which are of one machine. Seconds that a cache line takes from a
 * rank's core to the next rank's, of the pairs 0 and 1, 2 and 3, ... the longest; takes a fraction of a
 * millisecond, and 20 ms at most. The line is in a file of `folder` that has gone then. 0 where it is not
 * known: one rank, a pair that did not run at once, or no such folder that all have. */
double distance_of_cores(MPI_Comm comm, const char *folder);

/* Where a rank leaves before its end. */
void distance_abandon(void);

#endif
