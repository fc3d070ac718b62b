/* A network of known speed, in place of the real one: the receives of an exchange complete a given
 * time after they were posted, whatever the program does meanwhile, or a given time after the
 * program began to wait for them. The first is a network that moves messages by itself, the second
 * one that moves them only inside MPI calls. So a measurement of overlap has a known answer.
 *
 * Preload it into a program that uses MPI_Irecv with MPI_Waitall or MPI_Testall, and whose real
 * messages are much faster:
 *     mpicc -shared -fPIC wire.c -o wire.so
 *     WIRE_MICROSECONDS=20000 WIRE_OFFLOADED=1 LD_PRELOAD=$PWD/wire.so overlap --max 64K
 * It sleeps rather than spins, to leave the cores to other ranks. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static double posted; /* when the newest receive was */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double flight(void)
{
    return 1e-6 * atof(getenv("WIRE_MICROSECONDS"));
}

static int offloaded(void)
{
    return atoi(getenv("WIRE_OFFLOADED"));
}

static void sleep_until(double moment)
{
    struct timespec until = { .tv_sec = (time_t)moment };
    until.tv_nsec = (long)(1e9 * (moment - (double)until.tv_sec));
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    posted = now();
    return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}

int MPI_Testall(int count, MPI_Request *requests, int *done, MPI_Status *statuses)
{
    *done = 0;
    if (!offloaded() || now() < posted + flight())
        return MPI_SUCCESS;
    return PMPI_Testall(count, requests, done, statuses);
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    int code = PMPI_Waitall(count, requests, statuses);
    sleep_until((offloaded() ? posted : now()) + flight());
    return code;
}
