/* overlap: how much of a message's time hides behind computation, or of a collective's.
 *
 * Rank 0 and the last rank send each other a message at once, as neighbours in a halo exchange do
 * (MPI_Isend, MPI_Irecv), compute for a given time, and wait for both (MPI_Waitall); or all ranks
 * begin a nonblocking collective, compute, and wait for it. What is measured, and how to read it,
 * stands in the help text below.
 *
 * The computation is floating-point work on a few values that stay in registers or the first
 * cache, so that it takes nothing from the message but the core. Its length is a number of rounds
 * of that work, not a time: with the message in the background it may take longer, and that shows.
 *
 * Payload: all ranks check what they received whole after the clock has stopped, then spoil the
 * buffer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "clock.h"
#include "memory.h"
#include "pair.h"
#include "payload.h"
#include "sizes.h"
#include "turns.h"

enum { TAG = 1 };

static bool thread_multiple = false;

static const struct bench_about about = {
    .program = "overlap",
    .purpose = "how much of a message's time hides behind computation",
    .text =
        "Rank 0 and the last rank exchange messages of the given size, one in each direction at\n"
        "once. With --operation allreduce all ranks begin an MPI_Iallreduce of so many bytes\n"
        "instead, and with alltoall an MPI_Ialltoall of so many to each rank. Each repetition\n"
        "measures three times in turn, so that drifts of the machine meet all of them alike; each\n"
        "is the slowest rank's, and the median over the repetitions:\n"
        "  Tcomm   MPI_Isend, MPI_Irecv (or the collective), MPI_Waitall.\n"
        "  Tcpu    the computation alone, on all these ranks.\n"
        "  Ttotal  MPI_Isend, MPI_Irecv (or the collective), the computation, MPI_Waitall.\n"
        "Figures:\n"
        "  overlap   (Tcpu + Tcomm - Ttotal) / min(Tcpu, Tcomm). 100% when T = max(Tcpu, Tcomm),\n"
        "            0% when T = Tcpu + Tcomm. The table cuts it to 0 .. 100%, the JSON does not.\n"
        "  slowdown  Ttotal / max(Tcpu, Tcomm): 1 when everything hides.\n"
        "  excess    Ttotal / (Tcpu + Tcomm): 1 when nothing hides.\n"
        "Verdict for a size, over all its ratios: the time that was hidden over the time that\n"
        "could have been, sum(Tcpu + Tcomm - Ttotal) / sum(min(Tcpu, Tcomm)). It is \"overlap\"\n"
        "from 75% on, \"none\" up to 25%, else \"partial\".\n"
        "Progress: an MPI may move a message only while the program is inside an MPI call. With\n"
        "--progress test the computation calls MPI_Testall every so often. A progress thread of\n"
        "the MPI itself is switched on in its environment (MPICH: MPIR_CVAR_ASYNC_PROGRESS=1) and\n"
        "needs --thread-multiple and a core to run on.\n",
    .examples =
        "  mpirun -n 2 overlap\n"
        "  mpirun -n 16 overlap --operation allreduce --min 64K --max 1M\n"
        "  mpirun -n 2 overlap --progress test --test-interval 1e-5 --json test.json\n"
        "  MPIR_CVAR_ASYNC_PROGRESS=1 mpirun -n 2 overlap --thread-multiple --min 4M --max 4M\n",
    .min_ranks = 2,
    .thread_multiple = &thread_multiple,
};

enum operation { EXCHANGE, ALLREDUCE, ALLTOALL };
static const char *const operation_names[] = { "exchange", "allreduce", "alltoall", NULL };
enum progress { NONE, TEST };
static const char *const progress_names[] = { "none", "test", NULL };

static size_t smallest = (size_t)1 << 20, largest = (size_t)64 << 20;
static struct option_numbers ratios = { .values = { 0.25, 0.5, 1, 2 }, .count = 4 };
static int operation = EXCHANGE, progress = NONE;
static double test_interval = 2e-5;
static struct sample_plan plan = { .ci = 0.02, .budget = 0.3 };

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "operation", .kind = OPTION_CHOICE, .value = &operation, .argument = "WHAT",
      .choices = operation_names, .help = "what is to hide behind the computation" },
    SIZES_OPTIONS(smallest, largest, 1, "message"),
    { .name = "ratios", .kind = OPTION_NUMBERS, .value = &ratios, .argument = "LIST",
      .low = 0.01, .high = 100, .help = "lengths of the computation, relative to Tcomm" },
    { .name = "progress", .kind = OPTION_CHOICE, .value = &progress, .argument = "HOW",
      .choices = progress_names, .help = "what the computation does for the messages" },
    { .name = "test-interval", .kind = OPTION_NUMBER, .value = &test_interval,
      .argument = "SECONDS", .low = 1e-7, .high = 1,
      .help = "computation between two calls of MPI_Testall" },
    { .name = "thread-multiple", .kind = OPTION_FLAG, .value = &thread_multiple,
      .help = "ask the MPI for MPI_THREAD_MULTIPLE, which its progress thread may need" },
    SAMPLE_OPTIONS(plan),
    { .name = NULL },
};
/* clang-format on */

