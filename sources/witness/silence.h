/* The program's error handlers hear of no question of the witness's.
 *
 * Where a handler of the program returns, some MPIs return success from the call that failed (MPICH
 * does): then what the call was given may be no handle, and MPI would tell the handler so. */
#ifndef ASSAY_SILENCE_H
#define ASSAY_SILENCE_H

#include <fenv.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>

/* The handlers that were set aside, if any were. */
struct silence {
    bool kept;
    MPI_Errhandler world, self;
};

/* Before and after a question about a handle that may be none. */
struct silence silence_begin(void);
void silence_end(struct silence *silence);

/* What writing and reckoning may bring upon the thread: signals where there is no reader or no more
 * room, traps and marks of floating-point exceptions. */
struct apart {
    sigset_t signals, pending;
    fenv_t floats;
};

/* Before and after what the witness does for itself. */
struct apart apart_begin(void);
void apart_end(const struct apart *apart);

#endif
