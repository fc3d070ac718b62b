/* A disturbance: each MPI_Barrier takes 4 ms, as where ranks that poll share a core; of the rank
 * LATE_RANK, if that is set, it takes so much longer than of the others, as over a slow link.
 *
 * Preload it into any MPI program:
 *     mpicc -shared -fPIC slow_barrier.c -o slow_barrier.so
 *     LD_PRELOAD=$PWD/slow_barrier.so collectives */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

int MPI_Barrier(MPI_Comm comm)
{
    const struct timespec pause = { .tv_nsec = 4 * 1000 * 1000 };
    const char *late = getenv("LATE_RANK");
    if (!late) {
        nanosleep(&pause, NULL);
        return PMPI_Barrier(comm);
    }
    int code = PMPI_Barrier(comm), rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == atoi(late))
        nanosleep(&pause, NULL);
    return code;
}
