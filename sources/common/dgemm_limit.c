#include <omp.h>
#include <stdlib.h>

#include "blas.h"
#include "two_clocks.h"
#include "windows.h"

enum { PAGE = 4096, MOST_PRODUCTS = 64 };

/* The columns of C are shared among the threads, each thread's being touched by it first. */
struct dgemm {
    int n, k;
    double *a, *b, *c;
    long times; /* it was multiplied */
    struct two_clocks took; /* all of them */
};

/* Whole numbers of both signs, which cancel: sums of their products are exact in double precision,
 * and stay so over many repeats. In single precision, or in less, they are not. */
enum { SCALE_OF_A = 9001, SCALE_OF_B = 1021 };

static double element_of_a(size_t i)
{
    return SCALE_OF_A * ((double)(i % 7) - 3);
}

static double element_of_b(size_t i)
{
    return SCALE_OF_B * ((double)(i % 5) - 2);
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
    struct instant start = two_clocks_now();
#pragma omp parallel
    {
        int from = first_column(d, omp_get_thread_num());
        int to = first_column(d, omp_get_thread_num() + 1);
        blas_subtract_product(d->n, to - from, d->k, d->a, d->n, d->b + (size_t)from * d->k, d->k,
                              d->c + (size_t)from * d->n, d->n);
    }
    two_clocks_operation();
    struct two_clocks took = two_clocks_between(start, two_clocks_now());
    d->times += (long)took.made;
    two_clocks_add(&d->took, took);
    return took.seconds;
}

void dgemm_bounds(const struct dgemm *d, double *least, double *most)
{
    *least = d->took.least;
    *most = d->took.most;
}

long dgemm_times(const struct dgemm *d)
{
    return d->times;
}

double dgemm_scale(void)
{
    return (double)SCALE_OF_A * SCALE_OF_B;
}

double dgemm_last(const struct dgemm *d)
{
    return d->c[(size_t)d->n * d->n - 1];
}

/* Rows repeat after 7, and columns after 5: so few products tell all elements. */
int dgemm_wrong_column(const struct dgemm *d)
{
    enum { ROWS = 7, COLUMNS = 5 };
    size_t n = (size_t)d->n, k = (size_t)d->k;
    double right[COLUMNS][ROWS];
    for (size_t column = 0; column < COLUMNS; column++)
        for (size_t row = 0; row < ROWS; row++) {
            double product = 0;
            for (size_t i = 0; i < k; i++)
                product += element_of_a(i * n + row) * element_of_b(column * k + i);
            right[column][row] = first_of_c - (double)d->times * product;
        }
    for (size_t column = 0; column < n; column++)
        for (size_t row = 0; row < n; row++)
            if (d->c[column * n + row] != right[column % COLUMNS][row % ROWS])
                return (int)column;
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

struct limit limit_dgemm(MPI_Comm comm, struct dgemm *dgemm, int products)
{
    double seconds[MOST_PRODUCTS], longer[MOST_PRODUCTS];
    int ranks;
    products = products < MOST_PRODUCTS ? products : MOST_PRODUCTS;
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < products; i++) {
        MPI_Barrier(comm);
        double began = two_clocks_system();
        seconds[i] = dgemm_multiply(dgemm);
        longer[i] = two_clocks_system() - began + omp_get_wtick();
    }
    MPI_Allreduce(MPI_IN_PLACE, seconds, products, MPI_DOUBLE, MPI_MAX, comm);
    MPI_Allreduce(MPI_IN_PLACE, longer, products, MPI_DOUBLE, MPI_MAX, comm);
    double elements = (double)dgemm->n * dgemm->k; /* of A, each with all columns of B */
    return (struct limit){
        .rate = 2.0 * dgemm->n * dgemm->n * dgemm->k * ranks / windows_best(seconds, products),
        .least = elements * ranks * 2 * dgemm->n / windows_best(longer, products),
    };
}
