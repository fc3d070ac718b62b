/* stream: memory bandwidth of a node, by the four operations of STREAM.
 *
 * Bytes are counted as STREAM counts them: 16 for each element of copy and scale, 24 of add and
 * triad. All ranks start a pass together, and its time is that of the slowest thread of all.
 *
 * The answer: copy, scale, add and triad one after the other give b = s a, c = (1 + s) a and
 * a = (2 s + s^2) a, which is a again for s = sqrt(2) - 1. So each element is known at the end,
 * however many passes there were, and the elements of a differ so that none stands for another. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "arrays.h"
#include "bench.h"
#include "caches.h"
#include "memory.h"
#include "rest.h"
#include "turns.h"
#include "watch.h"

static const char *const operation_names[] = { "copy", "scale", "add", "triad" };
static const double element_bytes[] = { 16, 16, 24, 24 };

enum stores { NORMAL, STREAMING };
static const char *const store_names[] = { "normal", "streaming", NULL };

static const struct bench_about about = {
    .program = "stream",
    .purpose = "memory bandwidth by copy, scale, add and triad",
    .text = "The arrays of each host have the same size whatever the number of its ranks. Each\n"
            "thread works on the part that it was the first to touch, which lies in its own NUMA\n"
            "domain: bind each rank to a domain to see the bandwidth of domains. Bandwidth is\n"
            "counted as STREAM counts it: 16 bytes for an element of copy (c = a) and scale\n"
            "(b = s c), 24 of add (c = a + b) and triad (a = b + s c). Normal stores read a line\n"
            "from memory before they write it, which is not counted; streaming stores do not.\n",
    .examples = "  mpirun -n 2 stream\n"
                "  OMP_NUM_THREADS=16 OMP_PLACES=cores mpirun -n 4 --map-by numa stream --alone\n"
                "  mpirun -n 8 stream --size 2G --stores normal --json stream.json\n",
    .min_ranks = 1,
    .thread_funneled = true,
};

static size_t size = 0; /* the default is found out at the start */
static int stores = STREAMING;
static bool alone = false;
static struct sample_plan plan = { .ci = 0.02, .budget = 2 };

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "size", .kind = OPTION_SIZE, .value = &size, .argument = "BYTES", .low = 64,
      .high = 1.1e15, .help = "of each of the three arrays, over all ranks of a host; 4 times "
                              "the last-level caches or more shows the memory" },
    { .name = "stores", .kind = OPTION_CHOICE, .value = &stores, .argument = "KIND",
      .choices = store_names, .help = "how results are written" },
    { .name = "alone", .kind = OPTION_FLAG, .value = &alone,
      .help = "measure also the ranks of each host one at a time, while the others sleep" },
    SAMPLE_OPTIONS(plan),
    { .name = NULL },
};
/* clang-format on */

enum { MOST_TURNS = 8192 }; /* whose bandwidths a rank keeps */

/* Ranks that measure at the same time, as one of them sees it. */
struct crew {
    MPI_Comm comm;
    const struct arrays *arrays;
    vector_operate *const *operations;
    double elements; /* of one array, over all ranks of the crew */
    struct sample_result results[VECTOR_OPERATIONS]; /* of the crew, on its rank 0 */
    struct two_clocks clocks[VECTOR_OPERATIONS]; /* of this rank, in all turns */
    int turns;
    double (*own)[MOST_TURNS]; /* bandwidths of this rank, by operation */
    double by_own[VECTOR_OPERATIONS]; /* bytes of all turns, by these */
    long passes; /* of each operation */
};

/* One turn of the four operations. */
static void turn(void *context, long passes, double *seconds)
{
    struct crew *crew = context;
    int slot = crew->turns++ % MOST_TURNS;
    crew->passes += passes;
    for (int operation = 0; operation < VECTOR_OPERATIONS; operation++) {
        MPI_Barrier(crew->comm);
        struct two_clocks took = arrays_run(crew->arrays, crew->operations, operation, passes);
        two_clocks_add(&crew->clocks[operation], took);
        seconds[operation] = took.seconds;
        if (seconds[operation] < 0)
            bench_abort(EXIT_BROKEN, "not all passes of %s were made", operation_names[operation]);
        double elements = (double)passes * (double)crew->arrays->elements;
        crew->own[operation][slot] = element_bytes[operation] * elements / seconds[operation];
        crew->by_own[operation] += crew->own[operation][slot] * took.seconds;
    }
}

/* `medians` are this rank's own bandwidths. Of a rank the median tells, not the best, which it may
 * have reached while another rank was interrupted and left it the memory. */
static void measure(struct crew *crew, double *medians)
{
    double own = (double)crew->arrays->elements;
    MPI_Allreduce(&own, &crew->elements, 1, MPI_DOUBLE, MPI_SUM, crew->comm);
    crew->turns = 0;
    turns_run(plan, crew->comm, VECTOR_OPERATIONS, turn, crew, crew->results);
    int count = crew->turns < MOST_TURNS ? crew->turns : MOST_TURNS;
    for (int operation = 0; operation < VECTOR_OPERATIONS; operation++)
        medians[operation] = stats_of(crew->own[operation], count).median;
}

