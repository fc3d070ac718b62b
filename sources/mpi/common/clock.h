/* The clock of all programs.
 *
 * CLOCK_MONOTONIC rather than MPI_Wtime: it has nanosecond ticks whatever the MPI (some MPIs
 * build MPI_Wtime on gettimeofday's microseconds), it is never set back, and a PMPI library that
 * intercepts MPI calls adds nothing to it. */
#ifndef ASSAY_CLOCK_H
#define ASSAY_CLOCK_H

#include <time.h>

/* Seconds since an arbitrary moment; only differences on one rank mean something. */
static inline double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
