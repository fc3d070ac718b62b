/* One-sided communication: a put or an accumulate is a message to the target; a get is posted. */
#include "wrap.h"

static void record_to(const struct timing *timing, MPI_Win window, int target, int64_t count,
                      MPI_Datatype type)
{
    if (timing->thread && target != MPI_PROC_NULL)
        record_put(timing, ONE_SIDED, window_communicator(window), target,
                   bytes_of(timing, count, type));
}

/* What leaves the target is not a message of this rank. */
static void record_get(const struct timing *timing, int target, int64_t count, MPI_Datatype type)
{
    if (timing->thread)
        add_bytes(timing, message_bytes(timing, target, count, type));
}

/* With MPI_NO_OP it is a get, and what would be its origin has no meaning. */
#define RECORD_UPDATE(count, type) \
    (op == MPI_NO_OP ? (void)0 : record_to(&timing, window, target, count, type))

#define ORIGIN(count_t) count_t count, MPI_Datatype type
#define TARGET(count_t) int target, MPI_Aint shift, count_t target_count, MPI_Datatype target_type

/* suffix, type of counts */
#define ONE_SIDED_CALLS(suffix, count_t)                                                           \
    RECORDS(Put, suffix, record_to(&timing, window, target, count, type),                          \
            (origin, count, type, target, shift, target_count, target_type, window),               \
            const void *origin, ORIGIN(count_t), TARGET(count_t), MPI_Win window)                  \
    RECORDS(Rput, suffix, record_to(&timing, window, target, count, type),                         \
            (origin, count, type, target, shift, target_count, target_type, window, request),      \
            const void *origin, ORIGIN(count_t), TARGET(count_t), MPI_Win window,                  \
            MPI_Request *request)                                                                  \
    RECORDS(Get, suffix, record_get(&timing, target, count, type),                                 \
            (origin, count, type, target, shift, target_count, target_type, window), void *origin, \
            ORIGIN(count_t), TARGET(count_t), MPI_Win window)                                      \
    RECORDS(Rget, suffix, record_get(&timing, target, count, type),                                \
            (origin, count, type, target, shift, target_count, target_type, window, request),      \
            void *origin, ORIGIN(count_t), TARGET(count_t), MPI_Win window, MPI_Request *request)  \
    RECORDS(Accumulate, suffix, record_to(&timing, window, target, count, type),                   \
            (origin, count, type, target, shift, target_count, target_type, op, window),           \
            const void *origin, ORIGIN(count_t), TARGET(count_t), MPI_Op op, MPI_Win window)       \
    RECORDS(Raccumulate, suffix, record_to(&timing, window, target, count, type),                  \
            (origin, count, type, target, shift, target_count, target_type, op, window, request),  \
            const void *origin, ORIGIN(count_t), TARGET(count_t), MPI_Op op, MPI_Win window,       \
            MPI_Request *request)                                                                  \
    RECORDS(Get_accumulate, suffix, RECORD_UPDATE(count, type),                                    \
            (origin, count, type, result, result_count, result_type, target, shift, target_count,  \
             target_type, op, window),                                                             \
            const void *origin, ORIGIN(count_t), void *result, count_t result_count,               \
            MPI_Datatype result_type, TARGET(count_t), MPI_Op op, MPI_Win window)                  \
    RECORDS(Rget_accumulate, suffix, RECORD_UPDATE(count, type),                                   \
            (origin, count, type, result, result_count, result_type, target, shift, target_count,  \
             target_type, op, window, request),                                                    \
            const void *origin, ORIGIN(count_t), void *result, count_t result_count,               \
            MPI_Datatype result_type, TARGET(count_t), MPI_Op op, MPI_Win window,                  \
            MPI_Request *request)

ONE_SIDED_CALLS(, int)
LARGE(ONE_SIDED_CALLS(_c, MPI_Count))

RECORDS(Fetch_and_op, , RECORD_UPDATE(1, type), (origin, result, type, target, shift, op, window),
        const void *origin, void *result, MPI_Datatype type, int target, MPI_Aint shift, MPI_Op op,
        MPI_Win window)
RECORDS(Compare_and_swap, , record_to(&timing, window, target, 1, type),
        (origin, compare, result, type, target, shift, window), const void *origin,
        const void *compare, void *result, MPI_Datatype type, int target, MPI_Aint shift,
        MPI_Win window)

COUNTS(Win_fence, , (assertion, window), int assertion, MPI_Win window)
COUNTS(Win_lock, , (kind, rank, assertion, window), int kind, int rank, int assertion,
       MPI_Win window)
COUNTS(Win_unlock, , (rank, window), int rank, MPI_Win window)
COUNTS(Win_lock_all, , (assertion, window), int assertion, MPI_Win window)
COUNTS(Win_unlock_all, , (window), MPI_Win window)
COUNTS(Win_flush, , (rank, window), int rank, MPI_Win window)
COUNTS(Win_flush_all, , (window), MPI_Win window)
COUNTS(Win_flush_local, , (rank, window), int rank, MPI_Win window)
COUNTS(Win_flush_local_all, , (window), MPI_Win window)
COUNTS(Win_post, , (group, assertion, window), MPI_Group group, int assertion, MPI_Win window)
COUNTS(Win_start, , (group, assertion, window), MPI_Group group, int assertion, MPI_Win window)
COUNTS(Win_complete, , (window), MPI_Win window)
COUNTS(Win_wait, , (window), MPI_Win window)
COUNTS(Win_test, , (window, flag), MPI_Win window, int *flag)

RECORDS(Win_create_dynamic, , window_created(*window, comm), (info, comm, window), MPI_Info info,
        MPI_Comm comm, MPI_Win *window)

/* suffix, type of displacement units */
#define WINDOWS(suffix, unit_t)                                                                \
    RECORDS(Win_create, suffix, window_created(*window, comm),                                 \
            (base, size, unit, info, comm, window), void *base, MPI_Aint size, unit_t unit,    \
            MPI_Info info, MPI_Comm comm, MPI_Win *window)                                     \
    RECORDS(Win_allocate, suffix, window_created(*window, comm),                               \
            (size, unit, info, comm, base, window), MPI_Aint size, unit_t unit, MPI_Info info, \
            MPI_Comm comm, void *base, MPI_Win *window)                                        \
    RECORDS(Win_allocate_shared, suffix, window_created(*window, comm),                        \
            (size, unit, info, comm, base, window), MPI_Aint size, unit_t unit, MPI_Info info, \
            MPI_Comm comm, void *base, MPI_Win *window)

WINDOWS(, int)
LARGE(WINDOWS(_c, MPI_Aint))

FREES(Win_free, counted, MPI_Win, struct communicator, window_take, window_put_back,
      communicator_release)
