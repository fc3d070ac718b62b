/* The ping-pong: what pt2pt measures, and the measure that collectives are judged by. */
#ifndef ASSAY_PING_PONG_H
#define ASSAY_PING_PONG_H

#include <mpi.h>

#include "memory.h"

/* Collective over `pair`, a communicator of two. Rank 0 sends `size` bytes with MPI_Send, rank 1
 * receives them with MPI_Recv and sends as many back; `iterations` times. Each message takes the
 * next slot of its pool. Returns half the time of the round trips on rank 0, and 0 on rank 1: a
 * part of a sample_batch. */
double ping_pong(MPI_Comm pair, int size, struct memory_pool *send, struct memory_pool *receive,
                 long iterations);

#endif
