#include "map.h"

#include <stdlib.h>

enum { SMALLEST = 16 };

/* The place of a key, or the empty one where it would go. */
static size_t place_of(const struct map *map, uint64_t key)
{
    size_t place = (size_t)map_hash(key) & (map->room - 1);
    while (map->entries[place].value && map->entries[place].key != key)
        place = (place + 1) & (map->room - 1);
    return place;
}

void *map_get(const struct map *map, uint64_t key)
{
    return map->count ? map->entries[place_of(map, key)].value : NULL;
}

static bool grow(struct map *map)
{
    struct map larger = { .room = map->room ? 2 * map->room : SMALLEST, .count = map->count };
    larger.entries = calloc(larger.room, sizeof *larger.entries);
    if (!larger.entries)
        return false;
    for (size_t i = 0; i < map->room; i++)
        if (map->entries[i].value)
            larger.entries[place_of(&larger, map->entries[i].key)] = map->entries[i];
    free(map->entries);
    *map = larger;
    return true;
}

bool map_put(struct map *map, uint64_t key, void *value)
{
    if (2 * (map->count + 1) > map->room && !grow(map))
        return false;
    size_t place = place_of(map, key);
    map->count += !map->entries[place].value;
    map->entries[place] = (struct map_entry){ key, value };
    return true;
}

void *map_remove(struct map *map, uint64_t key)
{
    if (!map->count)
        return NULL;
    size_t hole = place_of(map, key);
    void *value = map->entries[hole].value;
    if (!value)
        return NULL;
    map->entries[hole].value = NULL;
    map->count--;
    /* Those that were pushed on by the removed one move back. */
    for (size_t next = (hole + 1) & (map->room - 1); map->entries[next].value;
         next = (next + 1) & (map->room - 1)) {
        struct map_entry entry = map->entries[next];
        map->entries[next].value = NULL;
        map->entries[place_of(map, entry.key)] = entry;
    }
    return value;
}

size_t map_bytes(const struct map *map)
{
    return map->room * sizeof *map->entries;
}
