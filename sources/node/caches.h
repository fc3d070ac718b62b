/* The caches of this host. */
#ifndef ASSAY_CACHES_H
#define ASSAY_CACHES_H

#include <stddef.h>

/* Bytes of all last-level caches together: a CPU may have several, each for some of its cores. */
size_t caches_last_level(void);

#endif
