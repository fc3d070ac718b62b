/* clock: the frequency of the cores under load, and what keeps them from it.
 *
 * Each thread runs a chain of additions that take one cycle each (chain.h), so additions per second
 * are cycles per second; no counter, no driver and no rights are needed. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "chain.h"
#include "memory.h"
#include "stats.h"
#include "two_clocks.h"
#include "vector_kernels.h"
#include "watch.h"

static const struct bench_about about = {
    .program = "clock",
    .purpose = "frequency of the cores under load, and what keeps them from it",
    .text =
        "A chain of dependent integer additions, one cycle each, tells the frequency: alone\n"
        "(scalar), and in short turns with multiply-adds in the widest vectors, for which many\n"
        "CPUs run slower (vector). Each thread measures in slices of a millisecond. A rank's\n"
        "frequency is that of its threads' best slices (the first decile); its slowest slice and\n"
        "the cycles lost against its fastest slice tell of interruptions, of cores shared with others and of\n"
        "throttling. The longest call of the chain against the shortest, in the JSON file, tells of the\n"
        "longest interruption. At the end stand the CPU time that others took, time that a hypervisor\n"
        "stole, quotas used up, and how often heat or power slowed the CPUs down.\n",
    .examples = "  mpirun -n 2 clock\n"
                "  OMP_NUM_THREADS=8 mpirun -n 2 --bind-to numa clock --seconds 10 --json c.json\n",
    .min_ranks = 1,
    .thread_funneled = true,
};

static double seconds = 1;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "seconds", .kind = OPTION_NUMBER, .value = &seconds, .argument = "SECONDS",
      .low = 0.01, .high = 600, .help = "time for each of the two loads" },
    { .name = NULL },
};
/* clang-format on */

static const double SLICE = 1e-3;

/* The loads take turns, so that phases of the machine meet both alike. */
enum { ROUNDS = 4 };

enum { FMA_ITERATIONS = 32000 }; /* some 320,000 cycles: vectors work for four fifths of the time */

enum load { SCALAR, VECTOR, LOADS };

static const char *const load_names[] = { "scalar", "vector" };

/* What one thread measured. */
struct thread_times {
    double *hz, *flops; /* of each slice, per second */
    int slices;
    double additions, chain_seconds;
    double flop, fma_seconds;
    long sum; /* of the chain: how many additions there were */
    double by_slices; /* additions, by the rates of the slices and their times */
    double flop_by_slices;
    double rest; /* seconds between the last slice and the end */
    double shortest, longest; /* seconds of a call of the chain and of what interrupted it */
    struct two_clocks clocks; /* of all of it */
};

/* Each call does the same work: whatever one takes longer than the shortest, something else had the
 * core (the fixed work quantum of FTQ/FWQ, Sottile and Minnich, 2004). */
static void take_quantum(struct thread_times *times, double took)
{
    if (times->shortest == 0 || took < times->shortest)
        times->shortest = took;
    if (took > times->longest)
        times->longest = took;
}

/* Without vectors the chain's time is that of the whole slice, so that an interruption anywhere
 * shows; with them it is that of the chain's turns only. */
static void measure_thread(enum load load, const struct vector_kernels *kernels, int most_slices,
                           struct thread_times *times)
{
    struct instant began = two_clocks_now();
    double start = began.seconds, now = start;
    while (now < start + seconds / ROUNDS && times->slices < most_slices) {
        double slice_start = now, additions = 0, chain_seconds = 0, flops = 0, fma_seconds = 0;
        while (now < slice_start + SLICE) {
            double before = now;
            if (load == VECTOR) {
                double made = kernels->fma(FMA_ITERATIONS);
                before = omp_get_wtime();
                flops += made * kernels->flops;
                fma_seconds += before - now;
            }
            times->sum = chain(times->sum, 1);
            now = omp_get_wtime();
            chain_seconds += now - before;
            additions += CHAIN_ADDITIONS;
            take_quantum(times, now - before);
        }
        times->hz[times->slices] = additions / chain_seconds;
        times->flops[times->slices] = load == VECTOR ? flops / fma_seconds : 0;
        times->by_slices += times->hz[times->slices] * chain_seconds;
        times->flop_by_slices += times->flops[times->slices++] * fma_seconds;
        times->additions += additions;
        times->chain_seconds += chain_seconds;
        times->flop += flops;
        times->fma_seconds += fma_seconds;
    }
    struct instant ended = two_clocks_now();
    times->rest += ended.seconds - now;
    two_clocks_add(&times->clocks, two_clocks_between(began, ended));
}

