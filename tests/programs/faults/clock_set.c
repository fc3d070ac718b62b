/* Ranks on hosts of their own, of which all but rank 0's set their clock of the day back by an hour while
 * they are in MPI_Init. */
#define _GNU_SOURCE 1
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool is_set;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int code = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && code == 0 && is_set)
        now->tv_sec -= 3600;
    return code;
}

int PMPI_Get_processor_name(char *name, int *length)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    is_set = rank > 0;
    *length = sprintf(name, "host%d", rank);
    return MPI_SUCCESS;
}
