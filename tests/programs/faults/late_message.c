/* A disturbance: each rank's first message by MPI_Send leaves 300 ms late, as when another process
 * had the CPU just then.
 *
 * Preload it into any MPI program:
 *     mpicc -shared -fPIC late_message.c -o late_message.so
 *     LD_PRELOAD=$PWD/late_message.so ring */
#include <mpi.h>
#include <stdbool.h>
#include <time.h>

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    static bool was_late = false;
    if (!was_late) {
        was_late = true;
        nanosleep(&(struct timespec){ .tv_nsec = 300 * 1000 * 1000 }, NULL);
    }
    return PMPI_Send(buffer, count, type, to, tag, comm);
}
