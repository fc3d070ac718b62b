/* The loops that a node's limits are measured with, in vectors of the widest kind the CPU has.
 *
 * Chosen at run time, whatever the compiler was told to compile for: a limit must not depend on
 * the flags of the program that is held against it. */
#ifndef ASSAY_VECTOR_KERNELS_H
#define ASSAY_VECTOR_KERNELS_H

#include <stddef.h>

enum { VECTOR_LINE = 8 }; /* doubles in 64 bytes: arrays and parts of arrays start on these */

/* The four operations of STREAM on n elements, a multiple of VECTOR_LINE; arrays are aligned to 64
 * bytes. They return how many elements they wrote: once more the same ones leaves no other trace. */
enum vector_operation {
    VECTOR_COPY,  /* d = x */
    VECTOR_SCALE, /* d = s x */
    VECTOR_ADD,   /* d = x + y */
    VECTOR_TRIAD, /* d = x + s y */
    VECTOR_OPERATIONS,
};
typedef size_t vector_operate(double *restrict d, const double *restrict x,
                              const double *restrict y, double s, size_t n);

struct vector_kernels {
    const char *name; /* "AVX-512" */
    int bits;         /* of a vector */
    double flops;     /* of one iteration of `fma`, where a multiply-add of an element counts 2 */
    double (*fma)(
        long iterations); /* independent chains of multiply-adds; returns how many it made */
    vector_operate *normal[VECTOR_OPERATIONS];
    /* With stores that bypass the caches; NULL where there are none. */
    vector_operate *streaming[VECTOR_OPERATIONS];
};

const struct vector_kernels *vector_kernels(void);

#endif
