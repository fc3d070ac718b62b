/* What the witness knows of a communicator. */
#ifndef ASSAY_COMMUNICATORS_H
#define ASSAY_COMMUNICATORS_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "instances.h"

struct communicator {
    MPI_Comm handle;
    uint32_t serial; /* of this process; never used twice */
    uint64_t id;     /* the same on all its ranks; 0: not agreed, so who waited cannot be told */
    int rank, size, remote_size; /* remote_size: of an intercommunicator, else size */
    bool inter, whole_world;     /* whole_world: its ranks are those of MPI_COMM_WORLD */
    int users;                   /* windows and requests of it: they may live longer */
    MPI_Group group; /* of the ranks that messages go to; MPI_GROUP_NULL until it is needed */
    struct instances *log; /* of its collectives */
    int *neighbours; /* destinations of its topology; NULL until they are needed */
    int neighbour_count;
    struct communicator *next;
};

/* Changes whenever a communicator is freed: then a handle may come to mean another one. */
extern atomic_uint communicators_freed;

/* NULL without memory, and for MPI_COMM_NULL. */
struct communicator *communicator_of(MPI_Comm comm);

/* Whether anything may still be sent in the communicator of a serial. */
bool communicator_lives(uint32_t serial);

/* A rank's rank in MPI_COMM_WORLD; -1 outside it. */
int communicator_world_rank(struct communicator *communicator, int rank);

/* Finds the destinations of a topology; 0 without one. */
int communicator_neighbours(struct communicator *communicator, const int **ranks);

/* Collective over a new communicator, right after it was made: all its ranks agree on an id. Takes
 * MPI_COMM_NULL and intercommunicators, which get none. */
void communicator_created(MPI_Comm comm);

/* Before the communicator is freed. */
void communicator_freed(MPI_Comm comm);

/* What is known of it stays after it is freed, for as long as something of it is in use. Both take
 * NULL. */
void communicator_hold(struct communicator *communicator);
void communicator_release(struct communicator *communicator);

/* After MPI_Comm_spawn and the like: communicators may reach beyond MPI_COMM_WORLD. */
void communicators_reach_beyond(void);

/* All that have an id and a log, by id; the array is the caller's to free. NULL without memory. */
struct members;
struct members *communicators_logged(int *count);

/* What belongs to a window: the communicator that it was made on. */
void window_created(MPI_Win window, MPI_Comm comm);
struct communicator *window_communicator(MPI_Win window);
void window_freed(MPI_Win window);

size_t communicators_bytes(void);

#endif
