#include "communicators.h"

#include <pthread.h>
#include <stdlib.h>

#include "map.h"
#include "waits.h"
#include "witness.h"

/* Communicators made after so many keep no log: a program that makes them without end must not fill
 * the memory. */
enum { LOGGED_COMMUNICATORS = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map by_handle, by_window, by_serial;
static struct communicator *all; /* those that live, and those that were freed and have a log */
static uint32_t serials;
static atomic_bool beyond_world;
atomic_uint communicators_freed;

static uint64_t key_of_comm(MPI_Comm comm)
{
    return (uint64_t)(uintptr_t)comm;
}

static void find_shape(struct communicator *communicator)
{
    MPI_Comm comm = communicator->handle;
    int inter;
    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Comm_rank(comm, &communicator->rank);
    PMPI_Comm_size(comm, &communicator->size);
    communicator->inter = inter;
    communicator->remote_size = communicator->size;
    communicator->group = MPI_GROUP_NULL;
    if (inter)
        PMPI_Comm_remote_size(comm, &communicator->remote_size);
    int relation = MPI_UNEQUAL;
    if (!inter && communicator->size == witness.ranks)
        PMPI_Comm_compare(comm, MPI_COMM_WORLD, &relation);
    communicator->whole_world = relation == MPI_IDENT || relation == MPI_CONGRUENT;
    if (comm == MPI_COMM_WORLD)
        communicator->id = 1;
}

static struct communicator *add(MPI_Comm comm)
{
    struct communicator *communicator = calloc(1, sizeof *communicator);
    if (!communicator)
        return NULL;
    communicator->handle = comm;
    communicator->serial = ++serials;
    find_shape(communicator);
    if (!map_put(&by_serial, communicator->serial, communicator) ||
        !map_put(&by_handle, key_of_comm(comm), communicator)) {
        map_remove(&by_serial, communicator->serial);
        free(communicator);
        return NULL;
    }
    communicator->next = all;
    return all = communicator;
}

struct communicator *communicator_of(MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL)
        return NULL;
    pthread_mutex_lock(&lock);
    struct communicator *communicator = map_get(&by_handle, key_of_comm(comm));
    if (!communicator)
        communicator = add(comm);
    pthread_mutex_unlock(&lock);
    return communicator;
}

bool communicator_lives(uint32_t serial)
{
    pthread_mutex_lock(&lock);
    bool lives = map_get(&by_serial, serial);
    pthread_mutex_unlock(&lock);
    return lives;
}

static bool find_group(struct communicator *communicator)
{
    if (communicator->group == MPI_GROUP_NULL) {
        if (communicator->inter)
            PMPI_Comm_remote_group(communicator->handle, &communicator->group);
        else
            PMPI_Comm_group(communicator->handle, &communicator->group);
    }
    return communicator->group != MPI_GROUP_NULL;
}

int communicator_world_rank(struct communicator *communicator, int rank)
{
    if (communicator->whole_world)
        return rank;
    int world_rank = MPI_UNDEFINED;
    MPI_Group world;
    pthread_mutex_lock(&lock);
    bool found = find_group(communicator);
    pthread_mutex_unlock(&lock);
    if (found && PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
        PMPI_Group_translate_ranks(communicator->group, 1, &rank, world, &world_rank);
        PMPI_Group_free(&world);
    }
    return world_rank == MPI_UNDEFINED ? -1 : world_rank;
}

static int cartesian_neighbours(struct communicator *communicator)
{
    int dimensions;
    PMPI_Cartdim_get(communicator->handle, &dimensions);
    communicator->neighbours = malloc(2 * (size_t)dimensions * sizeof(int) + 1);
    if (!communicator->neighbours)
        return 0;
    for (int d = 0; d < dimensions; d++)
        PMPI_Cart_shift(communicator->handle, d, 1, &communicator->neighbours[2 * d],
                        &communicator->neighbours[2 * d + 1]);
    return 2 * dimensions;
}

static int graph_neighbours(struct communicator *communicator)
{
    int count;
    PMPI_Graph_neighbors_count(communicator->handle, communicator->rank, &count);
    communicator->neighbours = malloc((size_t)count * sizeof(int) + 1);
    if (!communicator->neighbours)
        return 0;
    PMPI_Graph_neighbors(communicator->handle, communicator->rank, count, communicator->neighbours);
    return count;
}

static int distributed_graph_neighbours(struct communicator *communicator)
{
    int sources, destinations, weighted;
    PMPI_Dist_graph_neighbors_count(communicator->handle, &sources, &destinations, &weighted);
    int *ignored = malloc((size_t)(2 * sources + destinations) * sizeof(int) + 1);
    communicator->neighbours = malloc((size_t)destinations * sizeof(int) + 1);
    if (ignored && communicator->neighbours)
        PMPI_Dist_graph_neighbors(communicator->handle, sources, ignored, ignored + sources,
                                  destinations, communicator->neighbours, ignored + 2 * sources);
    else
        destinations = 0;
    free(ignored);
    return destinations;
}

