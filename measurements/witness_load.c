/* Programs of known shape on two ranks, to measure what a preloaded library costs them.
 *
 *     witness_load ping-pong|cg|md|stencil|calls|sizes
 *
 * prints "name nanoseconds" lines: of a one-way message, of a step, or of a single call; the mean of
 * the middle half of many, as clocks may tick in tens of ns. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, other;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static int by_value(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static void print_middle(const char *name, double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    double sum = 0;
    for (int i = count / 4; i < count - count / 4; i++)
        sum += values[i];
    if (rank == 0)
        printf("%s %.3f\n", name, sum / (count - 2 * (count / 4)));
}

static void ping_pong(void)
{
    enum { BATCHES = 1000, ROUNDS = 2000 };
    static double values[BATCHES];
    double word = 1;
    for (int batch = -10; batch < BATCHES; batch++) {
        double start = now();
        for (int i = 0; i < ROUNDS; i++) {
            if (rank == 0)
                MPI_Send(&word, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD);
            MPI_Recv(&word, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank == 1)
                MPI_Send(&word, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD);
        }
        if (batch >= 0)
            values[batch] = (now() - start) / (2 * ROUNDS);
    }
    print_middle("ping-pong", values, BATCHES);
}

/* Arithmetic on data that fits into the second-level cache. */
enum { WORDS = 16384 };
static double field[WORDS], flux[WORDS];

static double compute(int sweeps)
{
    double sum = 0;
    for (int sweep = 0; sweep < sweeps; sweep++) {
        for (int i = 1; i < WORDS - 1; i++)
            flux[i] = 0.5 * field[i] + 0.25 * (field[i - 1] + field[i + 1]);
        for (int i = 1; i < WORDS - 1; i++)
            field[i] = flux[i];
        sum += flux[WORDS / 2];
    }
    return sum;
}

static char outgoing[4][65536], incoming[4][65536];

