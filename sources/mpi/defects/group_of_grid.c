/* A communicator that is made of the group of a grid has no topology. Open MPI's claims to be a grid,
 * and MPI_Cart_shift on it divides by zero. */
#include "defects.h"

bool group_of_grid(int rank, int ranks)
{
    MPI_Comm ring = ring_of(ranks), plain;
    MPI_Group group;
    int topology;
    (void)rank;
    MPI_Comm_group(ring, &group);
    MPI_Comm_create_group(ring, group, 0, &plain);
    MPI_Topo_test(plain, &topology);
    MPI_Group_free(&group);
    MPI_Comm_free(&plain);
    MPI_Comm_free(&ring);
    return topology != MPI_UNDEFINED;
}
