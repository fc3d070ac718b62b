/* What the system says of this host. */
#ifndef ASSAY_HOST_H
#define ASSAY_HOST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that can be taken without swapping; SIZE_MAX where the kernel does not say. */
size_t host_available_memory(void);

/* Bytes of the largest cache of CPU 0; 64 MiB where the system does not say. */
size_t host_last_level_cache(void);

#ifdef __cplusplus
}
#endif

#endif
