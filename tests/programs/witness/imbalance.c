/* Steps of computation and communication, in which one rank computes longer than the others.
 *
 *   imbalance STEPS MS PERCENT    all ranks compute for MS milliseconds, late ones PERCENT longer
 *
 * Each pattern of communication has a call of its own. Each rank writes a file "times.RANK" with a
 * line for each of them: "NAME BEGIN END BEGIN END ...", the seconds at which the call of each step
 * began and ended.
 *
 * To compute is to sleep, so that more ranks than cores do each other no harm. */
#include "known.h"

enum { MOST_STEPS = 100, LARGE = 1 << 18 };

static int steps, compute_ms, percent;
static int small_out, small_in, large[LARGE];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void compute(bool late)
{
    long us = 10l * compute_ms * (late ? 100 + percent : 100);
    nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

static int next(void)
{
    return (rank + 1) % size;
}

static int last(void)
{
    return (rank + size - 1) % size;
}

/* The calls; all of a pattern are of one name. */

static void allreduce(void)
{
    MPI_Allreduce(&small_out, &small_in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void sendrecv(void)
{
    MPI_Sendrecv(&small_out, 1, MPI_INT, next(), 1, &small_in, 1, MPI_INT, last(), 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void waitall(void)
{
    MPI_Request requests[2];
    MPI_Irecv(&small_in, 1, MPI_INT, last(), 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&small_out, 1, MPI_INT, next(), 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* From even ranks to odd ones, which are late. */
static void ssend(void)
{
    if (rank % 2 == 0)
        MPI_Ssend(&small_out, 1, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
    else
        MPI_Recv(&small_in, 1, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_large(void)
{
    if (rank % 2 == 0)
        MPI_Send(large, LARGE, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
    else
        MPI_Recv(large, LARGE, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The last rank is late, and the root. */
static void bcast(void)
{
    MPI_Bcast(&small_out, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
}

/* The root is not late. */
static void reduce(void)
{
    MPI_Reduce(&small_out, &small_in, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
}

/* The root is late; nobody waits. */
static void gather(void)
{
    static int words[64];
    MPI_Gather(&small_out, 1, MPI_INT, words, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
}

/* Nobody is late. */
static void alltoall(void)
{
    static int out[LARGE], in[LARGE];
    MPI_Alltoall(out, LARGE / size, MPI_INT, in, LARGE / size, MPI_INT, MPI_COMM_WORLD);
}

struct pattern {
    const char *name;
    void (*communicate)(void);
    bool odd_ranks_are_late, balanced; /* otherwise the last rank is late */
};

static void step_by_step(const struct pattern *pattern, FILE *file)
{
    static double times[MOST_STEPS][2];
    bool late = pattern->odd_ranks_are_late ? rank % 2 : rank == size - 1;
    PMPI_Barrier(MPI_COMM_WORLD); /* which the witness does not see */
    for (int i = 0; i < steps; i++) {
        compute(late && !pattern->balanced);
        times[i][0] = now();
        pattern->communicate();
        times[i][1] = now();
    }
    fputs(pattern->name, file);
    for (int i = 0; i < steps; i++)
        fprintf(file, " %.6f %.6f", times[i][0], times[i][1]);
    fputs("\n", file);
}

int main(int argc, char **argv)
{
    static const struct pattern patterns[] = {
        { "MPI_Allreduce", allreduce, false, false }, { "MPI_Barrier", barrier, false, false },
        { "MPI_Sendrecv", sendrecv, false, false },   { "MPI_Waitall", waitall, false, false },
        { "MPI_Ssend", ssend, true, false },          { "MPI_Send", send_large, true, false },
        { "MPI_Bcast", bcast, false, false },         { "MPI_Reduce", reduce, false, false },
        { "MPI_Alltoall", alltoall, false, true },    { "MPI_Gather", gather, false, false },
    };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(argc == 4 && atoi(argv[1]) <= MOST_STEPS, "arguments");
    steps = atoi(argv[1]);
    compute_ms = atoi(argv[2]);
    percent = atoi(argv[3]);
    char name[32];
    sprintf(name, "times.%d", rank);
    FILE *file = fopen(name, "w");
    check(file, name);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        step_by_step(&patterns[i], file);
    check(fclose(file) == 0, name);
    MPI_Finalize();
    return 0;
}
