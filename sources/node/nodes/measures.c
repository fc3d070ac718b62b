#define _GNU_SOURCE 1 /* sched_getcpu */

#include "measures.h"

#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "arrays.h"
#include "bench.h"
#include "blas.h"
#include "chain.h"
#include "stats.h"
#include "system.h"
#include "vector_kernels.h"

const char *const measure_names[] = { "triad", "dgemm", "frequency" };

static const double SLICE = 1e-3, TRIAD_BYTES = 24;

enum { MOST_SLICES = 1 << 16 };

static struct arrays arrays;
static struct dgemm *dgemm;
static double flops; /* of a product */
static long products;
static struct account account;
static struct noise noise;

size_t measures_bytes(size_t elements, int n)
{
    return arrays_bytes(elements) + (size_t)limit_dgemm_bytes(n, n);
}

void measures_start(size_t elements, int n)
{
    const char *why = blas_start();
    if (why)
        bench_abort(EXIT_BROKEN, "%s", why);
    dgemm = dgemm_make(n, n);
    if (!dgemm || !arrays_take(&arrays, elements))
        bench_abort(EXIT_BROKEN, "cannot allocate %zu bytes; use a smaller --size or --n",
                    measures_bytes(elements, n));
    flops = 2.0 * n * n * n;
}

static double triad_pass(void)
{
    if (arrays_run(&arrays, vector_kernels()->normal, VECTOR_TRIAD, 1).seconds < 0)
        bench_abort(EXIT_BROKEN, "not all threads made a pass of the triad");
    return TRIAD_BYTES * (double)arrays.elements;
}

static double dgemm_pass(void)
{
    dgemm_multiply(dgemm);
    products++;
    return flops;
}

/* Work over time, of whole passes. */
static double rate(enum measure measure, double (*pass)(void), double seconds)
{
    struct instant start = two_clocks_now();
    struct two_clocks passed;
    double work = 0, passes = 0;
    do {
        work += pass();
        passes++;
        passed = two_clocks_between(start, two_clocks_now());
    } while (passed.seconds < seconds);
    double rate = work / passed.seconds;
    account.of[measure].work += work;
    account.of[measure].passes += passes;
    account.of[measure].by_rates += rate * passed.seconds;
    account.of[measure].rates += rate;
    two_clocks_add(&account.clocks, passed);
    return rate;
}

/* Seconds in which the calling thread was ready to run, and other threads had its CPU. */
static double seconds_waited(void)
{
    char *text = system_text("/proc/thread-self/schedstat");
    unsigned long long waited = 0;
    if (text && sscanf(text, "%*u %llu", &waited) != 1)
        waited = 0;
    free(text);
    return 1e-9 * (double)waited;
}

/* The median of an interrupted core's slices is that of an uninterrupted one's, as long as half of
 * them are whole. Noise is what calls took beyond a whole one (the fixed work quantum of FTQ/FWQ,
 * Sottile and Minnich, 2004); a slice may have none, if its first call was interrupted for long. */
static double frequency(double seconds)
{
    double slowest = 0;
    noise = (struct noise){ 0 };
#pragma omp parallel
    {
        double waited = seconds_waited();
        struct instant began = two_clocks_now();
        double *slices = malloc(MOST_SLICES * sizeof *slices), start = began.seconds;
        double work = 0, by_slices = 0, now = start;
        double lost = 0, longest = 0,
               earlier = INFINITY; /* the shortest call of the slice before */
        int count = 0;
        long sum = 0;
        while (slices && now < start + seconds && count < MOST_SLICES) {
            double begun = now, additions = 0, shortest = INFINITY, slowest_call = 0;
            while (now < begun + SLICE) {
                double before = now;
                sum = chain(sum, 1);
                additions += CHAIN_ADDITIONS;
                now = omp_get_wtime();
                shortest = fmin(shortest, now - before);
                slowest_call = fmax(slowest_call, now - before);
            }
            double quantum = fmin(shortest, earlier);
            lost += fmax(0, now - begun - additions / CHAIN_ADDITIONS * quantum);
            longest = fmax(longest, slowest_call - quantum);
            earlier = shortest;
            slices[count] = additions / (now - begun);
            work += additions;
            by_slices += slices[count++] * (now - begun);
        }
        struct two_clocks passed = two_clocks_between(began, two_clocks_now());
        waited = seconds_waited() - waited;
        double median = count ? stats_of(slices, count).median : 0, share = lost / (now - start);
        free(slices);
#pragma omp critical
        {
            if (noise.threads == 0 || share > noise.share) {
                noise.share = share;
                noise.others = waited / (now - start);
                noise.cpu = sched_getcpu();
            }
            noise.all += share;
            noise.threads++;
            noise.longest = fmax(noise.longest, longest);
            slowest = slowest == 0 || median < slowest ? median : slowest;
            account.of[FREQUENCY].work += work;
            account.of[FREQUENCY].passes += (double)sum;
            account.of[FREQUENCY].by_rates += by_slices;
            two_clocks_add(&account.clocks, passed);
        }
    }
    account.of[FREQUENCY].rates += slowest;
    return slowest;
}

struct noise measures_noise(void)
{
    return noise;
}

double measures_take(enum measure measure, double seconds)
{
    switch (measure) {
    case TRIAD:
        return rate(TRIAD, triad_pass, seconds);
    case DGEMM:
        return rate(DGEMM, dgemm_pass, seconds);
    default:
        return frequency(seconds);
    }
}

struct account measures_account(void)
{
    struct account passed = account;
    account = (struct account){ .clocks = { 0 } };
    return passed;
}

/* The triad alone gives a = b + s c, however often; b and c stay as they were. */
const char *measures_end(void)
{
    size_t wrong = 0;
#pragma omp parallel for reduction(+ : wrong)
    for (size_t i = 0; i < arrays.elements; i++)
        wrong += arrays.a[i] != arrays.b[0] + ARRAYS_SCALE * arrays.c[0] ||
                 arrays.b[i] != arrays.b[0] || arrays.c[i] != arrays.c[0];
    bool right = dgemm_times(dgemm) == products && dgemm_wrong_column(dgemm) < 0;
    arrays_return(&arrays);
    dgemm_free(dgemm);
    return wrong ? "an array in memory" : right ? NULL : "a matrix product";
}
