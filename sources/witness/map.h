/* A hash table from numbers to pointers. */
#ifndef ASSAY_MAP_H
#define ASSAY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map {
    struct map_entry {
        uint64_t key;
        void *value; /* NULL: an empty place */
    } *entries;
    size_t room, count; /* room: a power of two, or 0 before the first entry */
};

/* NULL where there is none. */
void *map_get(const struct map *map, uint64_t key);
/* Replaces what was there; false without memory. */
bool map_put(struct map *map, uint64_t key, void *value);
/* Returns what was there. */
void *map_remove(struct map *map, uint64_t key);
size_t map_bytes(const struct map *map);

/* Spreads a number over all 64 bits. */
static inline uint64_t map_hash(uint64_t key)
{
    key = (key ^ (key >> 32)) * 0xd6e8feb86659fd93u;
    key = (key ^ (key >> 32)) * 0xd6e8feb86659fd93u;
    return key ^ (key >> 32);
}

/* Of a text, NULL as an empty one; another seed gives another hash. */
static inline uint64_t map_hash_text(const char *text, uint64_t seed)
{
    uint64_t hash = seed;
    for (; text && *text; text++)
        hash = map_hash(hash ^ (unsigned char)*text);
    return hash;
}

#endif
