/* The few operations of BLAS that the suite uses, on the BLAS that CMake found (blas.cmake).
 *
 * Threads: OpenMP's alone. After blas_start each call computes on the thread that makes it, and
 * programs share work among their OpenMP threads by calling from each. A second pool of threads
 * inside the library would know nothing of OMP_NUM_THREADS, nor of where threads are bound.
 *
 * Matrices are column-major; ld... are leading dimensions. Empty ones are allowed. */
#ifndef ASSAY_BLAS_H
#define ASSAY_BLAS_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Once, before any other: no threads of the library's own from here on. Returns NULL, or a sentence
 * that says why this library cannot be called from OpenMP's threads. */
const char *blas_start(void);

/* The library, its version and kernels as it tells them itself, and a word of warning where its
 * kernels use narrower vectors than this CPU has. */
const char *blas_name(void);

/* C -= A B, with A m x k and B k x n. */
void blas_subtract_product(int m, int n, int k, const double *a, int lda, const double *b, int ldb,
                           double *c, int ldc);

/* B := L^-1 B, with L m x m, unit lower triangular, and B m x n. */
void blas_solve_unit_lower(int m, int n, const double *l, int ldl, double *b, int ldb);

/* x := U^-1 x, with U n x n, upper triangular. */
void blas_solve_upper(int n, const double *u, int ldu, double *x);

/* y += factor A x, with A m x n. */
void blas_add_product_vector(int m, int n, double factor, const double *a, int lda, const double *x,
                             double *y);

/* The limit of an LU factorisation: C -= A B with A n x k and B k x n on each rank. Make, multiply again
 * and again, check, free. NULL without memory. */
struct dgemm *dgemm_make(int n, int k);
void dgemm_free(struct dgemm *dgemm);

/* Bytes that it takes. */
double limit_dgemm_bytes(int n, int k);

/* Returns seconds. */
double dgemm_multiply(struct dgemm *dgemm);

/* Collective. Floating-point operations per second over all ranks of `comm`, which multiply at the same
 * time, each with its OpenMP threads. The best (windows.h) of so many products, each as long as it
 * took the slowest rank. */
struct limit limit_dgemm(MPI_Comm comm, struct dgemm *dgemm, int products);

/* Within which seconds all products together took, by the system's clock (two_clocks.h). */
void dgemm_bounds(const struct dgemm *dgemm, double *least, double *most);

/* How often it was multiplied. */
long dgemm_times(const struct dgemm *dgemm);
/* What the product of whole numbers of one digit is multiplied by. */
double dgemm_scale(void);
/* The last element of C. */
double dgemm_last(const struct dgemm *dgemm);

/* A column of C with a wrong element, of all of them; -1 if none is. */
int dgemm_wrong_column(const struct dgemm *dgemm);

#ifdef __cplusplus
}
#endif

#endif
