/* What the witness needs of the program's MPI, included before all else.
 *
 * The library may be in a process without MPI, and in one that loads its MPI later, as interpreters
 * do. So it refers to no symbol of an MPI: every PMPI_ function, and every object that Open MPI's
 * handles are addresses of, is a pointer behind its own name. */
#ifndef ASSAY_BIND_H
#define ASSAY_BIND_H

#include <mpi.h>
#include <stdbool.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma GCC visibility push(hidden)
#include "bound.h"
#pragma GCC visibility pop
#pragma GCC diagnostic pop

/* Finds them; false where there is no MPI so far. Done when the library is loaded, and again before
 * the first calls that a program may make. */
bool bind_mpi(void);

/* Whether they are still there: the program may have closed its MPI's library. */
bool bound_mpi_is_open(void);

/* Major version of the standard's ABI that the program's MPI has (libmpi_abi); -1 where it has one
 * of its own. */
int bound_abi(void);

/* MPIX_Comm_agree and MPIX_Comm_revoke, where the program's MPI has them. The first leaves the same
 * flag on all ranks that live, the bits that all of them gave, and tells whether all ranks live. */
bool bound_agree(MPI_Comm comm, int *flag);
void bound_revoke(MPI_Comm comm);

#endif
