/* What an OpenBLAS says of itself. blas.cmake asks the one it finds, blas.c the one that is loaded. */
#ifndef ASSAY_OPENBLAS_H
#define ASSAY_OPENBLAS_H

#include <stdbool.h>
#include <string.h>

/* Whether several threads may call it at once, by its openblas_get_config(). One that is built for a
 * single thread gives calls that overlap the same working memory, unless it is built with
 * USE_LOCKING=1 (its Makefile.rule), which it tells from 0.3.28 on. */
static inline bool openblas_takes_threads(const char *config)
{
    return !strstr(config, "SINGLE_THREADED") || strstr(config, "USE_LOCKING");
}

#endif