/* The ranks of each host one after the other, those of all hosts at the same time. */
static void measure_alone(struct crew *crew, double *medians)
{
    int place = 0, most = 0; /* of this rank among those of its host; ranks of the fullest host */
    for (int host = 0; host < bench.host_count; host++) {
        int ranks = 0;
        for (int rank = 0; rank < bench.ranks; rank++) {
            if (rank == bench.rank && bench.host_of[rank] == host)
                place = ranks;
            ranks += bench.host_of[rank] == host;
        }
        most = ranks > most ? ranks : most;
    }
    for (int turn = 0; turn < most; turn++) {
        if (turn == place)
            measure(crew, medians);
        rest_until_all(MPI_COMM_WORLD);
    }
}

static void write_rank(const char *key, int rank, double bandwidth)
{
    json_object(bench.json, key);
    json_integer(bench.json, "rank", rank);
    json_string(bench.json, "host", bench.hosts[bench.host_of[rank]]);
    json_number(bench.json, "bandwidth", bandwidth);
    json_end(bench.json);
}

/* Bandwidths of the operations, and half the 95% interval of the median as a share of it. */
struct bandwidths {
    double best[VECTOR_OPERATIONS], median[VECTOR_OPERATIONS], interval[VECTOR_OPERATIONS];
};

/* Of the crew, on its rank 0. */
static struct bandwidths bandwidths_of(const struct crew *crew)
{
    struct bandwidths found;
    for (int operation = 0; operation < VECTOR_OPERATIONS; operation++) {
        struct stats time = crew->results[operation].time;
        double bytes = element_bytes[operation] * crew->elements;
        found.best[operation] = bytes / time.best;
        found.median[operation] = bytes / time.median;
        found.interval[operation] = stats_uncertainty(&time);
    }
    return found;
}

/* Rank 0. `ranks` are the medians of the ranks. */
static void report(int operation, const char *mode, const struct bandwidths *all,
                   const struct sample_result *sample, struct two_clocks clocks,
                   double (*ranks)[VECTOR_OPERATIONS])
{
    int slowest = 0, fastest = 0;
    for (int rank = 1; rank < bench.ranks; rank++) {
        slowest = ranks[rank][operation] < ranks[slowest][operation] ? rank : slowest;
        fastest = ranks[rank][operation] > ranks[fastest][operation] ? rank : fastest;
    }
    double low = ranks[slowest][operation], high = ranks[fastest][operation];
    printf("%-6s %-9s %10.2f %10.2f %6.2f %10.2f %10.2f  %d on %s\n", operation_names[operation],
           mode, all->best[operation] * 1e-9, all->median[operation] * 1e-9,
           100 * all->interval[operation], high * 1e-9, low * 1e-9, slowest,
           bench.hosts[bench.host_of[slowest]]);
    fflush(stdout);

    json_object(bench.json, NULL);
    json_string(bench.json, "operation", operation_names[operation]);
    json_string(bench.json, "ranks", mode);
    json_object(bench.json, "bandwidth");
    json_number(bench.json, "best", all->best[operation]);
    json_number(bench.json, "median", all->median[operation]);
    json_number(bench.json, "interval", all->interval[operation]);
    json_end(bench.json);
    write_rank("slowest", slowest, low);
    write_rank("fastest", fastest, high);
    json_array(bench.json, "per_rank");
    for (int rank = 0; rank < bench.ranks; rank++)
        json_number(bench.json, NULL, ranks[rank][operation]);
    json_end(bench.json);
    two_clocks_json(bench.json, clocks);
    if (sample)
        sample_json(bench.json, sample);
    json_end(bench.json);
}

/* What is reported of a rank is looked at by that rank. */
static void gather(const struct crew *crew, const double *own, double (*ranks)[VECTOR_OPERATIONS])
{
    double reported[VECTOR_OPERATIONS];
    int count = crew->turns < MOST_TURNS ? crew->turns : MOST_TURNS;
    MPI_Gather(own, VECTOR_OPERATIONS, MPI_DOUBLE, ranks, VECTOR_OPERATIONS, MPI_DOUBLE, 0,
               MPI_COMM_WORLD);
    MPI_Scatter(ranks, VECTOR_OPERATIONS, MPI_DOUBLE, reported, VECTOR_OPERATIONS, MPI_DOUBLE, 0,
                MPI_COMM_WORLD);
    for (int operation = 0; operation < VECTOR_OPERATIONS; operation++) {
        double elements = (double)crew->passes * (double)crew->arrays->elements;
        double bytes = element_bytes[operation] * elements, by_own = crew->by_own[operation];
        if (!stats_is_median(reported[operation], crew->own[operation], count) ||
            !(fabs(by_own - bytes) <= 1e-9 * bytes))
            bench_abort(EXIT_BROKEN, "%g is not the median bandwidth of %s, or not %g bytes passed",
                        reported[operation], operation_names[operation], by_own);
    }
}

