/* Rank 0 takes many messages of the rendezvous protocol from each other rank, posted all at once:
 * the last acknowledgements of the receiver must still get through when nothing else moves. */
#include <stdlib.h>

#include "defects.h"

enum { MESSAGES = 300, BYTES = 64 << 10, ROUNDS = 3, TAG = 1 };

bool incast(int rank, int ranks)
{
    int most = rank == 0 ? MESSAGES * (ranks - 1) : MESSAGES;
    MPI_Request *requests = malloc((size_t)most * sizeof *requests);
    char *bytes = calloc((size_t)most, BYTES);
    if (!requests || !bytes)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < most; i++) {
            char *message = bytes + (size_t)i * BYTES;
            if (rank == 0)
                MPI_Irecv(message, BYTES, MPI_CHAR, 1 + i % (ranks - 1), TAG, MPI_COMM_WORLD,
                          &requests[i]);
            else
                MPI_Isend(message, BYTES, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(most, requests, MPI_STATUSES_IGNORE);
    }
    free(requests);
    free(bytes);
    return false;
}
