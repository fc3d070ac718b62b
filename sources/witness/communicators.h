/* What the witness knows of a communicator. */
#ifndef ASSAY_COMMUNICATORS_H
#define ASSAY_COMMUNICATORS_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "instances.h"
#include "map.h"

struct communicator {
    MPI_Comm handle;
    uint32_t serial; /* of this process; never used twice */
    uint64_t id;     /* the same on all its ranks; 0: not agreed, so who waited cannot be told */
    int rank, size, remote_size; /* remote_size: of an intercommunicator, else size */
    bool inter, whole_world;     /* whole_world: its ranks are those of MPI_COMM_WORLD */
    int users;                   /* threads, windows and requests with it: they may live longer */
    MPI_Group group; /* of the ranks that messages go to; MPI_GROUP_NULL where whole_world */
    struct map made; /* how many were made from it, by members and tag */
    struct instances *log; /* of its collectives */
    int *neighbours; /* destinations of its topology; NULL until they are needed */
    int neighbour_count;
    struct communicator *next, **link; /* link: what points to it */
    struct communicator *freed_in;     /* while it is being freed: what is freed around it */
};

/* Changes whenever a handle may have come to mean another communicator. */
extern atomic_uint communicators_changed;

/* Of a handle that MPI has just taken: it is asked about where nothing is known of it. NULL without
 * memory, and for MPI_COMM_NULL. */
struct communicator *communicator_of(MPI_Comm comm);

/* Holds what is known of a handle, and releases `before`, which may be NULL. MPI is only asked about
 * it where it is `valid`: about another it would call the program's error handler. */
struct communicator *communicator_hold_instead(struct communicator *before, MPI_Comm comm,
                                               bool valid);

/* Whether anything may still be sent in the communicator of a serial. */
bool communicator_lives(uint32_t serial);

/* A rank's rank in MPI_COMM_WORLD; -1 outside it. */
int communicator_world_rank(const struct communicator *communicator, int rank);
/* Of all ranks that messages go to; negative outside it. The caller frees them; NULL without memory. */
int *communicator_receivers(const struct communicator *communicator);
/* As it, of all ranks of an intracommunicator; NULL also where one of them is outside MPI_COMM_WORLD. */
int *communicator_members(const struct communicator *communicator);

/* Those that messages go to without this one, by their ranks in MPI_COMM_WORLD, as a list such as
 * "0-3,8"; NULL where none is in it, and without memory. The caller frees it. */
char *communicator_others(const struct communicator *communicator);

/* Finds the destinations of a topology; 0 without one. */
int communicator_neighbours(struct communicator *communicator, const int **ranks);

/* A new communicator, or MPI_COMM_NULL. `parent`: what it was made from, if known; `tag`: that of
 * MPI_Comm_create_group, and -1 where all ranks of the parent took part. */
void communicator_created(MPI_Comm comm, struct communicator *parent, int tag);
/* As it, of one that may not be ready yet, or whose ranks are not all known to this rank. */
void communicator_is_new(MPI_Comm comm);

/* The three steps of all calls that free something: before the call its handle is forgotten, as
 * another thread may be given the same one before the call returns; afterwards what was known is put
 * back or freed, by whether the call failed. `take` returns NULL where nothing is known. In between a
 * communicator is found by its handle in the thread that frees it: in its callbacks. */
struct communicator *communicator_take(MPI_Comm comm);
void communicator_put_back(MPI_Comm comm, struct communicator *communicator);
void communicator_freed(struct communicator *communicator);

/* What is known of it stays after it is freed, for as long as something of it is in use. Both take
 * NULL. */
void communicator_hold(struct communicator *communicator);
void communicator_release(struct communicator *communicator);

/* All that have an id and a log, by id; the array is the caller's to free. NULL without memory. */
struct communicator **communicators_logged(int *count);

/* What belongs to a window: the communicator that it was made on. Freed as above; window_take leaves
 * it to the caller to release. */
void window_created(MPI_Win window, MPI_Comm comm);
struct communicator *window_communicator(MPI_Win window);
struct communicator *window_take(MPI_Win window);
void window_put_back(MPI_Win window, struct communicator *communicator);

size_t communicators_bytes(void);

#endif
