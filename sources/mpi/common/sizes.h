/* The message sizes between --min and --max: both ends, and the powers of two between them. */
#ifndef ASSAY_SIZES_H
#define ASSAY_SIZES_H

#include <stdbool.h>
#include <stddef.h>

#include "bench.h"

/* The two options, for the options table of a program. */
/* clang-format off */
#define SIZES_OPTIONS(smallest, largest, least, what)                                             \
    { .name = "min", .kind = OPTION_SIZE, .value = &(smallest), .argument = "BYTES",              \
      .low = (least), .high = (size_t)1 << 30,                                                    \
      .help = "smallest " what "; the sizes are the smallest, the largest, and the powers of "    \
              "two between" },                                                                    \
    { .name = "max", .kind = OPTION_SIZE, .value = &(largest), .argument = "BYTES",               \
      .low = (least), .high = (size_t)1 << 30, .help = "largest " what }
/* clang-format on */

/* The size after `size`; greater than `max` when there is none. */
static inline size_t sizes_next(size_t size, size_t max)
{
    size_t next = 1;
    while (next <= size)
        next *= 2;
    return size < max && next > max ? max : next;
}

static inline int sizes_count(size_t min, size_t max)
{
    int count = 1;
    for (size_t size = min; size < max; size = sizes_next(size, max))
        count++;
    return count;
}

/* Collective: refuses options that are no sizes. */
static inline void sizes_require(size_t min, size_t max, bool are_of_doubles)
{
    if (min > max)
        bench_refuse("--min %zu is greater than --max %zu", min, max);
    if (are_of_doubles && (min % 8 || max % 8))
        bench_refuse("--min %zu and --max %zu must be multiples of 8, the bytes of a double", min,
                     max);
}

#endif
