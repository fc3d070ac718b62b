/* dgemm: floating-point rate of a node by the product of matrices, and which rank is slow.
 *
 * All ranks multiply at the same time, each with its OpenMP threads, and begin each product
 * together. The operands are small whole numbers, so that every sum is exact and the answer is
 * known to the last bit: every element is checked at the end. The rate is held against
 * what the vector units do without any memory: a library whose kernels are for another processor
 * leaves most of that idle. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "blas.h"
#include "memory.h"
#include "node_limits.h"
#include "sample.h"
#include "two_clocks.h"
#include "watch.h"

static const struct bench_about about = {
    .program = "dgemm",
    .purpose = "floating-point rate of all ranks at once, by the product of matrices (DGEMM)",
    .text = "Each rank computes C = C - A B with its threads on square matrices of its own, all\n"
            "ranks at the same time. The rate of all ranks counts with the slowest one; that of a\n"
            "rank is the median of its own times. 2 n^3 operations a product. The result is\n"
            "checked. The limit is the rate of multiply-adds in the widest vectors of all ranks,\n"
            "measured before, after and in between.\n",
    .examples = "  mpirun -n 2 dgemm\n"
                "  OMP_NUM_THREADS=16 OMP_PLACES=cores mpirun -n 4 --map-by numa dgemm --n 8000\n",
    .min_ranks = 1,
    .thread_funneled = true,
};

static long n = 2000;
static struct sample_plan plan = { .ci = 0.02, .budget = 2 };

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "n", .kind = OPTION_COUNT, .value = &n, .argument = "ORDER", .low = 1, .high = 200000,
      .help = "of the matrices of each rank" },
    SAMPLE_OPTIONS(plan),
    { .name = NULL },
};
/* clang-format on */

enum {
    LIMIT_WINDOWS = 20, /* of each measurement of the limit */
    LIMITS = SAMPLE_ROUNDS + 1,
    MOST_SAMPLES = 8192, /* whose times a rank keeps */
};

struct run {
    struct dgemm *dgemm;
    int samples;
    long products; /* that were asked for */
    double seconds; /* of all products on this rank */
    double by_samples; /* the same, by what is kept of each sample */
    double own[MOST_SAMPLES]; /* seconds a product on this rank */
};

static double batch(void *context, long iterations)
{
    struct run *run = context;
    double seconds = 0;
    run->products += iterations;
    for (long i = 0; i < iterations; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        seconds += dgemm_multiply(run->dgemm);
    }
    run->seconds += seconds;
    int slot = run->samples++ % MOST_SAMPLES;
    run->own[slot] = seconds / (double)iterations;
    run->by_samples += run->own[slot] * (double)iterations;
    return seconds;
}

static double operations(void)
{
    return 2.0 * (double)n * (double)n * (double)n;
}

static double limit_median(const struct limit *limits)
{
    double sorted[LIMITS];
    for (int i = 0; i < LIMITS; i++)
        sorted[i] = limits[i].rate;
    return stats_of(sorted, LIMITS).median;
}

