/* Collectives: blocking, nonblocking, and those of neighbours.
 *
 * The bytes of a call are those that have to leave the rank, each once: what any algorithm needs at
 * least, and so also the least that the fabric must have carried. */
#include <stdlib.h>

#include "wrap.h"

/* The communicator as the rules below need it. */
struct shape {
    struct communicator *communicator; /* NULL: nothing is recorded */
    int rank, size, others;            /* others: ranks that this one's data goes to */
    int results;                       /* blocks that a reduction is scattered in */
    bool is_sent;                      /* false: it will be, when a request is started */
};

/* So many blocks of different sizes are recorded one by one. Of more of them each other rank gets the
 * mean: else reports would grow with the square of the ranks. */
enum { MOST_BLOCKS = 128 };

static struct shape shape_of(const struct timing *timing, MPI_Comm comm)
{
    struct shape shape = { .communicator = record_communicator(timing, comm), .is_sent = true };
    if (shape.communicator) {
        shape.rank = shape.communicator->rank;
        shape.size = shape.communicator->remote_size;
        shape.others = shape.communicator->inter ? shape.size : shape.size - 1;
        shape.results = shape.communicator->inter ? shape.communicator->size : shape.others;
    }
    return shape;
}

/* In an intercommunicator the root says MPI_ROOT, and its own group's others MPI_PROC_NULL. */
static bool is_root(const struct shape *shape, int root)
{
    return shape->communicator->inter ? root == MPI_ROOT : root == shape->rank;
}

static bool is_leaf(const struct shape *shape, int root)
{
    return !is_root(shape, root) && root != MPI_PROC_NULL;
}

/* All ranks of a communicator log all its collectives, so that the k-th of one is the k-th of all.
 * Also those that failed on this rank: on others they may not have. */
static void log_instance(const struct timing *timing, enum arrival arrival, int root)
{
    struct communicator *communicator = timing->communicator;
    if (communicator && communicator->id && timing->begin)
        instance_add(&communicator->log, timing->call, site_number(timing), arrival,
                     root == communicator->rank, timing->begin, timing->end);
}

static struct sent to_rank(int rank, int64_t bytes)
{
    return (struct sent){ bytes, rank, bytes };
}

/* The same data, which has to leave the rank once. */
static struct sent same_to_each(int64_t bytes)
{
    return (struct sent){ bytes, EACH_OTHER, bytes };
}

static struct sent own_to_each(const struct shape *shape, int64_t bytes)
{
    return (struct sent){ shape->others * bytes, EACH_OTHER, bytes };
}

/* Blocks that were not recorded. The mean is rounded up: 0 would stand for no message. */
static struct sent mean_to_each(const struct shape *shape, int64_t bytes)
{
    int64_t others = shape->others;
    return (struct sent){ bytes, EACH_OTHER, others ? (bytes + others - 1) / others : 0 };
}

static void record_block(const struct timing *timing, const struct shape *shape, int rank,
                         int64_t bytes)
{
    record_collective(timing, shape->communicator, &(struct sent){ .to = rank, .each = bytes });
}

/* Between two groups the counts of a reduction are those of the own one. */
static bool has_each_block(const struct shape *shape, int filled)
{
    return shape->is_sent && !shape->communicator->inter && filled <= MOST_BLOCKS;
}

static bool is_others(const struct shape *shape, int rank)
{
    return shape->communicator->inter || rank != shape->rank;
}

/* Blocks for all other ranks. */
#define BLOCKS(name, count_t)                                                                 \
    static struct sent name(const struct timing *timing, const struct shape *shape, int size, \
                            const count_t counts[], MPI_Datatype type)                        \
    {                                                                                         \
        int64_t elements = 0;                                                                 \
        int filled = 0;                                                                       \
        for (int i = 0; i < size; i++) {                                                      \
            if (is_others(shape, i) && counts[i]) {                                           \
                elements += (int64_t)counts[i];                                               \
                filled++;                                                                     \
            }                                                                                 \
        }                                                                                     \
        int64_t bytes = bytes_of(timing, elements, type);                                     \
        if (!bytes || !has_each_block(shape, filled))                                         \
            return mean_to_each(shape, bytes);                                                \
        for (int i = 0; i < size; i++)                                                        \
            if (is_others(shape, i) && counts[i])                                             \
                record_block(timing, shape, i, (int64_t)counts[i] * (bytes / elements));      \
        return (struct sent){ .bytes = bytes };                                               \
    }
