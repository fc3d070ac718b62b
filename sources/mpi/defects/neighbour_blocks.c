/* In a periodic dimension of one rank, that rank is its own neighbour on both sides: what it sends to
 * the left arrives from the right. */
#include "defects.h"

enum { SIDES = 4 };

bool neighbour_blocks(int rank, int ranks)
{
    int shape[] = { ranks, 1 }, periodic[] = { 1, 1 };
    int sent[SIDES], got[SIDES] = { -1, -1, -1, -1 };
    bool is_wrong = false;
    MPI_Comm grid;
    MPI_Request request;
    (void)rank;
    MPI_Cart_create(MPI_COMM_WORLD, 2, shape, periodic, 0, &grid);
    for (int side = 0; side < SIDES; side++)
        sent[side] = side;
    MPI_Ineighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, grid, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int side = 0; side < SIDES; side++)
        is_wrong = is_wrong || got[side] != (side ^ 1);
    MPI_Comm_free(&grid);
    return is_wrong;
}