/* Rank 0. `rates` are the medians of the ranks, `limits` are of all of them. */
static void report(const struct run *run, const struct sample_result *result,
                   const struct limit *limits, const double *rates, double *sorted)
{
    int slowest = 0, fastest = 0;
    for (int rank = 0; rank < bench.ranks; rank++) {
        sorted[rank] = rates[rank];
        slowest = rates[rank] < rates[slowest] ? rank : slowest;
        fastest = rates[rank] > rates[fastest] ? rank : fastest;
    }
    struct stats of_ranks = stats_of(sorted, bench.ranks);
    const char *host = bench.hosts[bench.host_of[slowest]];
    double all = operations() * bench.ranks / result->time.median;
    printf("%8s %12s %6s %10s %10s %10s  %s\n", "n", "all ranks", "+- %", "least", "median", "most",
           "slowest rank");
    printf("%8ld %12.2f %6.2f %10.2f %10.2f %10.2f  %d on %s\n", n, all * 1e-9,
           100 * stats_uncertainty(&result->time), rates[slowest] * 1e-9, of_ranks.median * 1e-9,
           rates[fastest] * 1e-9, slowest, host);
    double best = operations() * bench.ranks / result->time.best, limit = limit_median(limits);
    printf("\nLimit: %.2f Gflop/s of multiply-adds; the best products have %.3f of it\n",
           limit * 1e-9, best / limit);
    fflush(stdout);

    json_object(bench.json, NULL);
    json_integer(bench.json, "n", n);
    json_number(bench.json, "rate", all);
    json_number(bench.json, "rate_best", best);
    json_number(bench.json, "limit", limit);
    json_array(bench.json, "limits");
    for (int i = 0; i < LIMITS; i++)
        json_number(bench.json, NULL, limits[i].rate);
    json_end(bench.json);
    json_array(bench.json, "least_limits");
    for (int i = 0; i < LIMITS; i++)
        json_number(bench.json, NULL, limits[i].least);
    json_end(bench.json);
    json_object(bench.json, "rank_rates");
    json_number(bench.json, "min", rates[slowest]);
    json_number(bench.json, "median", of_ranks.median);
    json_number(bench.json, "max", rates[fastest]);
    json_end(bench.json);
    json_object(bench.json, "slowest");
    json_integer(bench.json, "rank", slowest);
    json_string(bench.json, "host", host);
    json_number(bench.json, "rate", rates[slowest]);
    json_end(bench.json);
    json_array(bench.json, "per_rank");
    for (int rank = 0; rank < bench.ranks; rank++)
        json_number(bench.json, NULL, rates[rank]);
    json_end(bench.json);
    json_integer(bench.json, "products", dgemm_times(run->dgemm));
    json_number(bench.json, "scale", dgemm_scale());
    json_number(bench.json, "last", dgemm_last(run->dgemm));
    struct two_clocks clocks = { .seconds = run->seconds };
    dgemm_bounds(run->dgemm, &clocks.least, &clocks.most);
    two_clocks_json(bench.json, clocks);
    sample_json(bench.json, result);
    json_end(bench.json);
}

static void check(const struct run *run)
{
    if (dgemm_times(run->dgemm) != run->products)
        bench_abort(EXIT_BROKEN, "%ld products were made of %ld", dgemm_times(run->dgemm),
                    run->products);
    if (!(fabs(run->by_samples - run->seconds) <= 1e-9 * run->seconds))
        bench_abort(EXIT_BROKEN, "the products took %g s, their samples %g s", run->seconds,
                    run->by_samples);
    int column = dgemm_wrong_column(run->dgemm);
    if (column >= 0)
        bench_abort(EXIT_WRONG_PAYLOAD,
                    "the product on host %s is wrong in column %d; test this "
                    "host's processors and memory",
                    bench.hosts[bench.host_of[bench.rank]], column);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    const char *why = blas_start();
    if (why)
        bench_abort(EXIT_BROKEN, "%s", why);
    memory_require((size_t)limit_dgemm_bytes((int)n, (int)n), "use a smaller --n");
    struct run *run = memory_allocate(sizeof *run);
    run->dgemm = dgemm_make((int)n, (int)n);
    if (!run->dgemm)
        bench_abort(EXIT_BROKEN, "cannot allocate three matrices of order %ld; use a smaller --n",
                    n);
    json_string(bench.json, "blas", blas_name());
    json_integer(bench.json, "threads_per_rank", omp_get_max_threads());
    if (bench.rank == 0)
        printf("\nBLAS: %s\nThreads: %d a rank\n\nGflop/s:\n", blas_name(), omp_get_max_threads());

    watch_start();
    struct limit limits[LIMITS] = { limit_vector(MPI_COMM_WORLD, LIMIT_WINDOWS) };
    json_array(bench.json, "results");
    struct sample *sample = sample_start(plan, SAMPLE_ROUNDS);
    for (int round = 0; round < SAMPLE_ROUNDS; round++) {
        if (sample_is_due(sample, round))
            sample_bout(sample, MPI_COMM_WORLD, batch, run);
        limits[round + 1] = limit_vector(MPI_COMM_WORLD, LIMIT_WINDOWS);
    }
    struct sample_result result = sample_end(sample);
    int kept = run->samples < MOST_SAMPLES ? run->samples : MOST_SAMPLES;
    double rate = operations() / stats_of(run->own, kept).median;
    double *rates = memory_allocate(2 * (size_t)bench.ranks * sizeof *rates);
    MPI_Gather(&rate, 1, MPI_DOUBLE, rates, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    /* What is reported of a rank is looked at by that rank. */
    MPI_Scatter(rates, 1, MPI_DOUBLE, &rate, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (!stats_is_median(operations() / rate, run->own, kept))
        bench_abort(EXIT_BROKEN, "%g is not the rate of the median product", rate);
    if (bench.rank == 0)
        report(run, &result, limits, rates, rates + bench.ranks);
    json_end(bench.json);
    check(run);
    watch_report();
    dgemm_free(run->dgemm);
    free(run);
    free(rates);
    return bench_end();
}
