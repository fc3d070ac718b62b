/* What a rank remembers of its partners in a communicator of so many ranks, which are simulated: the
 * witness's routes.c and map.c, with a stand-in for the communicator.
 *
 *     routes RANKS PARTNERS COMMUNICATORS
 *
 * prints the bytes that malloc gave out for it, those that routes_bytes counts, and what is left
 * after the communicators were forgotten. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "routes.h"

atomic_uint communicators_freed;
static struct communicator *communicators;

struct communicator *communicator_of(MPI_Comm comm)
{
    (void)comm;
    return communicators;
}

int communicator_world_rank(struct communicator *communicator, int rank)
{
    (void)communicator;
    return rank;
}

static size_t used(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    int ranks = atoi(argv[1]), partners = atoi(argv[2]), count = atoi(argv[3]);
    communicators = calloc((size_t)count, sizeof *communicators);
    if (!communicators)
        return 3;
    static struct routes routes;
    size_t before = used();
    for (int c = 0; c < count; c++) {
        communicators[c].serial = (uint32_t)c + 1;
        communicators[c].size = communicators[c].remote_size = ranks;
        for (int message = 0; message < 3; message++) {
            for (int p = 1; p <= partners; p++) {
                int rank = (int)((long long)p * 7919 % ranks);
                struct route *route = route_to(&routes, &communicators[c], rank);
                if (!route || route->partner->rank != rank)
                    return 4;
                route->sent[tag_class(message)]++;
                partner_sent(route->partner, 1ll << p % 20);
            }
        }
    }
    size_t taken = used() - before, counted = routes_bytes(&routes);
    size_t found = routes.partners.count, found_routes = routes.routes.count;
    for (int c = 0; c < count; c++)
        routes_forget(&routes, &communicators[c]);
    printf("{\"malloc\": %zu, \"routes_bytes\": %zu, \"partners\": %zu, \"routes\": %zu, "
           "\"routes_left\": %zu, \"partners_left\": %zu}\n", taken, counted, found, found_routes,
           routes.routes.count, routes.partners.count);
    free(communicators);
    return 0;
}
