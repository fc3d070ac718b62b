/* Each start of a persistent scatter sends what the root's memory has then. */
#include "defects.h"

#include <stdlib.h>

enum { STARTS = 3 };

#ifdef ASSAY_HAS_PERSISTENT_COLLECTIVES
bool persistent_scatter(int rank, int ranks)
{
    bool is_wrong = false;
    int *sent = calloc((size_t)ranks, sizeof *sent), got = -1;
    MPI_Request request;
    MPI_Scatter_init(sent, 1, MPI_INT, &got, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &request);
    for (int start = 1; start <= STARTS; start++) {
        for (int to = 0; to < ranks; to++)
            sent[to] = 100 * start + to;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        is_wrong = is_wrong || got != 100 * start + rank;
    }
    MPI_Request_free(&request);
    free(sent);
    return is_wrong;
}
#endif
