#include <omp.h>
#include <stdlib.h>

#include "blas.h"

enum { PAGE = 4096, FEWEST_REPEATS = 3 };

/* The columns of C are shared among the threads, each thread's being touched by it first. */
struct dgemm {
    int n, k;
    double *a, *b, *c;
    long times; /* it was multiplied */
};

/* Small whole numbers of both signs: sums of their products are exact, and stay so over many
 * repeats. */
static double element_of_a(size_t i)
{
    return (double)(i % 7) - 3;
}

static double element_of_b(size_t i)
{
    return (double)(i % 5) - 2;
}

static const double first_of_c = 1;

double limit_dgemm_bytes(int n, int k)
{
    return sizeof(double) * ((double)n * n + 2.0 * n * k) + 3 * PAGE;
}

static double *allocate(size_t doubles)
{
    return aligned_alloc(PAGE, (doubles * sizeof(double) + PAGE) / PAGE * PAGE);
}

static int first_column(const struct dgemm *dgemm, int thread)
{
    return (int)((long)dgemm->n * thread / omp_get_num_threads());
}

struct dgemm *dgemm_make(int n, int k)
{
    struct dgemm *d = malloc(sizeof *d);
    if (!d)
        return NULL;
    *d = (struct dgemm){ .n = n, .k = k };
    d->a = allocate((size_t)n * k);
    d->b = allocate((size_t)n * k);
    d->c = allocate((size_t)n * n);
    if (!d->a || !d->b || !d->c) {
        dgemm_free(d);
        return NULL;
    }
#pragma omp parallel
    {
        size_t from = (size_t)first_column(d, omp_get_thread_num());
        size_t to = (size_t)first_column(d, omp_get_thread_num() + 1);
        for (size_t i = from * n; i < to * n; i++)
            d->c[i] = first_of_c;
        for (size_t i = from * k; i < to * k; i++) {
            d->a[i] = element_of_a(i);
            d->b[i] = element_of_b(i);
        }
    }
    return d;
}

double dgemm_multiply(struct dgemm *d)
{
    double start = omp_get_wtime();
#pragma omp parallel
    {
        int from = first_column(d, omp_get_thread_num());
        int to = first_column(d, omp_get_thread_num() + 1);
        blas_subtract_product(d->n, to - from, d->k, d->a, d->n, d->b + (size_t)from * d->k, d->k,
                              d->c + (size_t)from * d->n, d->n);
    }
    d->times++;
    return omp_get_wtime() - start;
}

int dgemm_wrong_column(const struct dgemm *d)
{
    for (int column = 0; column < d->n; column++) {
        size_t n = (size_t)d->n, k = (size_t)d->k, row = (size_t)column * 7919 % n;
        double product = 0;
        for (size_t i = 0; i < k; i++)
            product += element_of_a(i * n + row) * element_of_b((size_t)column * k + i);
        if (d->c[(size_t)column * n + row] != first_of_c - (double)d->times * product)
            return column;
    }
    return -1;
}

void dgemm_free(struct dgemm *d)
{
    if (!d)
        return;
    free(d->a);
    free(d->b);
    free(d->c);
    free(d);
}

double limit_dgemm(MPI_Comm comm, int n, int k, double seconds)
{
    struct dgemm *dgemm = dgemm_make(n, k);
    int ranks, everywhere = dgemm != NULL;
    MPI_Comm_size(comm, &ranks);
    MPI_Allreduce(MPI_IN_PLACE, &everywhere, 1, MPI_INT, MPI_MIN, comm);
    double best = 0, start = omp_get_wtime(), elapsed = 0;
    if (everywhere)
        dgemm_multiply(dgemm); /* brings caches and clocks up */
    for (int repeat = 0; everywhere && (repeat < FEWEST_REPEATS || elapsed < seconds); repeat++) {
        MPI_Barrier(comm);
        double times[] = { dgemm_multiply(dgemm), omp_get_wtime() - start };
        /* The slowest rank counts, and all agree on when to end. */
        MPI_Allreduce(MPI_IN_PLACE, times, 2, MPI_DOUBLE, MPI_MAX, comm);
        double rate = 2.0 * n * n * k * ranks / times[0];
        best = rate > best ? rate : best;
        elapsed = times[1];
    }
    dgemm_free(dgemm);
    return best;
}