/* The computation ------------------------------------------------------------------------------ */

static double seconds_per_round; /* of the slower rank */
static long rounds_per_test, rounds_made;

/* Real work that nothing can shorten: independent chains, each converging to 1. */
__attribute__((noinline)) static void work(long rounds)
{
    enum { CHAINS = 16 };
    static volatile double result; /* keeps the work from being optimised away */
    double chains[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        chains[i] = i;
    for (long round = 0; round < rounds; round++)
        for (int i = 0; i < CHAINS; i++)
            chains[i] = 0.999 * chains[i] + 0.001;
    double sum = 0;
    for (int i = 0; i < CHAINS; i++)
        sum += chains[i];
    result = sum;
    (void)result;
    rounds_made += rounds;
}

/* Finds out what a round takes: the best of several tries, as anything else on the core only
 * adds. Tcpu is measured at every point, so this only has to set lengths about right. */
static void calibrate(MPI_Comm comm)
{
    long rounds = 1000;
    double best = 0;
    for (int left = 5; left > 0;) {
        double start = clock_seconds();
        work(rounds);
        double seconds = clock_seconds() - start;
        if (seconds < 1e-3) {
            rounds *= 2;
            continue;
        }
        if (best == 0 || seconds < best)
            best = seconds;
        left--;
    }
    seconds_per_round = best / (double)rounds;
    MPI_Allreduce(MPI_IN_PLACE, &seconds_per_round, 1, MPI_DOUBLE, MPI_MAX, comm);
    rounds_per_test = lround(fmax(1, test_interval / seconds_per_round));
}

/* Computes in slices, so that Tcpu and Ttotal hold the same loop; between slices looks after the
 * requests, if there are any and it was asked to. */
static void compute(long rounds, MPI_Request requests[2])
{
    int done = requests == NULL || progress != TEST;
    for (; rounds > 0; rounds -= rounds_per_test) {
        work(rounds < rounds_per_test ? rounds : rounds_per_test);
        if (!done)
            MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    }
}

/* One point ------------------------------------------------------------------------------------ */

enum series { COMMUNICATION, COMPUTATION, TOTAL, SERIES };

struct point {
    MPI_Comm comm;          /* of the two, or of all ranks */
    int other, other_world; /* of the two */
    int size; /* an int, as MPI's counts are */
    char *send, *receive;
    long rounds;
};

static void finish(MPI_Request requests[2])
{
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    sample_operation();
}

/* The send goes first: a receive that finds the other rank's message waiting may copy it then and
 * there, and keep this rank's own message back for as long. A microsecond between the ranks would
 * decide whether the two directions take turns, and the times would fall into two groups. */
static void post(const struct point *point, MPI_Request requests[2])
{
    int size = point->size, doubles = size / (int)sizeof(double);
    requests[1] = MPI_REQUEST_NULL;
    switch (operation) {
    case EXCHANGE:
        MPI_Isend(point->send, point->size, MPI_BYTE, point->other, TAG, point->comm, &requests[1]);
        MPI_Irecv(point->receive, size, MPI_BYTE, point->other, TAG, point->comm, &requests[0]);
        break;
    case ALLREDUCE:
        MPI_Iallreduce(point->send, point->receive, doubles, MPI_DOUBLE, MPI_SUM, point->comm,
                       &requests[0]);
        break;
    case ALLTOALL:
        MPI_Ialltoall(point->send, size, MPI_BYTE, point->receive, size, MPI_BYTE, point->comm,
                      &requests[0]);
        break;
    }
}

/* Blocks of the size in each of the two buffers. */
static int blocks(void)
{
    return operation == ALLTOALL ? bench.ranks : 1;
}

/* What a rank contributes to an element of a sum: a whole number, so that sums are exact. */
static double contribution(int element, int rank)
{
    return element % 1021 + rank;
}

static void fill(const struct point *point)
{
    size_t size = (size_t)point->size;
    for (int to = 0; to < blocks(); to++)
        payload_fill(point->send + (size_t)to * size, size, bench.rank, point->size + to);
    double *elements = (double *)point->send;
    for (int i = 0; operation == ALLREDUCE && i < point->size / (int)sizeof *elements; i++)
        elements[i] = contribution(i, bench.rank);
}

/* Who sent a block of the receive buffer, and as which message. */
static int sender_of(const struct point *point, int block, long *message)
{
    *message = operation == ALLTOALL ? point->size + bench.rank : point->size;
    return operation == ALLTOALL ? block : point->other_world;
}

static void spoil(const struct point *point)
{
    size_t size = (size_t)point->size;
    for (int i = 0; i < blocks(); i++) {
        long message;
        int sender = sender_of(point, i, &message);
        payload_spoil(point->receive + (size_t)i * size, size, sender, message);
    }
}

static void check_sums(const struct point *point)
{
    const double *found = (const double *)point->receive;
    double ranks = bench.ranks;
    for (int i = 0; i < point->size / (int)sizeof *found; i++) {
        double expected = ranks * contribution(i, 0) + ranks * (ranks - 1) / 2;
        if (found[i] != expected)
            bench_abort(EXIT_WRONG_PAYLOAD,
                        "MPI_Iallreduce of %d bytes gave a wrong sum in element %d: expected %g, "
                        "found %g",
                        point->size, i, expected, found[i]);
    }
}

static void check(const struct point *point)
{
    if (operation == ALLREDUCE) {
        check_sums(point);
        return;
    }
    size_t size = (size_t)point->size;
    for (int i = 0; i < blocks(); i++) {
        long message;
        int sender = sender_of(point, i, &message);
        payload_check(point->receive + (size_t)i * size, size, sender, message);
    }
}

static double exchange(const struct point *point, long rounds)
{
    MPI_Request requests[2];
    sample_barrier(point->comm);
    struct sample_instant start = sample_now();
    post(point, requests);
    compute(rounds, requests);
    finish(requests);
    double seconds = sample_since(start);
    check(point);
    spoil(point);
    return seconds;
}

static struct sample_twins twins; /* of the computation alone, at a size */

static double twin_of_computation(const struct point *point)
{
    MPI_Barrier(point->comm);
    double start = clock_seconds();
    compute(point->rounds, NULL);
    return clock_seconds() - start;
}

static double computation_alone(const struct point *point)
{
    sample_barrier(point->comm);
    struct sample_instant start = sample_now();
    compute(point->rounds, NULL);
    sample_operation();
    return sample_since(start);
}

/* The twin comes first and last in turn, as does what either finds in the caches. */
static double computation_with_twin(const struct point *point, long *rounds)
{
    static long turns;
    bool is_due = sample_twins_are_due(&twins, turns++), is_first = twins.pairs % 2;
    double twin = is_due && is_first ? twin_of_computation(point) : 0;
    double alone = computation_alone(point);
    if (is_due) {
        twin = is_first ? twin : twin_of_computation(point);
        sample_twins_add(point->comm, &twins, alone, twin);
        *rounds += point->rounds;
    }
    return alone;
}

static double batch(void *context, long iterations)
{
    double seconds = 0;
    for (long i = 0; i < iterations; i++)
        seconds += exchange(context, 0);
    return seconds;
}

static void batches(void *context, long iterations, double *seconds)
{
    const struct point *point = context;
    long rounds = rounds_made;
    for (int s = 0; s < SERIES; s++)
        seconds[s] = 0;
    for (long i = 0; i < iterations; i++) {
        seconds[COMMUNICATION] += exchange(point, 0);
        seconds[COMPUTATION] += computation_with_twin(point, &rounds);
        seconds[TOTAL] += exchange(point, point->rounds);
        rounds += 2 * point->rounds;
    }
    if (rounds_made != rounds)
        bench_abort(EXIT_BROKEN, "%ld rounds were computed too many", rounds_made - rounds);
}

/* Measuring and reporting ---------------------------------------------------------------------- */

/* What could have been hidden and what was, added up over a size's ratios. */
struct hiding {
    double could, was;
};

static void print_head(void)
{
    printf("\n%10s %6s %11s %11s %11s %8s %9s %7s %8s  %s\n", "bytes", "ratio", "Tcomm us",
           "Tcpu us", "Ttotal us", "overlap", "slowdown", "excess", "samples", "stopped by");
}

static void json_series(const char *key, const struct sample_result *result)
{
    json_object(bench.json, key);
    sample_json(bench.json, result);
    json_end(bench.json);
}

static void report_point(const struct point *point, double ratio,
                         const struct sample_result results[SERIES], struct hiding *hiding)
{
    double comm = results[COMMUNICATION].time.median;
    double cpu = results[COMPUTATION].time.median;
    double total = results[TOTAL].time.median;
    double could = fmin(cpu, comm), was = cpu + comm - total;
    hiding->could += could;
    hiding->was += was;

    printf("%10d %6g %11.1f %11.1f %11.1f %7.0f%% %9.2f %7.2f %8d  %s\n", point->size, ratio,
           comm * 1e6, cpu * 1e6, total * 1e6, fmin(fmax(was / could, 0), 1) * 100,
           total / fmax(cpu, comm), total / (cpu + comm), results[TOTAL].samples,
           results[TOTAL].stopped_by);
    fflush(stdout);

    json_object(bench.json, NULL);
    json_number(bench.json, "ratio", ratio);
    json_number(bench.json, "overlap", was / could);
    json_number(bench.json, "slowdown", total / fmax(cpu, comm));
    json_number(bench.json, "excess", total / (cpu + comm));
    json_series("communication", &results[COMMUNICATION]);
    json_series("computation", &results[COMPUTATION]);
    json_series("total", &results[TOTAL]);
    json_end(bench.json);
}

static void report_size(const struct point *point, struct hiding hiding)
{
    double overlap = hiding.was / hiding.could;
    const char *verdict = overlap >= 0.75 ? "overlap" : overlap > 0.25 ? "partial" : "none";
    printf("%10d verdict: %s, %.0f%% of what could hide was hidden\n", point->size, verdict,
           fmin(fmax(overlap, 0), 1) * 100);
    json_number(bench.json, "overlap", overlap);
    json_string(bench.json, "verdict", verdict);
}

/* All ratios at one size. */
static void measure(struct point *point)
{
    fill(point);
    spoil(point);
    twins = (struct sample_twins){ 0 };

    struct sample_result alone = sample_run(plan, point->comm, batch, point);
    double comm = alone.time.median;

    struct hiding hiding = { 0 };
    json_object(bench.json, NULL);
    json_integer(bench.json, "size", point->size);
    json_object(bench.json, "clocks"); /* of what set the length of the first computation */
    sample_clocks_json(bench.json, &alone.clocks);
    json_end(bench.json);
    json_array(bench.json, "points");
    for (int i = 0; i < ratios.count; i++) {
        MPI_Bcast(&comm, 1, MPI_DOUBLE, 0, point->comm);
        point->rounds = lround(fmax(1, ratios.values[i] * comm / seconds_per_round));
        struct sample_result results[SERIES];
        turns_run(plan, point->comm, SERIES, batches, point, results);
        if (bench.rank == 0) {
            report_point(point, ratios.values[i], results, &hiding);
            comm = results[COMMUNICATION].time.median; /* the newest, for the next length */
        }
    }
    sample_twins_require(&twins, "the computation alone");
    json_end(bench.json);
    if (bench.rank == 0)
        report_size(point, hiding);
    json_end(bench.json);
}

static void measure_all(MPI_Comm comm)
{
    struct point point = {
        .comm = comm,
        .other = bench.rank == 0 ? 1 : 0,
        .other_world = bench.ranks - 1 - bench.rank,
        .send = memory_allocate((size_t)blocks() * largest),
        .receive = memory_allocate((size_t)blocks() * largest),
    };
    calibrate(comm);
    if (bench.rank == 0)
        print_head();
    for (size_t size = smallest; size <= largest; size = sizes_next(size, largest)) {
        point.size = (int)size;
        measure(&point);
    }
    free(point.send);
    free(point.receive);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    sizes_require(smallest, largest, operation == ALLREDUCE);
    bool is_idle = operation == EXCHANGE && !pair_has_me();
    memory_require(is_idle ? 0 : 2 * (size_t)blocks() * largest, "use a smaller --max");

    json_array(bench.json, "results");
    if (operation == EXCHANGE) {
        MPI_Comm pair = pair_enter();
        if (pair != MPI_COMM_NULL) {
            measure_all(pair);
            pair_leave(&pair);
        }
    } else {
        measure_all(MPI_COMM_WORLD);
    }
    json_end(bench.json);
    return bench_end();
}
