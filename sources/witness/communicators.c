#include "communicators.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "map.h"
#include "silence.h"
#include "witness.h"

/* Communicators made after so many keep no log: a program that makes them without end must not fill
 * the memory. */
enum { LOGGED_COMMUNICATORS = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map by_handle, by_window, by_serial;
static struct communicator *all; /* those that live, and those that were freed and have a log */
static uint32_t serials;
static struct map made_of_unknown; /* as struct communicator's `made`, where the parent has no id */
/* What this thread is freeing, the newest first: the program's callbacks for attributes may use it. */
static _Thread_local struct communicator *freeing __attribute__((tls_model("initial-exec")));
atomic_uint communicators_changed;

static uint64_t key_of_comm(MPI_Comm comm)
{
    return (uint64_t)(uintptr_t)comm;
}

/* The groups are compared: Open MPI refuses to compare a communicator of a session with another one,
 * by the handler of that communicator. */
static bool is_like_world(MPI_Comm comm)
{
    MPI_Group own, world;
    int relation = MPI_UNEQUAL;
    if (PMPI_Comm_group(comm, &own) != MPI_SUCCESS)
        return false;
    if (PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
        PMPI_Group_compare(own, world, &relation);
        PMPI_Group_free(&world);
    }
    PMPI_Group_free(&own);
    return relation == MPI_IDENT;
}

/* All that may be needed later is found now, while the handle is valid. */
static bool find_shape(struct communicator *communicator)
{
    MPI_Comm comm = communicator->handle;
    int inter;
    communicator->group = MPI_GROUP_NULL;
    if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS ||
        PMPI_Comm_rank(comm, &communicator->rank) != MPI_SUCCESS ||
        PMPI_Comm_size(comm, &communicator->size) != MPI_SUCCESS)
        return false;
    communicator->inter = inter;
    communicator->remote_size = communicator->size;
    if (inter)
        return PMPI_Comm_remote_size(comm, &communicator->remote_size) == MPI_SUCCESS &&
               PMPI_Comm_remote_group(comm, &communicator->group) == MPI_SUCCESS;
    communicator->whole_world = communicator->size == witness.ranks && is_like_world(comm);
    if (comm == MPI_COMM_WORLD)
        communicator->id = 1;
    return communicator->whole_world || PMPI_Comm_group(comm, &communicator->group) == MPI_SUCCESS;
}

static void list(struct communicator *communicator)
{
    communicator->next = all;
    communicator->link = &all;
    if (all)
        all->link = &communicator->next;
    all = communicator;
}

static void forget(struct communicator *communicator)
{
    *communicator->link = communicator->next;
    if (communicator->next)
        communicator->next->link = communicator->link;
    if (communicator->group != MPI_GROUP_NULL)
        PMPI_Group_free(&communicator->group);
    free(communicator->made.entries);
    free(communicator->neighbours);
    free(communicator);
}

static struct communicator *add(MPI_Comm comm)
{
    struct communicator *communicator = calloc(1, sizeof *communicator);
    if (!communicator)
        return NULL;
    communicator->handle = comm;
    communicator->serial = ++serials;
    list(communicator);
    struct silence silence = silence_begin();
    bool found = find_shape(communicator);
    silence_end(&silence);
    if (!found || !map_put(&by_serial, communicator->serial, communicator) ||
        !map_put(&by_handle, key_of_comm(comm), communicator)) {
        map_remove(&by_serial, communicator->serial);
        forget(communicator);
        return NULL;
    }
    return communicator;
}

static struct communicator *find(MPI_Comm comm)
{
    for (struct communicator *one = freeing; one; one = one->freed_in)
        if (one->handle == comm)
            return one;
    return comm == MPI_COMM_NULL ? NULL : map_get(&by_handle, key_of_comm(comm));
}

static struct communicator *find_or_add(MPI_Comm comm)
{
    struct communicator *communicator = find(comm);
    return communicator || comm == MPI_COMM_NULL ? communicator : add(comm);
}

