#include "blas.h"

#include <dlfcn.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "openblas.h"

/* By the Fortran interface, which every BLAS has: CBLAS is missing in some. */
#define JOIN(prefix, name) prefix##name
#define EXPAND(prefix, name) JOIN(prefix, name)
#define NAME(name) EXPAND(ASSAY_BLAS_PREFIX, name)

void NAME(dgemm_)(const char *, const char *, const int *, const int *, const int *, const double *,
                  const double *, const int *, const double *, const int *, const double *,
                  double *, const int *);
void NAME(dgemv_)(const char *, const int *, const int *, const double *, const double *,
                  const int *, const double *, const int *, const double *, double *, const int *);
void NAME(dtrsm_)(const char *, const char *, const char *, const char *, const int *, const int *,
                  const double *, const double *, const int *, double *, const int *);
void NAME(dtrsv_)(const char *, const char *, const char *, const int *, const double *,
                  const int *, double *, const int *);

/* Each library has its own call for the number of threads, and only the one that is loaded can be
 * asked. ISO C knows no cast from dlsym's object pointer to a function's. */
static void call_with_one(const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    void (*set_threads)(int) = NULL;
    memcpy(&set_threads, &symbol, sizeof symbol);
    if (set_threads)
        set_threads(1);
}

static const char *ask(const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    char *(*answer)(void) = NULL;
    memcpy(&answer, &symbol, sizeof symbol);
    return answer ? answer() : NULL;
}

/* NULL where the library is none of OpenBLAS. */
static const char *openblas_config(void)
{
    const char *config = ask("scipy_openblas_get_config");
    return config ? config : ask("openblas_get_config");
}

const char *blas_start(void)
{
    int threads = omp_get_max_threads();
    call_with_one("scipy_openblas_set_num_threads");
    call_with_one("openblas_set_num_threads");
    call_with_one("MKL_Set_Num_Threads");
    call_with_one("bli_thread_set_num_threads");
    /* A library that is built with OpenMP sets the number for everybody. */
    omp_set_num_threads(threads);
    const char *config = openblas_config();
    if (threads == 1 || !config || openblas_takes_threads(config))
        return NULL;
    static char why[512];
    snprintf(
        why, sizeof why,
        "the BLAS (%s) is built for a single thread: %d threads that call it at once would spoil "
        "each other's results; link one that is built with threads (or, from OpenBLAS 0.3.28 on, "
        "with USE_LOCKING=1), or set OMP_NUM_THREADS=1",
        config, threads);
    return why;
}

/* A CPU that is newer than the library, or one that a virtual machine disguises, is taken for an older
 * one, and a variable that somebody has set once is forgotten: half of the vector unit is idle then. */
static const char *warning(const char *kernels)
{
#ifdef __x86_64__
    static const char *const wide[] = { "SkylakeX", "Cooperlake", "SapphireRapids", "Zen4",
                                        "Zen5" };
    if (!__builtin_cpu_supports("avx512f"))
        return "";
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (strcasecmp(kernels, wide[i]) == 0)
            return "";
    return getenv("OPENBLAS_CORETYPE")
               ? " (this CPU's AVX-512 is idle: OPENBLAS_CORETYPE is set in the environment)"
               : " (this CPU's AVX-512 is idle: try OPENBLAS_CORETYPE=SkylakeX)";
#else
    (void)kernels;
    return "";
#endif
}

const char *blas_name(void)
{
    static char name[512];
    const char *version = openblas_config();
    const char *kernels = ask("scipy_openblas_get_corename");
    if (!kernels)
        kernels = ask("openblas_get_corename");
    if (!version)
        version = ask("bli_info_get_version_str");
    snprintf(name, sizeof name, "%s%s%s%s%s%s", ASSAY_BLAS_NAME, version ? ", " : "",
             version ? version : "", kernels ? ", kernels for " : "", kernels ? kernels : "",
             kernels ? warning(kernels) : "");
    return name;
}

void blas_subtract_product(int m, int n, int k, const double *a, int lda, const double *b, int ldb,
                           double *c, int ldc)
{
    if (m > 0 && n > 0 && k > 0)
        NAME(dgemm_)("N", "N", &m, &n, &k, &(double){ -1 }, a, &lda, b, &ldb, &(double){ 1 }, c,
                     &ldc);
}

void blas_solve_unit_lower(int m, int n, const double *l, int ldl, double *b, int ldb)
{
    if (m > 0 && n > 0)
        NAME(dtrsm_)("L", "L", "N", "U", &m, &n, &(double){ 1 }, l, &ldl, b, &ldb);
}

void blas_solve_upper(int n, const double *u, int ldu, double *x)
{
    if (n > 0)
        NAME(dtrsv_)("U", "N", "N", &n, u, &ldu, x, &(int){ 1 });
}

void blas_add_product_vector(int m, int n, double factor, const double *a, int lda, const double *x,
                             double *y)
{
    if (m > 0 && n > 0)
        NAME(dgemv_)("N", &m, &n, &factor, a, &lda, x, &(int){ 1 }, &(double){ 1 }, y, &(int){ 1 });
}
