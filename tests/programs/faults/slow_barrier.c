/* A disturbance: each MPI_Barrier takes 4 ms, as where ranks that poll share a core.
 *
 * Preload it into any MPI program:
 *     mpicc -shared -fPIC slow_barrier.c -o slow_barrier.so
 *     LD_PRELOAD=$PWD/slow_barrier.so collectives */
#include <mpi.h>
#include <time.h>

int MPI_Barrier(MPI_Comm comm)
{
    nanosleep(&(struct timespec){ .tv_nsec = 4 * 1000 * 1000 }, NULL);
    return PMPI_Barrier(comm);
}
