/* MPI_Testall of requests that all succeeded returns success, also if it fills statuses. */
#include "defects.h"

enum { TAG = 1 };

bool testall_statuses(int rank, int ranks)
{
    int sent = rank, got = -1, is_done = 0, code = MPI_SUCCESS;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Irecv(&got, 1, MPI_INT, (rank + ranks - 1) % ranks, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&sent, 1, MPI_INT, (rank + 1) % ranks, TAG, MPI_COMM_WORLD, &requests[1]);
    while (!is_done && code == MPI_SUCCESS)
        code = MPI_Testall(2, requests, &is_done, statuses);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return code != MPI_SUCCESS || got != (rank + ranks - 1) % ranks;
}
