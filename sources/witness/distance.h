/* How far apart the cores of a host's ranks are, where a hypervisor may move them unseen. */
#ifndef ASSAY_WITNESS_DISTANCE_H
#define ASSAY_WITNESS_DISTANCE_H

/* Collective over the ranks of the host. Seconds that a cache line takes from a rank's core to the next
 * rank's, of the pairs 0 and 1, 2 and 3, ... the longest; takes a fraction of a millisecond, and 20 ms
 * at most. 0 where it is not known: one rank, a pair that did not run at once, or no shared memory. */
double distance_of_cores(void);

#endif
