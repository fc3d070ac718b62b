/* A message for which the receiver waits first comes behind many that nobody waits for yet. */
#include "defects.h"

enum { MESSAGES = 256, LAST = MESSAGES - 1 };

bool unexpected_messages(int rank, int ranks)
{
    int sent[MESSAGES], got = -1;
    bool is_wrong = false;
    MPI_Request requests[MESSAGES];
    (void)ranks;
    if (rank == 1) {
        for (int i = 0; i < MESSAGES; i++) {
            sent[i] = i;
            MPI_Isend(&sent[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    }
    for (int tag = LAST; rank == 0 && tag >= 0; tag--) {
        MPI_Recv(&got, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        is_wrong = is_wrong || got != tag;
    }
    return is_wrong;
}
