/* The message sizes between --min and --max: both ends, and the powers of two between them. */
#ifndef ASSAY_SIZES_H
#define ASSAY_SIZES_H

#include <stddef.h>

/* The size after `size`; greater than `max` when there is none. */
static inline size_t sizes_next(size_t size, size_t max)
{
    size_t next = 1;
    while (next <= size)
        next *= 2;
    return size < max && next > max ? max : next;
}

#endif
