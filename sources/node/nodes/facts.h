/* What a host has, and the errors that its memory's controllers have counted. */
#ifndef ASSAY_FACTS_H
#define ASSAY_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "json.h"

struct facts {
    uint64_t memory; /* bytes that the kernel manages; 0: not told */
    uint64_t cpus, numa_domains;
    char model[64], firmware[64]; /* of the machine; empty: not told */
    char devices[256];            /* network devices and their firmware: mlx5_0 22.36.1010, ... */
};

struct memory_errors {
    bool known;
    uint64_t corrected, uncorrected;
};

struct facts facts_read(void);

/* Since the host was started, as the kernel's EDAC drivers count them. */
struct memory_errors facts_memory_errors(void);

void facts_write(struct json *json, const struct facts *facts);

#endif
