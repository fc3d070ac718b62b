/* Jobs that go on when a rank dies (ULFM, which Open MPI 5 has): nobody waits for it in MPI_Finalize. */
#ifndef ASSAY_WITNESS_SURVIVORS_H
#define ASSAY_WITNESS_SURVIVORS_H

#include <mpi.h>
#include <stdbool.h>

/* As MPI_Comm_idup of MPI_COMM_WORLD. */
void survivors_idup_world(MPI_Comm *copy, MPI_Request *request);

/* Once the witness has its communicators. */
void survivors_start(void);

/* Does what takes all ranks, and is left where one of them dies. `*done`: this rank knows that all is
 * done. Returns whether any rank that lives does: the same on all of them. */
bool survivors_do(void (*part)(void), volatile bool *done);

#endif