/* What rank 0 learns of a rank. */
struct rank_clock {
    double threads;
    double best, slowest, fastest; /* slices, in cycles per second */
    double lost; /* share of the cycles that the fastest slice would have had */
    double flops; /* per second: that of the best slices times threads */
    /* Of the slices, and how many of them are faster than the best, and as fast or faster. */
    double slices, faster, fast, flops_faster, flops_fast;
    /* Of all threads, for whoever holds one against the other. */
    double additions, counted, by_slices, chain_seconds;
    double flop, flop_by_slices, fma_seconds, rest;
    double shortest, longest; /* call of the chain */
    struct two_clocks clocks;
};

enum { RANK_CLOCK_DOUBLES = sizeof(struct rank_clock) / sizeof(double) };

static void measure(enum load load, struct thread_times *threads, int most_slices)
{
    const struct vector_kernels *kernels = vector_kernels();
    MPI_Barrier(MPI_COMM_WORLD);
#pragma omp parallel
    {
        struct thread_times times = threads[omp_get_thread_num()];
        measure_thread(load, kernels, most_slices, &times);
        threads[omp_get_thread_num()] = times;
    }
}

/* Of rates that are sorted: what windows_best() is of times. */
static double best_rate(const double *sorted, int count)
{
    return sorted[count - (count + 9) / 10];
}

/* How many rates are above, and how many from it on but for rounding. */
static void place_of(const double *rates, int count, double rate, double *above, double *from)
{
    static const double ROUNDING = 1e-12;
    *above = *from = 0;
    for (int i = 0; i < count; i++) {
        *above += rates[i] > rate * (1 + ROUNDING);
        *from += rates[i] >= rate * (1 - ROUNDING);
    }
}

/* All slices of the threads that measured, behind those of the first. */
static struct rank_clock summarise(struct thread_times *threads, int most_threads)
{
    struct rank_clock clock = { 0 };
    double *hz = threads[0].hz, *flops = threads[0].flops;
    int slices = 0;
    for (int i = 0; i < most_threads && threads[i].slices > 0; i++) {
        size_t bytes = (size_t)threads[i].slices * sizeof(double);
        memmove(hz + slices, threads[i].hz, bytes);
        memmove(flops + slices, threads[i].flops, bytes);
        slices += threads[i].slices;
        clock.additions += threads[i].additions;
        clock.counted += (double)threads[i].sum;
        clock.by_slices += threads[i].by_slices;
        clock.chain_seconds += threads[i].chain_seconds;
        clock.flop += threads[i].flop;
        clock.flop_by_slices += threads[i].flop_by_slices;
        clock.fma_seconds += threads[i].fma_seconds;
        clock.rest += threads[i].rest;
        if (i == 0 || threads[i].shortest < clock.shortest)
            clock.shortest = threads[i].shortest;
        if (threads[i].longest > clock.longest)
            clock.longest = threads[i].longest;
        two_clocks_add(&clock.clocks, threads[i].clocks);
        clock.threads++;
    }
    clock.slowest = stats_of(hz, slices).min; /* which sorts them */
    clock.best = best_rate(hz, slices);
    clock.fastest = hz[slices - 1];
    clock.lost = 1 - clock.additions / clock.chain_seconds / clock.fastest;
    stats_of(flops, slices);
    clock.flops = clock.threads * best_rate(flops, slices);
    clock.slices = slices;
    place_of(hz, slices, clock.best, &clock.faster, &clock.fast);
    place_of(flops, slices, clock.flops / clock.threads, &clock.flops_faster, &clock.flops_fast);
    return clock;
}

static void write_place(const char *of, double faster, double fast)
{
    json_array(bench.json, of);
    json_integer(bench.json, NULL, (long long)faster);
    json_integer(bench.json, NULL, (long long)fast);
    json_end(bench.json);
}

/* Operations, the same by the slices' rates, and the time that they took. */
static void write_work(const char *of, double made, double by_slices, double took)
{
    json_object(bench.json, of);
    json_number(bench.json, "made", made);
    json_number(bench.json, "by_slices", by_slices);
    json_number(bench.json, "seconds", took);
    json_end(bench.json);
}

static void write_rank(int rank, const struct rank_clock *clock)
{
    json_object(bench.json, NULL);
    json_integer(bench.json, "rank", rank);
    json_string(bench.json, "host", bench.hosts[bench.host_of[rank]]);
    json_integer(bench.json, "threads", (long long)clock->threads);
    json_number(bench.json, "frequency", clock->best);
    json_number(bench.json, "slowest_slice", clock->slowest);
    json_number(bench.json, "fastest_slice", clock->fastest);
    json_number(bench.json, "lost_share", clock->lost);
    if (clock->flops > 0) /* the scalar load has none */
        json_number(bench.json, "flops", clock->flops);
    json_integer(bench.json, "slices", (long long)clock->slices);
    write_place("frequency_place", clock->faster, clock->fast);
    write_place("flops_place", clock->flops_faster, clock->flops_fast);
    write_work("chain", clock->additions, clock->by_slices, clock->chain_seconds);
    write_work("fma", clock->flop, clock->flop_by_slices, clock->fma_seconds);
    json_object(bench.json, "quantum");
    json_number(bench.json, "shortest", clock->shortest);
    json_number(bench.json, "longest", clock->longest);
    json_end(bench.json);
    json_number(bench.json, "counted", clock->counted);
    json_number(bench.json, "rest", clock->rest);
    two_clocks_json(bench.json, clock->clocks);
    json_end(bench.json);
}

