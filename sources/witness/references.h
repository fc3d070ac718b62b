/* What loaded libraries and the program refer to: the places that the loader has filled in. */
#ifndef ASSAY_REFERENCES_H
#define ASSAY_REFERENCES_H

#include <link.h>
#include <stdbool.h>

/* What a place is to hold that now holds `now`; `is_weak`: it may be nothing. */
typedef void *references_instead(const char *name, bool is_weak, void *now, void *witness);

/* Goes through the references of a library by name. `witness`: what dlopen calls this library. Not to
 * be called while libraries are visited (bind.c). */
void references_change(const struct dl_phdr_info *library, references_instead *instead,
                       void *witness);

#endif
