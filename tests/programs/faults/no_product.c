/* A fault: the processor multiplies no matrices. DGEMM returns at once and leaves C as it was.
 *
 * Preload it into any program whose BLAS is a shared library:
 *     cc -shared -fPIC no_product.c -o no_product.so
 *     LD_PRELOAD=$PWD/no_product.so dgemm */
void dgemm_(void) {}

/* As scipy-openblas32 calls it. */
void scipy_dgemm_(void) {}