int communicator_neighbours(struct communicator *communicator, const int **ranks)
{
    if (!communicator->neighbours) {
        int topology;
        PMPI_Topo_test(communicator->handle, &topology);
        communicator->neighbour_count = topology == MPI_CART    ? cartesian_neighbours(communicator)
                                        : topology == MPI_GRAPH ? graph_neighbours(communicator)
                                        : topology == MPI_DIST_GRAPH
                                            ? distributed_graph_neighbours(communicator)
                                            : 0;
    }
    *ranks = communicator->neighbours;
    return communicator->neighbour_count;
}

void communicators_reach_beyond(void)
{
    atomic_store(&beyond_world, true);
}

/* All its ranks find the same: where there is an outsider to one there is one to each. */
static bool inside_world(struct communicator *communicator)
{
    if (!atomic_load(&beyond_world))
        return true;
    for (int rank = 0; !communicator->whole_world && rank < communicator->size; rank++)
        if (communicator_world_rank(communicator, rank) < 0)
            return false;
    return true;
}

void communicator_created(MPI_Comm comm)
{
    static uint32_t made;
    struct communicator *communicator = communicator_of(comm);
    if (!communicator || !witness.profile || communicator->inter || communicator->size == 1 ||
        !inside_world(communicator))
        return;
    pthread_mutex_lock(&lock);
    uint64_t id = (uint64_t)(witness.rank + 1) << 32 | ++made;
    pthread_mutex_unlock(&lock);
    /* The first of its ranks names it; all of them are in the call that made it. */
    PMPI_Bcast(&id, 1, MPI_UINT64_T, 0, comm);
    communicator->id = (uint32_t)id <= LOGGED_COMMUNICATORS ? id : 0;
}

static void forget(struct communicator *communicator)
{
    struct communicator **link = &all;
    while (*link != communicator)
        link = &(*link)->next;
    *link = communicator->next;
    if (communicator->group != MPI_GROUP_NULL)
        PMPI_Group_free(&communicator->group);
    free(communicator->neighbours);
    free(communicator);
}

/* A log is compared in the end, by the group. */
static void forget_unless_needed(struct communicator *communicator)
{
    if (communicator->handle != MPI_COMM_NULL || communicator->users)
        return;
    map_remove(&by_serial, communicator->serial);
    if (!communicator->log)
        forget(communicator);
}

void communicator_hold(struct communicator *communicator)
{
    if (!communicator)
        return;
    pthread_mutex_lock(&lock);
    communicator->users++;
    pthread_mutex_unlock(&lock);
}

void communicator_release(struct communicator *communicator)
{
    if (!communicator)
        return;
    pthread_mutex_lock(&lock);
    communicator->users--;
    forget_unless_needed(communicator);
    pthread_mutex_unlock(&lock);
}

void communicator_freed(MPI_Comm comm)
{
    pthread_mutex_lock(&lock);
    struct communicator *communicator = map_remove(&by_handle, key_of_comm(comm));
    atomic_fetch_add(&communicators_freed, 1);
    if (communicator) {
        if (communicator->log || communicator->users)
            find_group(communicator);
        communicator->handle = MPI_COMM_NULL;
        forget_unless_needed(communicator);
    }
    pthread_mutex_unlock(&lock);
}

static int by_id(const void *left, const void *right)
{
    const struct members *a = left, *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

struct members *communicators_logged(int *count)
{
    int most = 0;
    for (struct communicator *one = all; one; one = one->next)
        most++;
    struct members *found = calloc((size_t)most + 1, sizeof *found);
    *count = 0;
    if (!found)
        return NULL;
    for (struct communicator *one = all; one; one = one->next)
        if (one->id && one->log)
            found[(*count)++] = (struct members){ one->id, one->handle, one->group, one->log };
    qsort(found, (size_t)*count, sizeof *found, by_id);
    return found;
}

void window_created(MPI_Win window, MPI_Comm comm)
{
    struct communicator *communicator = communicator_of(comm);
    if (!communicator)
        return;
    pthread_mutex_lock(&lock);
    if (map_put(&by_window, (uint64_t)(uintptr_t)window, communicator))
        communicator->users++;
    pthread_mutex_unlock(&lock);
}

struct communicator *window_communicator(MPI_Win window)
{
    pthread_mutex_lock(&lock);
    struct communicator *communicator = map_get(&by_window, (uint64_t)(uintptr_t)window);
    pthread_mutex_unlock(&lock);
    return communicator;
}

void window_freed(MPI_Win window)
{
    pthread_mutex_lock(&lock);
    struct communicator *communicator = map_remove(&by_window, (uint64_t)(uintptr_t)window);
    pthread_mutex_unlock(&lock);
    communicator_release(communicator);
}

size_t communicators_bytes(void)
{
    size_t bytes = map_bytes(&by_handle) + map_bytes(&by_window) + map_bytes(&by_serial);
    for (struct communicator *one = all; one; one = one->next)
        bytes += sizeof *one + (size_t)one->neighbour_count * sizeof(int) +
                 instances_bytes(one->log);
    return bytes;
}
