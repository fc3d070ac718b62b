/* How a job ends that cannot go on. */
#ifndef ASSAY_ABORT_JOB_H
#define ASSAY_ABORT_JOB_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Takes all ranks of comm down with that exit code, once what has been said has got through:
 * launchers drop what they have not passed on yet when a job aborts. */
static inline void __attribute__((noreturn)) abort_job(MPI_Comm comm, int code)
{
    struct timespec pause = { 0, 500000000 };
    fflush(NULL);
    nanosleep(&pause, NULL);
    MPI_Abort(comm, code);
    abort(); /* MPI_Abort is not declared as one that never returns */
}

#endif
