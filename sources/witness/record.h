/* What the wrappers note of messages and collectives. */
#ifndef ASSAY_RECORD_H
#define ASSAY_RECORD_H

#include <mpi.h>
#include <stdint.h>

#include "requests.h"
#include "tally.h"

int64_t record_find_size(const struct timing *timing, MPI_Datatype type);
/* A datatype whose size may be needed when another thread has freed it. */
void record_committed(MPI_Datatype type);

/* Bytes of so many elements, after the call has taken them. MPI is asked about no type that the call
 * may not have looked at: it would call the program's error handler. */
static inline int64_t bytes_of(const struct timing *timing, int64_t count, MPI_Datatype type)
{
    struct thread *thread = timing->thread;
    if (!thread || count <= 0 || type == MPI_DATATYPE_NULL)
        return 0;
    unsigned freed = atomic_load_explicit(&types_freed, memory_order_relaxed);
    if (thread->last_type == type && thread->types_freed == freed)
        return count * thread->last_type_size;
    return count * record_find_size(timing, type);
}

/* Of a message to or from a rank; to MPI_PROC_NULL there is none. */
static inline int64_t message_bytes(const struct timing *timing, int rank, int64_t count,
                                    MPI_Datatype type)
{
    return rank == MPI_PROC_NULL ? 0 : bytes_of(timing, count, type);
}

/* The communicator of a call that MPI has taken; NULL without memory. */
static inline struct communicator *record_communicator(const struct timing *timing, MPI_Comm comm)
{
    struct thread *thread = timing->thread;
    return timing->communicator || !thread ? timing->communicator
                                           : routes_look_up(&thread->routes, comm, true);
}

static inline uint16_t site_number(const struct timing *timing)
{
    return timing->site ? timing->site->number : 0;
}

/* Whether calls are logged, so that the end can tell who waited for whom. */
static inline bool is_logged(const struct timing *timing)
{
    return timing->begin && atomic_load_explicit(&one_thread, memory_order_relaxed);
}

/* A message to a rank. Counts it, and returns its serial in the log or NO_MESSAGE. */
uint64_t record_log_send(const struct timing *timing, const struct communicator *communicator,
                         const struct partner *partner, int tag, uint32_t sequence);

static inline uint64_t record_send_in(const struct timing *timing,
                                      struct communicator *communicator, int rank, int tag,
                                      int64_t bytes)
{
    struct thread *thread = timing->thread;
    struct route *route =
        communicator ? route_to(&thread->routes, POINT_TO_POINT, communicator, rank) : NULL;
    if (!route)
        return NO_MESSAGE;
    add_bytes(timing, bytes);
    partner_sent(route->partner, bytes);
    uint32_t sequence = route->sent[tag_class(tag)]++;
    return is_logged(timing) ? record_log_send(timing, communicator, route->partner, tag, sequence)
                             : NO_MESSAGE;
}

static inline uint64_t record_send(const struct timing *timing, MPI_Comm comm, int rank, int tag,
                                   int64_t bytes)
{
    struct thread *thread = timing->thread;
    if (!thread || rank == MPI_PROC_NULL)
        return NO_MESSAGE;
    return record_send_in(timing, record_communicator(timing, comm), rank, tag, bytes);
}

/* A receive, posted at `posted`, from a rank with a tag; no wildcards. */
uint64_t record_receive_in(const struct timing *timing, struct communicator *communicator, int rank,
                           int tag, int64_t posted);
uint64_t record_receive(const struct timing *timing, MPI_Comm comm, int rank, int tag,
                        int64_t posted);
/* A message that MPI_Probe found, and that a receive will take. */
uint64_t record_probe(const struct timing *timing, MPI_Comm comm, int rank, int tag);

/* A message that no receive takes, or none that is matched by its tag. */
void record_put(const struct timing *timing, enum kind kind, struct communicator *communicator,
                int rank, int64_t bytes);

/* What a collective sends, as its arguments say. */
struct sent {
    int64_t bytes; /* that have to leave the rank, each once */
    int to;        /* a rank of the communicator, or EACH_OTHER */
    int64_t each;  /* bytes to each of them; 0: no data, or it was recorded already */
};
void record_collective(const struct timing *timing, struct communicator *communicator,
                       const struct sent *sent);

static inline bool is_exact(int rank, int tag)
{
    return rank != MPI_ANY_SOURCE && tag != MPI_ANY_TAG;
}

/* A call that blocked until these messages were done. */
static inline void record_wait(const struct timing *timing, const uint64_t *serials, int count)
{
    if (is_logged(timing))
        messages_waited(timing->call, site_number(timing), timing->begin, timing->end, serials,
                        count);
}

#endif