BLOCKS(blocks, int)
LARGE(BLOCKS(blocks_c, MPI_Count))

#define TYPED_BLOCKS(name, count_t)                                                             \
    static struct sent name(const struct timing *timing, const struct shape *shape,             \
                            const count_t counts[], const MPI_Datatype types[])                 \
    {                                                                                           \
        int64_t bytes = 0;                                                                      \
        int filled = 0;                                                                         \
        for (int i = 0; i < shape->size; i++) {                                                 \
            if (is_others(shape, i) && counts[i]) {                                             \
                bytes += bytes_of(timing, (int64_t)counts[i], types[i]);                        \
                filled++;                                                                       \
            }                                                                                   \
        }                                                                                       \
        if (!has_each_block(shape, filled))                                                     \
            return mean_to_each(shape, bytes);                                                  \
        for (int i = 0; i < shape->size; i++)                                                   \
            if (is_others(shape, i) && counts[i])                                               \
                record_block(timing, shape, i, bytes_of(timing, (int64_t)counts[i], types[i])); \
        return (struct sent){ .bytes = bytes };                                                 \
    }
TYPED_BLOCKS(typed_blocks, int)
LARGE(TYPED_BLOCKS(typed_blocks_c, MPI_Count))

#define UNPACK(...) __VA_ARGS__

static const struct sent nothing;

/* Of a scan: the last rank sends to none. */
static struct sent to_next(const struct shape *shape, int64_t bytes)
{
    return shape->rank < shape->size - 1 ? to_rank(shape->rank + 1, bytes) : nothing;
}

static void record_sent(const struct timing *timing, const struct shape *shape, struct sent sent)
{
    if (shape->others)
        record_collective(timing, shape->communicator, &sent);
}

/* The blocking, the nonblocking and the persistent form of a collective, from its arguments and their
 * declarations. `root`: a root that data comes from or goes to, 0 where there is none. */
