/* A fault: one-sided operations do not do what they ought to.
 *
 * Preload it into `onesided`:
 *     mpicc -shared -fPIC wrong_access.c -o wrong_access.so
 *     WRONG_ACCESS=put LD_PRELOAD=$PWD/wrong_access.so onesided
 * WRONG_ACCESS: "put" and "get" leave out the last byte, "accumulate" every third operation, "fetch"
 * adds without a word of what was there before, and "hang" never ends a flush. "deaf" hangs as well,
 * and the alarms of the first and the last rank ring ten seconds late: not never, as MPICH's launcher
 * may overlook that the rank between them left, and the job would last for ever. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static int is(const char *fault)
{
    const char *chosen = getenv("WRONG_ACCESS");
    return chosen && strcmp(chosen, fault) == 0;
}

int MPI_Put(const void *buffer, int count, MPI_Datatype type, int target, MPI_Aint place,
            int target_count, MPI_Datatype target_type, MPI_Win window)
{
    int less = is("put");
    return PMPI_Put(buffer, count - less, type, target, place, target_count - less, target_type,
                    window);
}

int MPI_Get(void *buffer, int count, MPI_Datatype type, int target, MPI_Aint place,
            int target_count, MPI_Datatype target_type, MPI_Win window)
{
    int less = is("get");
    return PMPI_Get(buffer, count - less, type, target, place, target_count - less, target_type,
                    window);
}

int MPI_Accumulate(const void *buffer, int count, MPI_Datatype type, int target, MPI_Aint place,
                   int target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win window)
{
    static long calls = 0;
    if (is("accumulate") && ++calls % 3 == 0)
        return MPI_SUCCESS;
    return PMPI_Accumulate(buffer, count, type, target, place, target_count, target_type, op,
                           window);
}

int MPI_Fetch_and_op(const void *buffer, void *result, MPI_Datatype type, int target,
                     MPI_Aint place, MPI_Op op, MPI_Win window)
{
    static long unseen[1];
    return PMPI_Fetch_and_op(buffer, is("fetch") ? unseen : result, type, target, place, op,
                             window);
}

int MPI_Win_flush(int target, MPI_Win window)
{
    while (is("hang") || is("deaf"))
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return PMPI_Win_flush(target, window);
}

unsigned alarm(unsigned seconds)
{
    int rank, ranks;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (seconds && is("deaf") && (rank == 0 || rank == ranks - 1))
        seconds += 10;
    setitimer(ITIMER_REAL, &(struct itimerval){ .it_value = { .tv_sec = seconds } }, NULL);
    return 0;
}
