/* A network of known speed, in place of the real one: the receive of an exchange completes a given
 * time after it was posted, whatever the program does meanwhile (offloaded), or a given time after
 * the next MPI call, MPI_Testall or MPI_Waitall (as a rendezvous that waits for the program). So a
 * measurement of overlap has a known answer.
 *
 * Preload it into a program that uses MPI_Irecv with MPI_Waitall or MPI_Testall:
 *     mpicc -shared -fPIC wire.c -o wire.so
 *     WIRE_MICROSECONDS=1000 WIRE_OFFLOADED=1 LD_PRELOAD=$PWD/wire.so overlap --max 64K
 *
 * Nobody really waits. CLOCK_MONOTONIC becomes the time that the process computed, without what it
 * spent in the exchanges, plus what it would have waited for the network: so whatever else the
 * machine does meanwhile changes nothing. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double waited; /* less the computing time of the exchanges */
static double started; /* when the newest message was, 0 before */

static double to_seconds(const struct timespec *time)
{
    return (double)time->tv_sec + 1e-9 * (double)time->tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, time);
    int code = (int)syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, time);
    double now = to_seconds(time) + waited;
    time->tv_sec = (time_t)now;
    time->tv_nsec = (long)(1e9 * (now - (double)time->tv_sec));
    return code;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return to_seconds(&time);
}

static double flight(void)
{
    return 1e-6 * atof(getenv("WIRE_MICROSECONDS"));
}

static int offloaded(void)
{
    return atoi(getenv("WIRE_OFFLOADED"));
}

static double arrival(void)
{
    if (started == 0)
        started = now();
    return started + flight();
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    started = offloaded() ? now() : 0;
    return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}

int MPI_Testall(int count, MPI_Request *requests, int *done, MPI_Status *statuses)
{
    *done = 0;
    if (now() < arrival())
        return MPI_SUCCESS;
    return PMPI_Testall(count, requests, done, statuses);
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    double start = now();
    double end = arrival() > start ? arrival() : start;
    int code = PMPI_Waitall(count, requests, statuses);
    waited += end - now();
    return code;
}
