#include "ping_pong.h"

#include "sample.h"

enum { TAG = 1 };

double ping_pong(MPI_Comm pair, int size, struct memory_pool *send, struct memory_pool *receive,
                 long iterations)
{
    int rank;
    MPI_Comm_rank(pair, &rank);
    MPI_Barrier(pair);
    if (rank == 1) {
        for (long i = 0; i < iterations; i++) {
            MPI_Recv(memory_pool_next(receive), size, MPI_BYTE, 0, TAG, pair, MPI_STATUS_IGNORE);
            MPI_Send(memory_pool_next(send), size, MPI_BYTE, 0, TAG, pair);
        }
        return 0;
    }
    struct sample_instant start = sample_now();
    for (long i = 0; i < iterations; i++) {
        MPI_Send(memory_pool_next(send), size, MPI_BYTE, 1, TAG, pair);
        MPI_Recv(memory_pool_next(receive), size, MPI_BYTE, 1, TAG, pair, MPI_STATUS_IGNORE);
        sample_operation();
    }
    return sample_since(start) / 2;
}
