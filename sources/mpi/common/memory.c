#include "memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "host.h"
#include "shortage.h"

enum { CACHE_LINE = 64 };

void memory_require(size_t bytes_on_this_rank, const char *remedy)
{
    struct shortage found;
    if (find_shortage((double)bytes_on_this_rank, bench.host_of[bench.rank], &found))
        bench_refuse("the ranks on host %s need %.2f GiB for their buffers but only %.2f GiB are "
                     "available; %s",
                     found.host, found.need, found.available, remedy);
}

void *memory_allocate(size_t bytes)
{
    void *memory;
    if (posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE), bytes ? bytes : 1) != 0)
        bench_abort(EXIT_BROKEN, "cannot allocate %zu bytes; use smaller messages", bytes);
    memset(memory, 0, bytes);
    return memory;
}

void memory_keep_freed(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1); /* never */
#endif
}

/* Large messages start on pages, as separate buffers would; small ones on cache lines. */
static size_t slot_stride(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t grain = size >= page ? page : CACHE_LINE;
    return size ? (size + grain - 1) / grain * grain : grain;
}

size_t memory_pool_bytes(size_t size, size_t slots, bool cached)
{
    size_t needed = slots * slot_stride(size);
    size_t evicting = 2 * host_last_level_cache() + slot_stride(size);
    return cached || needed > evicting ? needed : evicting;
}

struct memory_pool memory_pool_make(size_t bytes, bool cached)
{
    return (struct memory_pool){ .memory = memory_allocate(bytes),
                                 .bytes = bytes,
                                 .cached = cached };
}

void memory_pool_free(struct memory_pool *pool)
{
    free(pool->memory);
    *pool = (struct memory_pool){ 0 };
}

static size_t common_divisor(size_t a, size_t b)
{
    while (b) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void memory_pool_divide(struct memory_pool *pool, size_t size, size_t slots)
{
    pool->stride = slot_stride(size);
    size_t count = pool->cached ? slots : pool->bytes / pool->stride;
    /* Some 0.38 of the way round, and without a common divisor so that every slot has its turn.
     * The few slots of cache-on are visited in order. */
    size_t step = pool->cached ? 1 : (size_t)(0.381966 * (double)count) + 1;
    while (common_divisor(step, count) != 1)
        step++;
    pool->step = step % count * pool->stride;
    pool->end = count * pool->stride;
    pool->position = 0;
}
