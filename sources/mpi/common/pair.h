/* Two ranks measure while the others wait without taking a core from them.
 *
 * A blocking MPI call busy-polls in most MPIs, so that idle ranks would compete with the two that
 * exchange messages. They wait in a probe with sleeps instead.
 *
 *     MPI_Comm pair = pair_enter();
 *     if (pair != MPI_COMM_NULL) {
 *         ... measure between ranks 0 and 1 of pair ...
 *         pair_leave(&pair);
 *     }
 */
#ifndef ASSAY_PAIR_H
#define ASSAY_PAIR_H

#include <mpi.h>
#include <stdbool.h>

/* Collective over MPI_COMM_WORLD. Rank 0 and the last rank get a communicator of the two. The
 * others sleep, and get MPI_COMM_NULL after the pair has left. */
MPI_Comm pair_enter(void);

/* Whether this rank is one of the two. */
bool pair_has_me(void);

/* On rank 0, before a step of the pair that may hang: the others end, too, if no other step follows
 * within somewhat more than so many seconds. A launcher may overlook them where the pair has ended. */
void pair_step(double seconds);

/* Collective over the pair: frees it and wakes the others. */
void pair_leave(MPI_Comm *pair);

#endif