static void report(enum load load, const struct rank_clock *clocks, double *sorted)
{
    int slowest = 0;
    double flops = 0, cycles = 0, slice = clocks[0].slowest, lost = 0;
    for (int rank = 0; rank < bench.ranks; rank++) {
        sorted[rank] = clocks[rank].best;
        if (clocks[rank].best < clocks[slowest].best)
            slowest = rank;
        slice = clocks[rank].slowest < slice ? clocks[rank].slowest : slice;
        lost = clocks[rank].lost > lost ? clocks[rank].lost : lost;
        flops += clocks[rank].flops;
        cycles += clocks[rank].threads * clocks[rank].best;
    }
    struct stats stats = stats_of(sorted, bench.ranks);
    double max = sorted[bench.ranks - 1];
    const char *host = bench.hosts[bench.host_of[slowest]];

    printf("%-8s %8.3f %8.3f %8.3f %9.3f %8.1f %10.1f %10.1f  %d on %s\n", load_names[load],
           stats.min * 1e-9, stats.median * 1e-9, max * 1e-9, slice * 1e-9, 100 * lost,
           flops * 1e-9, flops / cycles, slowest, host);
    fflush(stdout);

    json_object(bench.json, NULL);
    json_string(bench.json, "load", load_names[load]);
    json_object(bench.json, "frequency");
    json_number(bench.json, "min", stats.min);
    json_number(bench.json, "median", stats.median);
    json_number(bench.json, "max", max);
    json_integer(bench.json, "slowest_rank", slowest);
    json_string(bench.json, "slowest_host", host);
    json_end(bench.json);
    json_number(bench.json, "slowest_slice", slice);
    json_number(bench.json, "lost_share", lost);
    if (load == VECTOR) {
        json_number(bench.json, "flops", flops);
        json_number(bench.json, "flops_per_cycle", flops / cycles);
    }
    json_array(bench.json, "ranks");
    for (int rank = 0; rank < bench.ranks; rank++)
        write_rank(rank, &clocks[rank]);
    json_end(bench.json);
    json_end(bench.json);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    int most_slices = (int)(seconds / SLICE) + ROUNDS;
    int team = omp_get_max_threads();
    size_t of_a_load = (size_t)team * (size_t)most_slices;
    double *slices = memory_allocate(2 * LOADS * of_a_load * sizeof *slices);
    struct thread_times *threads = memory_allocate(LOADS * (size_t)team * sizeof *threads);
    for (int i = 0; i < LOADS * team; i++) {
        threads[i].hz = slices + (long)i * most_slices;
        threads[i].flops = slices + (long)(LOADS * team + i) * most_slices;
    }
    struct rank_clock *clocks = memory_allocate((size_t)bench.ranks * sizeof *clocks);
    double *sorted = memory_allocate((size_t)bench.ranks * sizeof *sorted);

    const struct vector_kernels *kernels = vector_kernels();
    if (bench.rank == 0)
        printf("\nVectors: %s, %d bits\n\n%-8s %26s %9s %8s %10s %10s  %s\n"
               "%-8s %8s %8s %8s %9s %8s %10s %10s  %s\n",
               kernels->name, kernels->bits, "", "GHz of the ranks", "slowest", "cycles", "",
               "flops per", "slowest", "load", "min", "median", "max", "slice", "lost %", "Gflop/s",
               "cycle", "rank");
    json_object(bench.json, "vector");
    json_string(bench.json, "name", kernels->name);
    json_integer(bench.json, "bits", kernels->bits);
    json_number(bench.json, "flops", kernels->flops);
    json_end(bench.json);
    watch_start();
    for (int round = 0; round < ROUNDS; round++)
        for (enum load load = 0; load < LOADS; load++)
            measure(load, threads + load * team, most_slices);
    json_array(bench.json, "results");
    for (enum load load = 0; load < LOADS; load++) {
        struct rank_clock own = summarise(threads + load * team, team);
        MPI_Gather(&own, RANK_CLOCK_DOUBLES, MPI_DOUBLE, clocks, RANK_CLOCK_DOUBLES, MPI_DOUBLE, 0,
                   MPI_COMM_WORLD);
        if (bench.rank == 0)
            report(load, clocks, sorted);
    }
    json_end(bench.json);
    watch_report();
    free(slices);
    free(threads);
    free(clocks);
    free(sorted);
    return bench_end();
}
