/* The log of a communicator's blocking collectives.
 *
 * The members of a communicator call its collectives in the same order, so the k-th is the same
 * instance on all of them. All instances are kept at first. Later ones are sampled: about
 * INSTANCES_KEPT of those from 2^m to 2^(m+1) - 1, so that a log grows with the logarithm of their
 * number: 24 bytes for each kept one, 300 KB for a million collectives. A hash of k decides, so that
 * all members keep the same ones with no word between them, and a program that repeats a pattern of
 * collectives is sampled evenly. */
#ifndef ASSAY_INSTANCES_H
#define ASSAY_INSTANCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls.h"

enum { INSTANCES_KEPT = 1024 };

/* Who cannot go on before whom. */
enum arrival { ALL_WAIT_FOR_ALL, ALL_WAIT_FOR_ROOT, ROOT_WAITS_FOR_ALL };

struct instance {
    int64_t begin, end; /* ticks */
    uint32_t sequence;
    uint16_t site; /* its number */
    uint8_t call;
    uint8_t arrival : 7;
    bool root : 1; /* this rank is it */
};

struct instances {
    struct instance *kept;
    uint32_t count, room;
    uint32_t next; /* sequence number */
    bool broken;   /* memory ran out: it is not what the other members keep */
};

/* Makes the log at the first instance. */
void instance_add(struct instances **log, enum call call, uint16_t site, enum arrival arrival,
                  bool root, int64_t begin, int64_t end);
/* How many instances a kept one stands for. */
uint32_t instance_stands_for(uint32_t sequence);
/* Takes NULL. */
size_t instances_bytes(const struct instances *log);

#endif
