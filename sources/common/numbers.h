/* Numbers as people write them, on command lines and in input files: a text that is one, and nothing
 * else. */
#ifndef ASSAY_NUMBERS_H
#define ASSAY_NUMBERS_H

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Whether the text is a whole number in that range. */
static inline bool read_whole(const char *text, long low, long high, long *value)
{
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    return end != text && !isspace((unsigned char)text[0]) && *end == '\0' && errno == 0 &&
           *value >= low && *value <= high;
}

/* Whether the text is a number, and a finite one. */
static inline bool read_number(const char *text, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return end != text && !isspace((unsigned char)text[0]) && *end == '\0' && errno == 0 &&
           isfinite(*value);
}

#endif
