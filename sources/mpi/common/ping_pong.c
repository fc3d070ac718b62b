#include "ping_pong.h"

#include "payload.h"
#include "sample.h"

enum { TAG = 1 };

static struct payload_mark mark_next(struct memory_pool *send, int size, long left)
{
    return payload_mark(memory_pool_next(send), (size_t)size, left);
}

static long lacks_mark(const struct memory_pool *receive, int size, long left)
{
    return payload_lacks_mark(memory_pool_slot(receive), (size_t)size, left);
}

double ping_pong(MPI_Comm pair, int size, struct memory_pool *send, struct memory_pool *receive,
                 long iterations)
{
    int rank;
    long lacking = 0;
    MPI_Comm_rank(pair, &rank);
    sample_barrier(pair);
    if (rank == 1) {
        for (long i = 0; i < iterations; i++) {
            MPI_Recv(memory_pool_next(receive), size, MPI_BYTE, 0, TAG, pair, MPI_STATUS_IGNORE);
            lacking += lacks_mark(receive, size, iterations - 1 - i);
            struct payload_mark mark = mark_next(send, size, iterations - 1 - i);
            MPI_Send(memory_pool_slot(send), size, MPI_BYTE, 0, TAG, pair);
            payload_unmark(mark);
        }
        payload_require_marks(lacking, (size_t)size);
        return 0;
    }
    struct sample_instant start = sample_now();
    for (long i = 0; i < iterations; i++) {
        struct payload_mark mark = mark_next(send, size, iterations - 1 - i);
        MPI_Send(memory_pool_slot(send), size, MPI_BYTE, 1, TAG, pair);
        payload_unmark(mark);
        MPI_Recv(memory_pool_next(receive), size, MPI_BYTE, 1, TAG, pair, MPI_STATUS_IGNORE);
        lacking += lacks_mark(receive, size, iterations - 1 - i);
        sample_operation();
    }
    double seconds = sample_since(start) / 2;
    payload_require_marks(lacking, (size_t)size);
    return seconds;
}