struct communicator *communicator_of(MPI_Comm comm)
{
    pthread_mutex_lock(&lock);
    struct communicator *communicator = find_or_add(comm);
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

/* What its ranks are in MPI_COMM_WORLD; MPI_UNDEFINED outside it. */
static bool translate(const struct communicator *communicator, int count, const int *ranks,
                      int *world_ranks)
{
    MPI_Group world;
    if (PMPI_Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS)
        return false;
    int code = PMPI_Group_translate_ranks(communicator->group, count, ranks, world, world_ranks);
    PMPI_Group_free(&world);
    return code == MPI_SUCCESS;
}

int communicator_world_rank(const struct communicator *communicator, int rank)
{
    int world_rank = MPI_UNDEFINED;
    if (communicator->whole_world)
        return rank;
    bool found = translate(communicator, 1, &rank, &world_rank);
    return !found || world_rank == MPI_UNDEFINED ? -1 : world_rank;
}

int *communicator_receivers(const struct communicator *communicator)
{
    size_t size = (size_t)communicator->remote_size;
    int *ranks = calloc(size + 1, sizeof *ranks), *receivers = calloc(size + 1, sizeof *receivers);
    bool known = ranks && receivers;
    for (int i = 0; known && i < communicator->remote_size; i++)
        ranks[i] = receivers[i] = i;
    if (known && !communicator->whole_world)
        known = translate(communicator, communicator->remote_size, ranks, receivers);
    free(ranks);
    if (known)
        return receivers;
    free(receivers);
    return NULL;
}

int *communicator_members(const struct communicator *communicator)
{
    int *members = communicator_receivers(communicator);
    bool inside = members;
    for (int i = 0; inside && i < communicator->size; i++)
        inside = members[i] >= 0;
    if (inside)
        return members;
    free(members);
    return NULL;
}

static int by_number(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

/* Of numbers in their order. */
static char *list_of(const int *numbers, int count)
{
    char *text = NULL;
    size_t size;
    FILE *out = count > 0 ? open_memstream(&text, &size) : NULL;
    for (int i = 0, last; out && i < count; i = last + 1) {
        for (last = i; last + 1 < count && numbers[last + 1] == numbers[last] + 1;)
            last++;
        fprintf(out, "%s%d", i ? "," : "", numbers[i]);
        if (last > i)
            fprintf(out, "-%d", numbers[last]);
    }
    if (out)
        fclose(out);
    return text;
}

char *communicator_others(const struct communicator *communicator)
{
    int *others = communicator_receivers(communicator);
    int count = 0;
    for (int i = 0; others && i < communicator->remote_size; i++)
        if (others[i] >= 0 && others[i] != witness.rank)
            others[count++] = others[i];
    if (others)
        qsort(others, (size_t)count, sizeof *others, by_number);
    char *list = list_of(others, count);
    free(others);
    return list;
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

/* 0 where one of them is outside MPI_COMM_WORLD: each of them finds the same. */
static uint64_t hash_members(const struct communicator *communicator)
{
    uint64_t hash = (uint64_t)communicator->size;
    if (communicator->whole_world)
        return hash;
    int *members = communicator_members(communicator);
    for (int i = 0; members && i < communicator->size; i++)
        hash = map_hash(hash ^ (uint64_t)members[i]);
    free(members);
    return members ? hash : 0;
}

/* All members of a communicator make it together, and those of the same members, parent and tag in
 * the same order. So each finds the same id, with no word between them. */
static uint64_t find_id(struct communicator *parent, const struct communicator *made, int tag)
{
    uint64_t members = hash_members(made), above = parent ? parent->id : 0;
    if (!members)
        return 0;
    struct map *counts = above ? &parent->made : &made_of_unknown;
    uint64_t key = map_hash(members + (uint64_t)(tag + 1));
    uintptr_t number = (uintptr_t)map_get(counts, key) + 1;
    bool counted = map_put(counts, key, (void *)number);
    return counted ? map_hash(map_hash(above ^ key) + number) : 0;
}

static void forget_unless_needed(struct communicator *communicator)
{
    if (communicator->handle != MPI_COMM_NULL || communicator->users)
        return;
    map_remove(&by_serial, communicator->serial);
    /* A log is compared in the end, by the group. */
    if (!communicator->log)
        forget(communicator);
}

static void gone(struct communicator *communicator)
{
    communicator->handle = MPI_COMM_NULL;
    forget_unless_needed(communicator);
}

/* Of the same handle there may be one that was freed by a name that no wrapper has. */
static void forget_stale(MPI_Comm comm)
{
    struct communicator *stale = map_remove(&by_handle, key_of_comm(comm));
    if (!stale)
        return;
    gone(stale);
    atomic_fetch_add(&communicators_changed, 1);
}

void communicator_is_new(MPI_Comm comm)
{
    pthread_mutex_lock(&lock);
    forget_stale(comm);
    pthread_mutex_unlock(&lock);
}

void communicator_created(MPI_Comm comm, struct communicator *parent, int tag)
{
    static uint32_t made;
    if (comm == MPI_COMM_NULL)
        return;
    pthread_mutex_lock(&lock);
    forget_stale(comm);
    struct communicator *communicator = add(comm);
    if (communicator && witness.profile && !communicator->inter && communicator->size > 1 &&
        made++ < LOGGED_COMMUNICATORS)
        communicator->id = find_id(parent, communicator, tag);
    pthread_mutex_unlock(&lock);
}

void communicator_hold(struct communicator *communicator)
{
    if (!communicator)
        return;
    pthread_mutex_lock(&lock);
    communicator->users++;
    pthread_mutex_unlock(&lock);
}

static void release(struct communicator *communicator)
{
    if (!communicator)
        return;
    communicator->users--;
    forget_unless_needed(communicator);
}

void communicator_release(struct communicator *communicator)
{
    if (!communicator)
        return;
    pthread_mutex_lock(&lock);
    release(communicator);
    pthread_mutex_unlock(&lock);
}

struct communicator *communicator_hold_instead(struct communicator *before, MPI_Comm comm,
                                               bool valid)
{
    pthread_mutex_lock(&lock);
    struct communicator *communicator = valid ? find_or_add(comm) : find(comm);
    if (communicator)
        communicator->users++;
    release(before);
    pthread_mutex_unlock(&lock);
    return communicator;
}

struct communicator *communicator_take(MPI_Comm comm)
{
    pthread_mutex_lock(&lock);
    struct communicator *communicator = map_remove(&by_handle, key_of_comm(comm));
    if (communicator) {
        communicator->freed_in = freeing;
        freeing = communicator;
    } else if (freeing && freeing->handle == comm) { /* an exception has left the call before */
        communicator = freeing;
    }
    atomic_fetch_add(&communicators_changed, 1);
    pthread_mutex_unlock(&lock);
    return communicator;
}

void communicator_put_back(MPI_Comm comm, struct communicator *communicator)
{
    uint64_t key = key_of_comm(comm);
    pthread_mutex_lock(&lock);
    freeing = communicator->freed_in;
    if (map_get(&by_handle, key) || !map_put(&by_handle, key, communicator))
        gone(communicator);
    atomic_fetch_add(&communicators_changed, 1);
    pthread_mutex_unlock(&lock);
}

void communicator_freed(struct communicator *communicator)
{
    pthread_mutex_lock(&lock);
    freeing = communicator->freed_in;
    gone(communicator);
    atomic_fetch_add(&communicators_changed, 1);
    pthread_mutex_unlock(&lock);
}

static int by_id(const void *left, const void *right)
{
    const struct communicator *const *a = left, *const *b = right;
    return ((*a)->id > (*b)->id) - ((*a)->id < (*b)->id);
}

struct communicator **communicators_logged(int *count)
{
    size_t most = 0;
    for (struct communicator *one = all; one; one = one->next)
        most++;
    struct communicator **found = calloc(most + 1, sizeof(struct communicator *));
    *count = 0;
    if (!found)
        return NULL;
    for (struct communicator *one = all; one; one = one->next)
        if (one->id && one->log)
            found[(*count)++] = one;
    qsort(found, (size_t)*count, sizeof *found, by_id);
    return found;
}

void window_created(MPI_Win window, MPI_Comm comm)
{
    pthread_mutex_lock(&lock);
    struct communicator *communicator = find_or_add(comm);
    if (communicator) {
        release(map_remove(&by_window, (uint64_t)(uintptr_t)window));
        if (map_put(&by_window, (uint64_t)(uintptr_t)window, communicator))
            communicator->users++;
    }
    pthread_mutex_unlock(&lock);
}

struct communicator *window_communicator(MPI_Win window)
{
    pthread_mutex_lock(&lock);
    struct communicator *communicator = map_get(&by_window, (uint64_t)(uintptr_t)window);
    pthread_mutex_unlock(&lock);
    return communicator;
}

struct communicator *window_take(MPI_Win window)
{
    pthread_mutex_lock(&lock);
    struct communicator *communicator = map_remove(&by_window, (uint64_t)(uintptr_t)window);
    pthread_mutex_unlock(&lock);
    return communicator;
}

void window_put_back(MPI_Win window, struct communicator *communicator)
{
    pthread_mutex_lock(&lock);
    if (!map_put(&by_window, (uint64_t)(uintptr_t)window, communicator))
        release(communicator);
    pthread_mutex_unlock(&lock);
}

size_t communicators_bytes(void)
{
    size_t bytes = map_bytes(&by_handle) + map_bytes(&by_window) + map_bytes(&by_serial) +
                   map_bytes(&made_of_unknown);
    for (struct communicator *one = all; one; one = one->next)
        bytes += sizeof *one + (size_t)one->neighbour_count * sizeof(int) + map_bytes(&one->made) +
                 instances_bytes(one->log);
    return bytes;
}
