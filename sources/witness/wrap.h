/* How a wrapper is written.
 *
 * Only the wrappers are visible outside the library. Where an MPI has them, LARGE holds the forms
 * with MPI_Count, which are the same but for the type of the counts. */
#ifndef ASSAY_WRAP_H
#define ASSAY_WRAP_H

#include "record.h"

#define EXPORT __attribute__((visibility("default")))

#if MPI_VERSION >= 4
#define LARGE(...) __VA_ARGS__
#else
#define LARGE(...)
#endif

#endif