/* Conjugate gradients, as in miniFE: one halo exchange and two sums of a word for each step. */
static void cg_step(int step)
{
    (void)step;
    MPI_Request request;
    MPI_Irecv(incoming[0], 16384, MPI_CHAR, other, 1, MPI_COMM_WORLD, &request);
    MPI_Send(outgoing[0], 16384, MPI_CHAR, other, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++) {
        double dot = compute(15), sum;
        MPI_Allreduce(&dot, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

/* Molecular dynamics, as in miniMD: six exchanges a step, and new lists now and then. */
static void md_step(int step)
{
    for (int i = 0; i < 6; i++) {
        MPI_Request request;
        MPI_Irecv(incoming[0], 32768, MPI_CHAR, other, 2, MPI_COMM_WORLD, &request);
        MPI_Send(outgoing[0], 32768, MPI_CHAR, other, 2, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    double energy = compute(60), sum;
    if (step % 20 == 0)
        MPI_Allreduce(&energy, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* A stencil with four neighbours, of which the other rank is each. */
static void stencil_step(int step)
{
    (void)step;
    MPI_Request requests[8];
    for (int i = 0; i < 4; i++)
        MPI_Irecv(incoming[i], 8192, MPI_CHAR, other, 3 + i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 4; i++)
        MPI_Isend(outgoing[i], 8192, MPI_CHAR, other, 3 + i, MPI_COMM_WORLD, &requests[4 + i]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    compute(20);
}

static void steps(const char *name, void (*step)(int))
{
    enum { STEPS = 1500, WARM_UP = 50 };
    static double values[STEPS];
    for (int i = -WARM_UP; i < STEPS; i++) {
        double start = now();
        step(i + WARM_UP);
        if (i >= 0)
            values[i] = now() - start;
    }
    print_middle(name, values, STEPS);
}

/* Long enough between two calls of a kind that each of them is timed. */
static void pause_between(void)
{
    for (double start = now(); now() - start < 6000;)
        ;
}

#define CALL(name, before, call, after)      \
    do {                                     \
        static double values[SAMPLES];       \
        for (int i = 0; i < SAMPLES; i++) {  \
            pause_between();                 \
            before;                          \
            double start = now();            \
            call;                            \
            values[i] = now() - start;       \
            after;                           \
        }                                    \
        print_middle(name, values, SAMPLES); \
    } while (0)

/* Single calls that do little of their own: messages to oneself, and sums over two ranks. */
static void calls(void)
{
    enum { SAMPLES = 2001 };
    MPI_Comm self = MPI_COMM_SELF, world = MPI_COMM_WORLD;
    MPI_Request request, requests[2];
    MPI_Status status;
    double in = 0, out = 1;
    int flag;
#define WORD MPI_DOUBLE
    CALL("MPI_Send", MPI_Irecv(&in, 1, WORD, 0, 0, self, &request),
         MPI_Send(&out, 1, WORD, 0, 0, self), MPI_Wait(&request, &status));
    CALL("MPI_Recv", MPI_Isend(&out, 1, WORD, 0, 0, self, &request),
         MPI_Recv(&in, 1, WORD, 0, 0, self, MPI_STATUS_IGNORE), MPI_Wait(&request, &status));
    CALL("MPI_Isend", MPI_Irecv(&in, 1, WORD, 0, 0, self, &requests[0]),
         MPI_Isend(&out, 1, WORD, 0, 0, self, &requests[1]),
         MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CALL("MPI_Irecv", (void)0, MPI_Irecv(&in, 1, WORD, 0, 0, self, &requests[0]),
         (MPI_Isend(&out, 1, WORD, 0, 0, self, &requests[1]),
          MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)));
    CALL("MPI_Waitall",
         (MPI_Irecv(&in, 1, WORD, 0, 0, self, &requests[0]),
          MPI_Isend(&out, 1, WORD, 0, 0, self, &requests[1])),
         MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), (void)0);
    CALL("MPI_Iprobe", (void)0, MPI_Iprobe(0, 1, self, &flag, MPI_STATUS_IGNORE), (void)0);
    MPI_Win window;
    double *base, two[2] = { 0 }, both[2];
    int counts[2] = { 1, 1 }, shifts[2] = { 0, 1 };
    MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, self, &base, &window);
    MPI_Win_lock_all(0, window);
    CALL("MPI_Put", (void)0, MPI_Put(&out, 1, WORD, 0, 0, 1, WORD, window),
         MPI_Win_flush(0, window));
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    CALL("MPI_Barrier", (void)0, MPI_Barrier(world), (void)0);
    CALL("MPI_Allreduce", (void)0, MPI_Allreduce(&out, &in, 1, WORD, MPI_SUM, world), (void)0);
    CALL("MPI_Alltoall", (void)0, MPI_Alltoall(two, 1, WORD, both, 1, WORD, world), (void)0);
    CALL("MPI_Alltoallv", (void)0,
         MPI_Alltoallv(two, counts, shifts, WORD, both, counts, shifts, WORD, world), (void)0);
}

static void there_and_back(int size)
{
    if (rank == 0)
        MPI_Send(outgoing, size, MPI_CHAR, other, 0, MPI_COMM_WORLD);
    MPI_Recv(incoming, size, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(outgoing, size, MPI_CHAR, other, 0, MPI_COMM_WORLD);
}

/* One way of a message, an exchange of all with all, and a put that is completed, by bytes. Of many
 * short batches the first quartile: others on the machine only make a batch longer. */
static void sizes(void)
{
    enum { BATCHES = 400, CALLS = 32 };
    static double values[BATCHES];
    static const int bytes[] = { 8, 1024, 32768 };
    MPI_Win window;
    MPI_Win_create(incoming, sizeof incoming, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
#define BATCH(name, calls, call)                                     \
    do {                                                             \
        for (int batch = -20; batch < BATCHES; batch++) {            \
            MPI_Barrier(MPI_COMM_WORLD);                             \
            double start = now();                                    \
            for (int i = 0; i < CALLS; i++)                          \
                call;                                                \
            if (batch >= 0)                                          \
                values[batch] = (now() - start) / (calls);           \
        }                                                            \
        qsort(values, BATCHES, sizeof *values, by_value);            \
        if (rank == 0)                                               \
            printf("%s-%d %.3f\n", name, size, values[BATCHES / 4]); \
    } while (0)
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        int size = bytes[i];
        BATCH("MPI_Send", 2 * CALLS, there_and_back(size));
        BATCH("MPI_Alltoall", CALLS,
              MPI_Alltoall(outgoing, size, MPI_CHAR, incoming, size, MPI_CHAR, MPI_COMM_WORLD));
        BATCH("MPI_Put", CALLS,
              (MPI_Put(outgoing, size, MPI_CHAR, other, 0, size, MPI_CHAR, window),
               MPI_Win_flush(other, window)));
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    other = 1 - rank;
    const char *load = argc == 2 ? argv[1] : "";
    for (int i = 0; i < WORDS; i++)
        field[i] = i % 7;
    if (ranks == 2 && strcmp(load, "ping-pong") == 0)
        ping_pong();
    else if (ranks == 2 && strcmp(load, "cg") == 0)
        steps(load, cg_step);
    else if (ranks == 2 && strcmp(load, "md") == 0)
        steps(load, md_step);
    else if (ranks == 2 && strcmp(load, "stencil") == 0)
        steps(load, stencil_step);
    else if (ranks == 2 && strcmp(load, "calls") == 0)
        calls();
    else if (ranks == 2 && strcmp(load, "sizes") == 0)
        sizes();
    else
        fprintf(stderr, "usage, on two ranks: witness_load ping-pong|cg|md|stencil|calls|sizes\n");
    MPI_Finalize();
    return 0;
}
