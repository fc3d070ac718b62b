#include "routes.h"

#include <stdlib.h>

enum { FEW = 64 };

static struct partner *partner_of(struct routes *routes, int rank)
{
    struct partner *partner = map_get(&routes->partners, (uint32_t)rank);
    if (partner || !(partner = calloc(1, sizeof *partner)))
        return partner;
    partner->rank = rank;
    if (!map_put(&routes->partners, (uint32_t)rank, partner)) {
        free(partner);
        return NULL;
    }
    return partner;
}

static uint64_t key_of(uint32_t comm, int rank)
{
    return (uint64_t)comm << 32 | (uint32_t)rank;
}

/* Lets go of those of communicators that are gone; what their partners got stays. */
static void forget_gone(struct routes *routes)
{
    struct map *map = &routes->routes;
    for (size_t i = 0; i < map->room;) {
        const struct route *route = map->entries[i].value;
        if (route && !communicator_lives(route->comm))
            free(map_remove(map, map->entries[i].key)); /* another one may move here */
        else
            i++;
    }
    routes->last = NULL;
    routes->living = map->count;
}

struct route *route_find(struct routes *routes, struct communicator *communicator, int rank)
{
    uint64_t key = key_of(communicator->serial, rank);
    struct route *route = map_get(&routes->routes, key);
    if (route)
        return routes->last = route;
    if (rank < 0 || rank >= communicator->remote_size)
        return NULL; /* a mistake, of which MPI will tell the program */
    if (routes->routes.count >= 2 * routes->living + FEW)
        forget_gone(routes);
    struct partner *partner = partner_of(routes, communicator_world_rank(communicator, rank));
    if (!partner || !(route = calloc(1, sizeof *route)))
        return NULL;
    *route = (struct route){ .comm = communicator->serial, .rank = rank, .partner = partner };
    if (!map_put(&routes->routes, key, route)) {
        free(route);
        return NULL;
    }
    return routes->last = route;
}

struct communicator *routes_look_up(struct routes *routes, MPI_Comm comm, bool valid)
{
    routes->changed = atomic_load(&communicators_changed);
    routes->last_handle = comm;
    routes->last_communicator = communicator_hold_instead(routes->last_communicator, comm, valid);
    return routes->last_communicator;
}

static void move_partner(struct partner *partner, struct routes *to)
{
    struct partner *first = partner_of(to, partner->rank);
    for (int bin = 0; first && bin < SIZE_BINS; bin++)
        first->sizes[bin] += partner->sizes[bin];
    if (first)
        first->bytes += partner->bytes;
}

static void free_map(struct map *map)
{
    for (size_t i = 0; i < map->room; i++)
        free(map->entries[i].value);
    free(map->entries);
}

void routes_move(struct routes *from, struct routes *to)
{
    for (size_t i = 0; i < from->partners.room; i++)
        if (from->partners.entries[i].value)
            move_partner(from->partners.entries[i].value, to);
    communicator_release(from->last_communicator);
    free_map(&from->routes);
    free_map(&from->partners);
    *from = (struct routes){ 0 };
}

size_t routes_bytes(const struct routes *routes)
{
    return map_bytes(&routes->routes) + routes->routes.count * sizeof(struct route) +
           map_bytes(&routes->partners) + routes->partners.count * sizeof(struct partner);
}
