/* What a rank has, as NAME=VALUE, each with its '\0', one after the other. Ranks mostly have the same:
 * rank 0 reports all, and another rank what it has otherwise. */
#ifndef ASSAY_ENTRIES_H
#define ASSAY_ENTRIES_H

#include <stddef.h>

#include "json.h"

struct entries {
    char *text;
    size_t size;
};

/* A text for each; of those of one name the first counts. */
void entries_write(struct json *json, const struct entries *entries);

/* Collective over witness.comm: the text of an object of those that this rank has otherwise than
 * rank 0, and null for those that it has not. NULL where there are none; the caller frees it. */
char *entries_differing(const struct entries *own);

#endif
