/* Begins MPI where no tool looks, as a program that finds MPI_Init by dlsym does; with BEGINS_SEEN only
 * ends it there. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank;
#ifdef BEGINS_SEEN
    MPI_Init(&argc, &argv);
#else
    PMPI_Init(&argc, &argv);
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d is here\n", rank);
    return PMPI_Finalize();
}
