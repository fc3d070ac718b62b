/* Partitioned messages wait for nobody but the two ranks that they are between. All ranks but the last
 * one have them: of two ranks the first sends to itself. */
#include "defects.h"

enum { PARTITIONS = 4, SENDER = 0, TAG = 1 };

#ifdef ASSAY_HAS_PARTITIONED
bool partitioned_some(int rank, int ranks)
{
    bool is_wrong = false;
    int sent[PARTITIONS], got[PARTITIONS] = { 0 }, receiver = ranks - 2, count = 0;
    MPI_Request requests[2];
    if (rank == receiver)
        MPI_Precv_init(got, PARTITIONS, 1, MPI_INT, SENDER, TAG, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[count++]);
    if (rank == SENDER)
        MPI_Psend_init(sent, PARTITIONS, 1, MPI_INT, receiver, TAG, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[count++]);
    MPI_Startall(count, requests);
    for (int i = 0; rank == SENDER && i < PARTITIONS; i++) {
        sent[i] = 100 + i;
        MPI_Pready(i, requests[count - 1]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; rank == receiver && i < PARTITIONS; i++)
        is_wrong = is_wrong || got[i] != 100 + i;
    for (int i = 0; i < count; i++)
        MPI_Request_free(&requests[i]);
    return is_wrong;
}
#endif