#define COLLECTIVE(name, nonblocking, suffix, arrival, root, what, arguments, ...) \
    EXPORT int MPI_##name##suffix(__VA_ARGS__)                                     \
    {                                                                              \
        struct timing timing = call_begin_timed(CALL_##name, comm);                \
        int code = PMPI_##name##suffix arguments;                                  \
        call_end(&timing);                                                         \
        if (code == MPI_SUCCESS) {                                                 \
            struct shape shape = shape_of(&timing, comm);                          \
            if (shape.communicator)                                                \
                record_sent(&timing, &shape, what);                                \
        }                                                                          \
        log_instance(&timing, arrival, root);                                      \
        return code;                                                               \
    }                                                                              \
    EXPORT int MPI_##nonblocking##suffix(__VA_ARGS__, MPI_Request *request)        \
    {                                                                              \
        struct timing timing = call_begin_in(CALL_##nonblocking, comm);            \
        int code = PMPI_##nonblocking##suffix(UNPACK arguments, request);          \
        call_end(&timing);                                                         \
        if (code == MPI_SUCCESS) {                                                 \
            struct shape shape = shape_of(&timing, comm);                          \
            if (shape.communicator)                                                \
                record_sent(&timing, &shape, what);                                \
        }                                                                          \
        return code;                                                               \
    }                                                                              \
    PERSISTENT(name##_init##suffix, what, arguments, __VA_ARGS__)

#ifdef HAS_PMPI_Barrier_init
/* What a persistent collective sends each time that it is started. */
static void remember_collective(MPI_Request request, const struct shape *shape, struct sent sent)
{
    if (!shape->others)
        sent = nothing;
    request_remember(request, &(struct request){ .persistent = true,
                                                 .unordered = true,
                                                 .collective = true,
                                                 .communicator = shape->communicator,
                                                 .rank = sent.to,
                                                 .bytes = sent.bytes,
                                                 .each = sent.each });
}

#define PERSISTENT(name, what, arguments, ...)                              \
    EXPORT int MPI_##name(__VA_ARGS__, MPI_Info info, MPI_Request *request) \
    {                                                                       \
        struct timing timing = begin_uncounted(comm);                       \
        int code = PMPI_##name(UNPACK arguments, info, request);            \
        if (code == MPI_SUCCESS) {                                          \
            struct shape shape = shape_of(&timing, comm);                   \
            shape.is_sent = false;                                          \
            if (shape.communicator)                                         \
                remember_collective(*request, &shape, what);                \
        }                                                                   \
        return code;                                                        \
    }
#else
#define PERSISTENT(name, what, arguments, ...)
#endif

COLLECTIVE(Barrier, Ibarrier, , ALL_WAIT_FOR_ALL, 0, nothing, (comm), MPI_Comm comm)

/* suffix, type of counts, type of displacements */
#define COLLECTIVES(suffix, count_t, shift_t)                                                     \
    COLLECTIVE(Bcast, Ibcast, suffix, ALL_WAIT_FOR_ROOT, root,                                    \
               is_root(&shape, root) ? same_to_each(bytes_of(&timing, count, type)) : nothing,    \
               (buffer, count, type, root, comm), void *buffer, count_t count, MPI_Datatype type, \
               int root, MPI_Comm comm)                                                           \
    COLLECTIVE(Gather, Igather, suffix, ROOT_WAITS_FOR_ALL, root,                                 \
               is_leaf(&shape, root) ? to_rank(root, bytes_of(&timing, sent, send_type))          \
                                     : nothing,                                                   \
               (send, sent, send_type, receive, received, type, root, comm), const void *send,    \
               count_t sent, MPI_Datatype send_type, void *receive, count_t received,             \
               MPI_Datatype type, int root, MPI_Comm comm)                                        \
    COLLECTIVE(Gatherv, Igatherv, suffix, ROOT_WAITS_FOR_ALL, root,                               \
               is_leaf(&shape, root) ? to_rank(root, bytes_of(&timing, sent, send_type))          \
                                     : nothing,                                                   \
               (send, sent, send_type, receive, counts, shifts, type, root, comm),                \
               const void *send, count_t sent, MPI_Datatype send_type, void *receive,             \
               const count_t counts[], const shift_t shifts[], MPI_Datatype type, int root,       \
               MPI_Comm comm)                                                                     \
    COLLECTIVE(Scatter, Iscatter, suffix, ALL_WAIT_FOR_ROOT, root,                                \
               is_root(&shape, root) ? own_to_each(&shape, bytes_of(&timing, sent, send_type))    \
                                     : nothing,                                                   \
               (send, sent, send_type, receive, received, type, root, comm), const void *send,    \
               count_t sent, MPI_Datatype send_type, void *receive, count_t received,             \
               MPI_Datatype type, int root, MPI_Comm comm)                                        \
    COLLECTIVE(Scatterv, Iscatterv, suffix, ALL_WAIT_FOR_ROOT, root,                              \
               is_root(&shape, root)                                                              \
                   ? blocks##suffix(&timing, &shape, shape.size, counts, send_type)               \
                   : nothing,                                                                     \
               (send, counts, shifts, send_type, receive, received, type, root, comm),            \
               const void *send, const count_t counts[], const shift_t shifts[],                  \
               MPI_Datatype send_type, void *receive, count_t received, MPI_Datatype type,        \
               int root, MPI_Comm comm)                                                           \
    COLLECTIVE(Allgather, Iallgather, suffix, ALL_WAIT_FOR_ALL, 0,                                \
               same_to_each(send == MPI_IN_PLACE ? bytes_of(&timing, received, type)              \
                                                 : bytes_of(&timing, sent, send_type)),           \
               (send, sent, send_type, receive, received, type, comm), const void *send,          \
               count_t sent, MPI_Datatype send_type, void *receive, count_t received,             \
               MPI_Datatype type, MPI_Comm comm)                                                  \
    COLLECTIVE(Allgatherv, Iallgatherv, suffix, ALL_WAIT_FOR_ALL, 0,                              \
               same_to_each(send == MPI_IN_PLACE                                                  \
                                ? bytes_of(&timing, (int64_t)counts[shape.rank], type)            \
                                : bytes_of(&timing, sent, send_type)),                            \
               (send, sent, send_type, receive, counts, shifts, type, comm), const void *send,    \
               count_t sent, MPI_Datatype send_type, void *receive, const count_t counts[],       \
               const shift_t shifts[], MPI_Datatype type, MPI_Comm comm)                          \
    COLLECTIVE(Alltoall, Ialltoall, suffix, ALL_WAIT_FOR_ALL, 0,                                  \
               own_to_each(&shape, send == MPI_IN_PLACE ? bytes_of(&timing, received, type)       \
                                                        : bytes_of(&timing, sent, send_type)),    \
               (send, sent, send_type, receive, received, type, comm), const void *send,          \
               count_t sent, MPI_Datatype send_type, void *receive, count_t received,             \
               MPI_Datatype type, MPI_Comm comm)                                                  \
    COLLECTIVE(Alltoallv, Ialltoallv, suffix, ALL_WAIT_FOR_ALL, 0,                                \
               send == MPI_IN_PLACE                                                               \
                   ? blocks##suffix(&timing, &shape, shape.size, counts, type)                    \
                   : blocks##suffix(&timing, &shape, shape.size, sent, send_type),                \
               (send, sent, send_shifts, send_type, receive, counts, shifts, type, comm),         \
               const void *send, const count_t sent[], const shift_t send_shifts[],               \
               MPI_Datatype send_type, void *receive, const count_t counts[],                     \
               const shift_t shifts[], MPI_Datatype type, MPI_Comm comm)                          \
    COLLECTIVE(Alltoallw, Ialltoallw, suffix, ALL_WAIT_FOR_ALL, 0,                                \
               send == MPI_IN_PLACE ? typed_blocks##suffix(&timing, &shape, counts, types)        \
                                    : typed_blocks##suffix(&timing, &shape, sent, send_types),    \
               (send, sent, send_shifts, send_types, receive, counts, shifts, types, comm),       \
               const void *send, const count_t sent[], const shift_t send_shifts[],               \
               const MPI_Datatype send_types[], void *receive, const count_t counts[],            \
               const shift_t shifts[], const MPI_Datatype types[], MPI_Comm comm)                 \
    COLLECTIVE(Reduce, Ireduce, suffix, ROOT_WAITS_FOR_ALL, root,                                 \
               is_leaf(&shape, root) ? to_rank(root, bytes_of(&timing, count, type)) : nothing,   \
               (send, receive, count, type, op, root, comm), const void *send, void *receive,     \
               count_t count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)              \
    COLLECTIVE(Allreduce, Iallreduce, suffix, ALL_WAIT_FOR_ALL, 0,                                \
               same_to_each(bytes_of(&timing, count, type)),                                      \
               (send, receive, count, type, op, comm), const void *send, void *receive,           \
               count_t count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)                        \
    COLLECTIVE(Reduce_scatter, Ireduce_scatter, suffix, ALL_WAIT_FOR_ALL, 0,                      \
               blocks##suffix(&timing, &shape, shape.communicator->size, counts, type),           \
               (send, receive, counts, type, op, comm), const void *send, void *receive,          \
               const count_t counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm)               \
    COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, suffix, ALL_WAIT_FOR_ALL, 0,          \
               mean_to_each(&shape, shape.results *bytes_of(&timing, count, type)),               \
               (send, receive, count, type, op, comm), const void *send, void *receive,           \
               count_t count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)                        \
    COLLECTIVE(Scan, Iscan, suffix, ALL_WAIT_FOR_ALL, 0,                                          \
               to_next(&shape, bytes_of(&timing, count, type)),                                   \
               (send, receive, count, type, op, comm), const void *send, void *receive,           \
               count_t count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)                        \
    COLLECTIVE(Exscan, Iexscan, suffix, ALL_WAIT_FOR_ALL, 0,                                      \
               to_next(&shape, bytes_of(&timing, count, type)),                                   \
               (send, receive, count, type, op, comm), const void *send, void *receive,           \
               count_t count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)

COLLECTIVES(, int, int)
LARGE(COLLECTIVES(_c, MPI_Count, MPI_Aint))

/* Messages to the neighbours of a topology: all ranks' i-th block goes to the i-th destination. */
#define NEIGHBOURS(name, nonblocking, suffix, bytes, arguments, ...)                    \
    NEIGHBOURS_OF(name, suffix, bytes, (UNPACK arguments), __VA_ARGS__)                 \
    NEIGHBOURS_OF(nonblocking, suffix, bytes, (UNPACK arguments, request), __VA_ARGS__, \
                  MPI_Request *request)                                                 \
    PERSISTENT_NEIGHBOURS(name##_init##suffix, bytes, arguments, __VA_ARGS__)
#define NEIGHBOURS_OF(name, suffix, bytes, arguments, ...)                            \
    EXPORT int MPI_##name##suffix(__VA_ARGS__)                                        \
    {                                                                                 \
        struct timing timing = call_begin_in(CALL_##name, comm);                      \
        int code = PMPI_##name##suffix arguments;                                     \
        call_end(&timing);                                                            \
        struct communicator *communicator =                                           \
            code == MPI_SUCCESS ? record_communicator(&timing, comm) : NULL;          \
        const int *ranks = NULL;                                                      \
        int count = communicator ? communicator_neighbours(communicator, &ranks) : 0; \
        for (int i = 0; i < count; i++)                                               \
            if (ranks[i] != MPI_PROC_NULL)                                            \
                record_put(&timing, NEIGHBOURS, communicator, ranks[i], bytes);       \
        return code;                                                                  \
    }

/* The messages are those of each start. */
#ifdef HAS_PMPI_Neighbor_allgather_init
#define PERSISTENT_NEIGHBOURS(name, bytes, arguments, ...)                              \
    EXPORT int MPI_##name(__VA_ARGS__, MPI_Info info, MPI_Request *request)             \
    {                                                                                   \
        struct timing timing = begin_uncounted(comm);                                   \
        int code = PMPI_##name(UNPACK arguments, info, request);                        \
        struct communicator *communicator =                                             \
            code == MPI_SUCCESS ? record_communicator(&timing, comm) : NULL;            \
        const int *ranks = NULL;                                                        \
        int count = communicator ? communicator_neighbours(communicator, &ranks) : 0;   \
        int64_t *parts = count ? malloc((size_t)count * sizeof *parts) : NULL;          \
        for (int i = 0; parts && i < count; i++)                                        \
            parts[i] = ranks[i] == MPI_PROC_NULL ? 0 : bytes;                           \
        if (parts)                                                                      \
            request_remember(*request, &(struct request){ .persistent = true,           \
                                                          .unordered = true,            \
                                                          .communicator = communicator, \
                                                          .parts = parts });            \
        return code;                                                                    \
    }
#else
#define PERSISTENT_NEIGHBOURS(name, bytes, arguments, ...)
#endif

/* suffix, type of counts, type of displacements */
#define NEIGHBOURHOOD(suffix, count_t, shift_t)                                                   \
    NEIGHBOURS(Neighbor_allgather, Ineighbor_allgather, suffix,                                   \
               bytes_of(&timing, sent, send_type),                                                \
               (send, sent, send_type, receive, received, type, comm), const void *send,          \
               count_t sent, MPI_Datatype send_type, void *receive, count_t received,             \
               MPI_Datatype type, MPI_Comm comm)                                                  \
    NEIGHBOURS(Neighbor_allgatherv, Ineighbor_allgatherv, suffix,                                 \
               bytes_of(&timing, sent, send_type),                                                \
               (send, sent, send_type, receive, counts, shifts, type, comm), const void *send,    \
               count_t sent, MPI_Datatype send_type, void *receive, const count_t counts[],       \
               const shift_t shifts[], MPI_Datatype type, MPI_Comm comm)                          \
    NEIGHBOURS(Neighbor_alltoall, Ineighbor_alltoall, suffix, bytes_of(&timing, sent, send_type), \
               (send, sent, send_type, receive, received, type, comm), const void *send,          \
               count_t sent, MPI_Datatype send_type, void *receive, count_t received,             \
               MPI_Datatype type, MPI_Comm comm)                                                  \
    NEIGHBOURS(Neighbor_alltoallv, Ineighbor_alltoallv, suffix,                                   \
               bytes_of(&timing, (int64_t)sent[i], send_type),                                    \
               (send, sent, send_shifts, send_type, receive, counts, shifts, type, comm),         \
               const void *send, const count_t sent[], const shift_t send_shifts[],               \
               MPI_Datatype send_type, void *receive, const count_t counts[],                     \
               const shift_t shifts[], MPI_Datatype type, MPI_Comm comm)                          \
    NEIGHBOURS(Neighbor_alltoallw, Ineighbor_alltoallw, suffix,                                   \
               bytes_of(&timing, (int64_t)sent[i], send_types[i]),                                \
               (send, sent, send_shifts, send_types, receive, counts, shifts, types, comm),       \
               const void *send, const count_t sent[], const MPI_Aint send_shifts[],              \
               const MPI_Datatype send_types[], void *receive, const count_t counts[],            \
               const MPI_Aint shifts[], const MPI_Datatype types[], MPI_Comm comm)

NEIGHBOURHOOD(, int, int)
LARGE(NEIGHBOURHOOD(_c, MPI_Count, MPI_Aint))
