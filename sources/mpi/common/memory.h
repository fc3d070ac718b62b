/* Memory for messages: asked for before it is taken, page-aligned, touched by its owner. */
#ifndef ASSAY_MEMORY_H
#define ASSAY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Collective over MPI_COMM_WORLD. Refuses (exit 2, with the figures) when what the ranks of a
 * host need together exceeds what that host has available. `remedy`: what to do, an imperative. */
void memory_require(size_t bytes_on_this_rank, const char *remedy);

/* Page-aligned and zeroed by this rank, so that pages exist and lie near it. Never NULL:
 * aborts with a sentence. free() it. bytes may be 0. */
void *memory_allocate(size_t bytes);

/* Local. From now on what is freed stays with the process, as of an MPI that takes memory for each
 * call. Otherwise malloc may give it back to the kernel each time, as it happens to lie, and the
 * next call has its pages made anew. */
void memory_keep_freed(void);

/* A pool of message buffers. Cache-on: one slot, used again and again. Cache-off: the pool is
 * larger than the last-level cache and the slots are visited in a scattered order, so that a slot
 * has left the caches when its turn comes again and no prefetcher guesses the next one. */
struct memory_pool {
    char *memory;
    size_t bytes;    /* of memory */
    bool cached;     /* cache-on */
    size_t stride;   /* from slot to slot */
    size_t end;      /* stride times the number of slots */
    size_t step;     /* from one visited slot to the next, in bytes */
    size_t position; /* of the current slot */
};

/* Bytes that a pool with `slots` slots for messages of `size` bytes takes. */
size_t memory_pool_bytes(size_t size, size_t slots, bool cached);

/* Divide it before use. */
struct memory_pool memory_pool_make(size_t bytes, bool cached);
void memory_pool_free(struct memory_pool *pool);

/* Divides the pool into slots for messages of `size` bytes: exactly `slots` of them with
 * cache-on, as many as it holds with cache-off. Starts at the first one. */
void memory_pool_divide(struct memory_pool *pool, size_t size, size_t slots);

/* The current slot. */
static inline char *memory_pool_slot(const struct memory_pool *pool)
{
    return pool->memory + pool->position;
}

/* Goes on to the next slot and returns it. */
static inline char *memory_pool_next(struct memory_pool *pool)
{
    pool->position += pool->step;
    if (pool->position >= pool->end)
        pool->position -= pool->end;
    return pool->memory + pool->position;
}

#endif
