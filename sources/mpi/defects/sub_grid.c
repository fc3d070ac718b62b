/* A part of a grid that keeps none of its dimensions is a grid of one rank, on every rank. */
#include "defects.h"

bool sub_grid(int rank, int ranks)
{
    MPI_Comm ring = ring_of(ranks), part;
    int remains = 0;
    (void)rank;
    MPI_Cart_sub(ring, &remains, &part);
    bool is_missing = part == MPI_COMM_NULL;
    if (!is_missing)
        MPI_Comm_free(&part);
    MPI_Comm_free(&ring);
    return is_missing;
}