/* All ranks at the same time. */
static void run_together(struct crew *crew, double (*ranks)[VECTOR_OPERATIONS])
{
    double medians[VECTOR_OPERATIONS];
    measure(crew, medians);
    gather(crew, medians, ranks);
    if (bench.rank != 0)
        return;
    struct bandwidths all = bandwidths_of(crew);
    for (int operation = 0; operation < VECTOR_OPERATIONS; operation++)
        report(operation, "together", &all, &crew->results[operation], crew->clocks[operation],
               ranks);
}

/* Each rank by itself, and the sum: what all would have if none was in another's way. */
static void run_alone(struct crew *crew, double (*ranks)[VECTOR_OPERATIONS])
{
    double medians[VECTOR_OPERATIONS];
    measure_alone(crew, medians);
    gather(crew, medians, ranks);
    struct bandwidths own = bandwidths_of(crew), all;
    MPI_Reduce(own.best, all.best, VECTOR_OPERATIONS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(own.median, all.median, VECTOR_OPERATIONS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(own.interval, all.interval, VECTOR_OPERATIONS, MPI_DOUBLE, MPI_MAX, 0,
               MPI_COMM_WORLD);
    for (int operation = 0; bench.rank == 0 && operation < VECTOR_OPERATIONS; operation++)
        report(operation, "alone", &all, NULL, crew->clocks[operation], ranks);
}

/* Rounding adds up over some 1e5 passes to 1e-11. */
static bool right(double found, double expected)
{
    return fabs(found - expected) <= 1e-8 * expected;
}

static void check(const struct arrays *arrays)
{
    const double factors[] = { 1, ARRAYS_SCALE, 1 + ARRAYS_SCALE };
    const double *const values[] = { arrays->a, arrays->b, arrays->c };
    json_array(bench.json, "last"); /* of each array: a reader knows what it has to be */
    for (int array = 0; array < 3; array++)
        json_number(bench.json, NULL, values[array][arrays->elements - 1]);
    json_end(bench.json);
    for (int array = 0; array < 3; array++) {
        size_t wrong = 0, first = arrays->elements;
#pragma omp parallel for reduction(+ : wrong) reduction(min : first)
        for (size_t i = 0; i < arrays->elements; i++) {
            if (!right(values[array][i], factors[array] * arrays_start(i))) {
                wrong++;
                first = i < first ? i : first;
            }
        }
        if (wrong > 0)
            bench_abort(EXIT_WRONG_PAYLOAD,
                        "%zu elements of array %c on host %s are wrong: "
                        "element %zu is %.17g instead of %.17g; test this host's memory",
                        wrong, "abc"[array], bench.hosts[bench.host_of[bench.rank]], first,
                        values[array][first], factors[array] * arrays_start(first));
    }
}

static size_t own_elements(void)
{
    int ranks = 0;
    for (int rank = 0; rank < bench.ranks; rank++)
        ranks += bench.host_of[rank] == bench.host_of[bench.rank];
    return size / sizeof(double) / (size_t)ranks;
}

int main(int argc, char **argv)
{
    size = 4 * caches_last_level();
    bench_start(&argc, &argv, &about, options);
    MPI_Bcast(&size, sizeof size, MPI_BYTE, 0, MPI_COMM_WORLD); /* hosts may have other caches */
    memory_require(arrays_bytes(own_elements()), "use a smaller --size");

    const struct vector_kernels *kernels = vector_kernels();
    bool streaming = stores == STREAMING && kernels->streaming[VECTOR_COPY];
    struct arrays arrays;
    if (!arrays_take(&arrays, own_elements()))
        bench_abort(EXIT_BROKEN, "cannot allocate %zu bytes; use a smaller --size",
                    arrays_bytes(own_elements()));
    json_string(bench.json, "stores", store_names[streaming ? STREAMING : NORMAL]);
    json_integer(bench.json, "elements_per_rank", (long long)arrays.elements);
    json_integer(bench.json, "threads_per_rank", omp_get_max_threads());
    if (bench.rank == 0)
        printf("\nArrays: 3 of %zu elements on each rank, %d threads each, %s stores\n\n"
               "%-16s %21s %6s %21s  %s\n%-6s %-9s %10s %10s %6s %10s %10s  %s\n",
               arrays.elements, omp_get_max_threads(), store_names[streaming ? STREAMING : NORMAL],
               "", "GB/s of all ranks", "", "GB/s of a rank", "slowest", "", "ranks", "best",
               "median", "+- %", "most", "least", "rank");

    double (*ranks)[VECTOR_OPERATIONS] = memory_allocate((size_t)bench.ranks * sizeof *ranks);
    struct crew crew = { .comm = MPI_COMM_WORLD, .arrays = &arrays };
    crew.operations = streaming ? kernels->streaming : kernels->normal;
    crew.own = memory_allocate(VECTOR_OPERATIONS * sizeof *crew.own);

    watch_start();
    json_array(bench.json, "results");
    run_together(&crew, ranks);
    if (alone) {
        crew.comm = MPI_COMM_SELF;
        run_alone(&crew, ranks);
    }
    json_end(bench.json);
    check(&arrays);
    watch_report();
    arrays_return(&arrays);
    free(crew.own);
    free(ranks);
    return bench_end();
}
