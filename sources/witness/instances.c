#include "instances.h"

#include <stdlib.h>

#include "map.h"

enum { FIRST_ROOM = 16 };

/* Stands for a log that there was no memory for. */
static struct instances no_log = { .broken = true };

uint32_t instance_stands_for(uint32_t sequence)
{
    uint32_t ranges = sequence / INSTANCES_KEPT; /* range m: from 2^m to 2^(m+1) - 1 of these */
    return ranges ? 1u << (31 - __builtin_clz(ranges)) : 1;
}

static bool grow(struct instances *log)
{
    uint32_t room = log->room ? 2 * log->room : FIRST_ROOM;
    struct instance *kept = realloc(log->kept, room * sizeof *kept);
    if (!kept)
        return false;
    log->kept = kept;
    log->room = room;
    return true;
}

void instance_add(struct instances **log, enum call call, uint16_t site, enum arrival arrival,
                  bool root, int64_t begin, int64_t end)
{
    if (!*log && !(*log = calloc(1, sizeof **log)))
        *log = &no_log;
    struct instances *to = *log;
    if (to->broken)
        return;
    uint32_t sequence = to->next++;
    if (map_hash(sequence) & (instance_stands_for(sequence) - 1))
        return;
    if (to->count == to->room && !grow(to)) {
        to->broken = true;
        return;
    }
    to->kept[to->count++] = (struct instance){ begin, end,           sequence,
                                               site,  (uint8_t)call, (uint8_t)arrival & 127,
                                               root };
}

size_t instances_bytes(const struct instances *log)
{
    return log && log != &no_log ? sizeof *log + log->room * sizeof *log->kept : 0;
}
