/* What a rank remembers of its partners in a communicator of so many ranks, which are simulated: the
 * witness's routes.c and map.c, with a stand-in for the communicator.
 *
 *     routes RANKS PARTNERS COMMUNICATORS
 *
 * prints the bytes that malloc gave out for it, and those that routes_bytes counts; then the most
 * routes that there were while as many communicators came and went, one after the other. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "routes.h"

atomic_uint communicators_changed;
static struct communicator *communicators;

struct communicator *communicator_hold_instead(struct communicator *before, MPI_Comm comm,
                                               bool valid)
{
    (void)before, (void)comm, (void)valid;
    return communicators;
}

void communicator_release(struct communicator *communicator)
{
    (void)communicator;
}

/* The serial of the only one, or 0 as long as all of them live. */
static uint32_t living;

bool communicator_lives(uint32_t serial)
{
    return !living || serial == living;
}

int communicator_world_rank(const struct communicator *communicator, int rank)
{
    (void)communicator;
    return rank;
}

static int asked;

/* A list that there is no room for. */
char *communicator_others(const struct communicator *communicator)
{
    enum { TOO_LONG = 1 << 18 };
    char *list = malloc(TOO_LONG + 1);
    (void)communicator;
    asked++;
    if (list)
        memset(list, '1', TOO_LONG);
    if (list)
        list[TOO_LONG] = '\0';
    return list;
}

static size_t used(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static int partner_rank(int p, int ranks)
{
    return (int)((long long)p * 7919 % ranks);
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
                int rank = partner_rank(p, ranks);
                struct route *route = route_to(&routes, POINT_TO_POINT, &communicators[c], rank);
                if (!route || route->partner->rank != rank)
                    return 4;
                route->sent[tag_class(message)]++;
                partner_sent(route->partner, 1ll << p % 20);
            }
        }
    }
    size_t taken = used() - before, counted = routes_bytes(&routes);
    size_t found = routes.partners.count, found_routes = routes.routes.count;
    size_t most = 0;
    for (int c = 0; c < count; c++) {
        communicators[c].serial = living = (uint32_t)(count + c) + 1;
        for (int p = 1; p <= partners; p++)
            if (!route_to(&routes, POINT_TO_POINT, &communicators[c], partner_rank(p, ranks)))
                return 5;
        if (c > count / 2 && routes.routes.count > most)
            most = routes.routes.count;
    }
    for (int collective = 0; collective < 3; collective++)
        route_to(&routes, COLLECTIVES, &communicators[0], EACH_OTHER);
    printf(
        "{\"asked\": %d, \"malloc\": %zu, \"routes_bytes\": %zu, \"partners\": %zu, \"routes\": %zu, "
        "\"most_while_they_go\": %zu, \"partners_left\": %zu, \"is_full\": %d}\n",
        asked, taken, counted, found, found_routes, most, routes.partners.count, routes.is_full);
    free(communicators);
    return 0;
}
