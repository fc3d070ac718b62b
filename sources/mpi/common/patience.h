/* A bound for what may hang: the job ends, and says in what. */
#ifndef ASSAY_PATIENCE_H
#define ASSAY_PATIENCE_H

#include "options.h"

/* For the options table of a program. */
enum { PATIENCE_SECONDS = 60 };
/* clang-format off */
#define PATIENCE_OPTION(seconds)                                                                  \
    { .name = "patience", .kind = OPTION_COUNT, .value = &(seconds), .argument = "SECONDS",       \
      .low = 1, .high = 3600,                                                                     \
      .help = "beyond its budget, until a measurement counts as hung and ends the job" }
/* clang-format on */

/* From now on, on this rank: after so many whole seconds it says that what is named "did not come to an
 * end", and leaves with EXIT_BROKEN. */
void patience_start(double seconds, const char *format, ...) __attribute__((format(printf, 2, 3)));

void patience_end(void);

#endif
