#include "routes.h"

#include <stdlib.h>

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

struct route *route_find(struct routes *routes, struct communicator *communicator, int rank)
{
    uint64_t key = key_of(communicator->serial, rank);
    struct route *route = map_get(&routes->routes, key);
    if (route)
        return routes->last = route;
    if (rank < 0 || rank >= communicator->remote_size)
        return NULL; /* a mistake, of which MPI will tell the program */
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

void routes_forget(struct routes *routes, const struct communicator *communicator)
{
    routes->last = NULL;
    int ranks = communicator->remote_size;
    for (int rank = 0; rank < ranks && routes->routes.count; rank++)
        free(map_remove(&routes->routes, key_of(communicator->serial, rank)));
}

size_t routes_bytes(const struct routes *routes)
{
    return map_bytes(&routes->routes) + routes->routes.count * sizeof(struct route)
           + map_bytes(&routes->partners) + routes->partners.count * sizeof(struct partner);
}
