#include "routes.h"

#include <stdlib.h>
#include <string.h>

/* A program that makes communicators of ever other ranks must not fill the memory. */
enum { FEW = 64, MOST_LIST_BYTES = 1 << 18 };

static uint64_t key_of(uint32_t high, enum kind kind, int rank)
{
    return (uint64_t)high << 32 | (uint64_t)kind << 30 | ((uint32_t)rank & EACH_OTHER);
}

/* Takes `ranks`. */
static struct partner *partner_at(struct routes *routes, uint64_t key, enum kind kind, int rank,
                                  char *ranks)
{
    struct partner *partner = map_get(&routes->partners, key);
    size_t size = ranks ? strlen(ranks) + 1 : 0;
    bool has_room = !size || routes->list_bytes + size <= MOST_LIST_BYTES;
    routes->is_full = routes->is_full || !(partner || has_room);
    if (!partner && has_room && (partner = calloc(1, sizeof *partner))) {
        *partner = (struct partner){ .kind = kind, .rank = rank, .ranks = ranks };
        if (map_put(&routes->partners, key, partner)) {
            routes->list_bytes += size;
            partner->older = atomic_load_explicit(&routes->newest, memory_order_relaxed);
            atomic_store_explicit(&routes->newest, partner, memory_order_release);
            return partner;
        }
        free(partner);
        partner = NULL;
    }
    free(ranks);
    return partner;
}

static struct partner *partner_of(struct routes *routes, enum kind kind,
                                  struct communicator *communicator, int rank)
{
    if (rank != EACH_OTHER) {
        int world_rank = communicator_world_rank(communicator, rank);
        return partner_at(routes, key_of(0, kind, world_rank), kind, world_rank, NULL);
    }
    char *ranks = communicator_others(communicator);
    uint64_t key = map_hash_text(ranks, 0) | (uint64_t)1 << 63;
    return ranks ? partner_at(routes, key, kind, 0, ranks) : NULL;
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
    memset(routes->last, 0, sizeof routes->last);
    routes->living = map->count;
}

struct route *route_find(struct routes *routes, enum kind kind, struct communicator *communicator,
                         int rank)
{
    bool is_each = kind == COLLECTIVES && rank == EACH_OTHER;
    if (!is_each && (rank < 0 || rank >= communicator->remote_size))
        return NULL; /* a mistake, of which MPI will tell the program */
    uint64_t key = key_of(communicator->serial, kind, rank);
    struct route *route = map_get(&routes->routes, key);
    if (route)
        return routes->last[kind] = route;
    if (routes->routes.count >= 2 * routes->living + FEW)
        forget_gone(routes);
    struct partner *partner = partner_of(routes, kind, communicator, rank);
    if (!(partner || is_each) || !(route = calloc(1, sizeof *route)))
        return NULL;
    *route = (struct route){ .comm = communicator->serial, .rank = rank, .partner = partner };
    if (!map_put(&routes->routes, key, route)) {
        free(route);
        return NULL;
    }
    return routes->last[kind] = route;
}

struct communicator *routes_look_up(struct routes *routes, MPI_Comm comm, bool valid)
{
    routes->changed = atomic_load(&communicators_changed);
    routes->last_handle = comm;
    routes->last_communicator = communicator_hold_instead(routes->last_communicator, comm, valid);
    return routes->last_communicator;
}

static void move_partner(uint64_t key, struct partner *partner, struct routes *to)
{
    struct partner *first = partner_at(to, key, partner->kind, partner->rank, partner->ranks);
    for (int bin = 0; first && bin < SIZE_BINS; bin++)
        add_to(&first->sizes[bin], partner->sizes[bin]);
    if (first)
        add_to(&first->bytes, partner->bytes);
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
            move_partner(from->partners.entries[i].key, from->partners.entries[i].value, to);
    to->is_full = to->is_full || from->is_full;
    communicator_release(from->last_communicator);
    free_map(&from->routes);
    free_map(&from->partners);
    *from = (struct routes){ 0 };
}

static void add_to_listed(const char *ranks, unsigned long long sent, unsigned long long *sums)
{
    char *end;
    for (const char *at = ranks; *at; at = *end ? end + 1 : end) {
        long first = strtol(at, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long rank = first; rank <= last; rank++)
            sums[rank] += sent;
    }
}

void routes_add_sent(const struct routes *routes, enum kind kind, bool bytes,
                     unsigned long long *sums)
{
    const struct partner *partner = atomic_load_explicit(&routes->newest, memory_order_acquire);
    for (; partner; partner = partner->older) {
        unsigned long long sent = bytes ? partner->bytes : 0;
        if ((partner->kind == NEIGHBOURS ? COLLECTIVES : partner->kind) != kind)
            continue;
        for (int bin = 0; !bytes && bin < SIZE_BINS; bin++)
            sent += partner->sizes[bin];
        if (partner->ranks)
            add_to_listed(partner->ranks, sent, sums);
        else if (partner->rank >= 0)
            sums[partner->rank] += sent;
    }
}

size_t routes_bytes(const struct routes *routes)
{
    return map_bytes(&routes->routes) + routes->routes.count * sizeof(struct route) +
           map_bytes(&routes->partners) + routes->partners.count * sizeof(struct partner) +
           routes->list_bytes;
}
