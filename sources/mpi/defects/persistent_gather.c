/* Each start of a persistent gather takes what the ranks' memory has then, the root's own too. */
#include "defects.h"

#include <stdlib.h>

enum { STARTS = 3, ROOT = 0 };

#ifdef ASSAY_HAS_PERSISTENT_COLLECTIVES
bool persistent_gather(int rank, int ranks)
{
    bool is_wrong = false;
    int *got = calloc((size_t)ranks, sizeof *got), sent = -1;
    MPI_Request request;
    MPI_Gather_init(&sent, 1, MPI_INT, got, 1, MPI_INT, ROOT, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &request);
    for (int start = 1; start <= STARTS; start++) {
        sent = 100 * start + rank;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int from = 0; rank == ROOT && from < ranks; from++)
            is_wrong = is_wrong || got[from] != 100 * start + from;
    }
    MPI_Request_free(&request);
    free(got);
    return is_wrong;
}
#endif
