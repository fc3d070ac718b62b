#include "record.h"

#include <pthread.h>

#include "map.h"
#include "silence.h"

atomic_uint types_freed;

/* Sizes of datatypes, plus 1, by their handles; also of freed ones, until another has the handle. */
static struct map sizes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t ask_size(MPI_Datatype type)
{
    MPI_Count size = 0;
    struct silence silence = silence_begin();
    int code = PMPI_Type_size_x(type, &size);
    silence_end(&silence);
    return code == MPI_SUCCESS && size > 0 ? size : 0;
}

void record_committed(MPI_Datatype type)
{
    int64_t size = ask_size(type);
    pthread_mutex_lock(&lock);
    map_put(&sizes, (uint64_t)(uintptr_t)type, (void *)(uintptr_t)(size + 1));
    pthread_mutex_unlock(&lock);
}

/* MPI may be asked about a type that the call has taken, unless another thread has freed it meanwhile:
 * once the message is there it may. */
int64_t record_find_size(const struct timing *timing, MPI_Datatype type)
{
    struct thread *thread = timing->thread;
    uintptr_t known = 0;
    unsigned freed = atomic_load(&types_freed);
    if (freed != timing->types_freed) {
        pthread_mutex_lock(&lock);
        known = (uintptr_t)map_get(&sizes, (uint64_t)(uintptr_t)type);
        pthread_mutex_unlock(&lock);
    }
    thread->types_freed = freed;
    thread->last_type = type;
    thread->last_type_size = known ? (int64_t)(known - 1) : ask_size(type);
    return thread->last_type_size;
}

/* The same number on both sides. */
static uint64_t channel_of(const struct communicator *communicator, int sender, int receiver,
                           int tag)
{
    uint64_t pair = (uint64_t)(uint32_t)sender << 32 | (uint32_t)receiver;
    return map_hash(map_hash(communicator->id) ^ pair) + (uint64_t)tag_class(tag);
}

static bool is_told_apart(const struct communicator *communicator, const struct partner *partner)
{
    return communicator->id && partner->rank >= 0;
}

uint64_t record_log_send(const struct timing *timing, const struct communicator *communicator,
                         const struct partner *partner, int tag, uint32_t sequence)
{
    if (!is_told_apart(communicator, partner))
        return NO_MESSAGE;
    uint64_t channel = channel_of(communicator, witness.rank, partner->rank, tag);
    return message_posted(SENDER, channel, sequence, tag, partner->rank, timing->begin);
}

static struct route *route_from(const struct timing *timing, struct communicator *communicator,
                                int rank)
{
    if (!communicator || rank == MPI_PROC_NULL || rank == MPI_ANY_SOURCE)
        return NULL;
    return route_to(&timing->thread->routes, POINT_TO_POINT, communicator, rank);
}

static uint64_t log_receive(const struct communicator *communicator, const struct route *route,
                            int tag, uint32_t sequence, int64_t posted)
{
    if (!is_told_apart(communicator, route->partner))
        return NO_MESSAGE;
    int sender = route->partner->rank;
    uint64_t channel = channel_of(communicator, sender, witness.rank, tag);
    return message_posted(RECEIVER, channel, sequence, tag, sender, posted);
}

uint64_t record_receive_in(const struct timing *timing, struct communicator *communicator, int rank,
                           int tag, int64_t posted)
{
    struct route *route = route_from(timing, communicator, rank);
    if (!route)
        return NO_MESSAGE;
    uint32_t sequence = route->received[tag_class(tag)]++;
    return posted && is_logged(timing) ? log_receive(communicator, route, tag, sequence, posted)
                                       : NO_MESSAGE;
}

uint64_t record_receive(const struct timing *timing, MPI_Comm comm, int rank, int tag,
                        int64_t posted)
{
    return record_receive_in(timing, record_communicator(timing, comm), rank, tag, posted);
}

uint64_t record_probe(const struct timing *timing, MPI_Comm comm, int rank, int tag)
{
    struct communicator *communicator = record_communicator(timing, comm);
    struct route *route = is_logged(timing) ? route_from(timing, communicator, rank) : NULL;
    if (!route)
        return NO_MESSAGE;
    uint32_t next = route->received[tag_class(tag)];
    return log_receive(communicator, route, tag, next, timing->begin);
}

void record_put(const struct timing *timing, enum kind kind, struct communicator *communicator,
                int rank, int64_t bytes)
{
    struct thread *thread = timing->thread;
    if (!thread || !communicator || rank < 0)
        return;
    struct route *route = route_to(&thread->routes, kind, communicator, rank);
    if (!route)
        return;
    add_bytes(timing, bytes);
    partner_sent(route->partner, bytes);
}

void record_collective(const struct timing *timing, struct communicator *communicator,
                       const struct sent *sent)
{
    struct thread *thread = timing->thread;
    if (!thread)
        return;
    add_bytes(timing, sent->bytes);
    struct route *route = witness.matrix && sent->each > 0
                              ? route_to(&thread->routes, COLLECTIVES, communicator, sent->to)
                              : NULL;
    if (route && route->partner)
        partner_sent(route->partner, sent->each);
}
