/* Rank 0 receives a stream of small messages from each other rank, whoever sends first. */
#include "defects.h"

enum { MESSAGES = 200, TAG = 1 };

static void send_all(void)
{
    for (int i = 0; i < MESSAGES; i++)
        MPI_Send(&i, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
}

bool any_source(int rank, int ranks)
{
    if (rank != 0) {
        send_all();
        return false;
    }
    long sum = 0;
    for (int i = 0; i < MESSAGES * (ranks - 1); i++) {
        int got = -1;
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += got;
    }
    return sum != MESSAGES * (MESSAGES - 1L) / 2 * (ranks - 1);
}
