/* Whom a thread exchanges messages with: routes in a communicator, and the partners at their ends.
 *
 * A partner is a rank of MPI_COMM_WORLD, with what was sent to it by one kind of calls. A route is a
 * rank of one communicator, with the numbers of its messages so far. Both are made at the first
 * message, so they grow with the partners of a rank and not with the number of ranks. All other ranks
 * of a communicator, to which a collective sends alike, are one partner. No thread changes what
 * belongs to another one: each looks for routes of communicators that are gone by itself, whenever
 * its routes have doubled. */
#ifndef ASSAY_ROUTES_H
#define ASSAY_ROUTES_H

#include <stddef.h>
#include <stdint.h>

#include "communicators.h"
#include "map.h"

/* Bin 0: empty messages; bin b: sizes from 2^(b-1) to 2^b - 1. */
enum { SIZE_BINS = 48, TAG_CLASSES = 16 };

/* NEIGHBOURS: collectives of a topology. */
enum kind { POINT_TO_POINT, ONE_SIDED, NEIGHBOURS, COLLECTIVES, KINDS };

/* As the rank of a route, of COLLECTIVES: all ranks of the communicator but this one. */
#define EACH_OTHER ((1 << 30) - 1)

struct partner {
    enum kind kind;
    int rank;    /* of MPI_COMM_WORLD; -1: outside it */
    char *ranks; /* in place of it, where there are several: a list such as "0-3,8" */
    _Atomic uint64_t bytes; /* to each of them */
    _Atomic uint64_t sizes[SIZE_BINS]; /* messages by size */
    struct partner *older;
};

/* Messages of one tag arrive in the order in which they were sent. Tags may be without number, so
 * they are numbered in classes. */
struct route {
    uint32_t comm; /* serial of the communicator */
    int rank;      /* in it */
    struct partner *partner; /* NULL for EACH_OTHER that have none: they are not asked for again */
    uint32_t sent[TAG_CLASSES], received[TAG_CLASSES];
};

struct routes {
    struct map routes; /* by communicator, kind and rank */
    struct map partners; /* by kind and rank, or by the list of ranks */
    struct partner *_Atomic newest; /* of them: the way to all of them for another thread */
    struct route *last[KINDS];
    size_t list_bytes; /* of the lists of ranks */
    bool is_full; /* some list had no room: what went to its ranks is in no partner */
    size_t living; /* routes, when those of communicators that are gone were last let go */
    /* The communicator used last, which is held, and what communicators_changed was then. */
    MPI_Comm last_handle;
    struct communicator *last_communicator;
    unsigned changed;
};

/* `valid`: see communicator_hold_instead. */
struct communicator *routes_look_up(struct routes *routes, MPI_Comm comm, bool valid);

/* What is known of a handle that the program is going to call MPI with. */
static inline struct communicator *routes_communicator(struct routes *routes, MPI_Comm comm)
{
    unsigned changed = atomic_load_explicit(&communicators_changed, memory_order_relaxed);
    if (routes->last_communicator && routes->last_handle == comm && routes->changed == changed)
        return routes->last_communicator;
    return routes_look_up(routes, comm, false);
}

static inline int tag_class(int tag)
{
    return (int)(((uint32_t)tag * 2654435761u) >> 28);
}

/* The route to a rank of a communicator; NULL without memory. */
struct route *route_find(struct routes *routes, enum kind kind, struct communicator *communicator,
                         int rank);

static inline struct route *route_to(struct routes *routes, enum kind kind,
                                     struct communicator *communicator, int rank)
{
    struct route *last = routes->last[kind];
    if (last && last->rank == rank && last->comm == communicator->serial)
        return last;
    return route_find(routes, kind, communicator, rank);
}

/* Of a counter that one thread changes, and others may read. */
static inline void add_to(_Atomic uint64_t *counter, uint64_t number)
{
    uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, before + number, memory_order_relaxed);
}

static inline void partner_sent(struct partner *partner, int64_t bytes)
{
    add_to(&partner->bytes, (uint64_t)bytes);
    int bin = bytes > 0 ? 64 - __builtin_clzll((unsigned long long)bytes) : 0;
    add_to(&partner->sizes[bin < SIZE_BINS ? bin : SIZE_BINS - 1], 1);
}

/* Messages or bytes that were sent so far to each rank of MPI_COMM_WORLD, by calls of a kind, added to
 * `sums`; NEIGHBOURS are COLLECTIVES here. For any thread, while the routes are not moved. */
void routes_add_sent(const struct routes *routes, enum kind kind, bool bytes,
                     unsigned long long *sums);

/* Adds what one thread's partners got to another's, and forgets all the first had. */
void routes_move(struct routes *from, struct routes *to);

size_t routes_bytes(const struct routes *routes);

#endif
