#include "measures.h"

#include <omp.h>
#include <stdlib.h>

#include "arrays.h"
#include "bench.h"
#include "blas.h"
#include "chain.h"
#include "stats.h"
#include "vector_kernels.h"

const char *const measure_names[] = { "triad", "dgemm", "frequency" };

static const double SLICE = 1e-3, TRIAD_BYTES = 24;

enum { MOST_SLICES = 1 << 16 };

static struct arrays arrays;
static struct dgemm *dgemm;
static double flops; /* of a product */

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
    arrays_run(&arrays, vector_kernels()->normal, VECTOR_TRIAD, 1);
    return TRIAD_BYTES * (double)arrays.elements;
}

static double dgemm_pass(void)
{
    dgemm_multiply(dgemm);
    return flops;
}

/* Work over time, of whole passes. */
static double rate(double (*pass)(void), double seconds)
{
    double start = omp_get_wtime(), work = 0, passed;
    do {
        work += pass();
        passed = omp_get_wtime() - start;
    } while (passed < seconds);
    return work / passed;
}

/* The median of an interrupted core's slices is that of an uninterrupted one's, as long as half of
 * them are whole. */
static double frequency(double seconds)
{
    double slowest = 0;
#pragma omp parallel
    {
        double *slices = malloc(MOST_SLICES * sizeof *slices), start = omp_get_wtime();
        int count = 0;
        long sum = 0;
        for (double now = start; slices && now < start + seconds && count < MOST_SLICES;) {
            double begun = now, additions = 0;
            while (now < begun + SLICE) {
                sum = chain(sum, 1);
                additions += CHAIN_ADDITIONS;
                now = omp_get_wtime();
            }
            slices[count++] = additions / (now - begun);
        }
        double median = count ? stats_of(slices, count).median : 0;
        free(slices);
#pragma omp critical
        slowest = slowest == 0 || median < slowest ? median : slowest;
    }
    return slowest;
}

double measures_take(enum measure measure, double seconds)
{
    switch (measure) {
    case TRIAD:
        return rate(triad_pass, seconds);
    case DGEMM:
        return rate(dgemm_pass, seconds);
    default:
        return frequency(seconds);
    }
}

/* The triad alone gives a = b + s c, however often; b and c stay as they were. */
const char *measures_end(void)
{
    size_t wrong = 0;
#pragma omp parallel for reduction(+ : wrong)
    for (size_t i = 0; i < arrays.elements; i++)
        wrong += arrays.a[i] != arrays.b[0] + ARRAYS_SCALE * arrays.c[0] ||
                 arrays.b[i] != arrays.b[0] || arrays.c[i] != arrays.c[0];
    int column = dgemm_wrong_column(dgemm);
    arrays_return(&arrays);
    dgemm_free(dgemm);
    return wrong ? "an array in memory" : column >= 0 ? "a matrix product" : NULL;
}
