/* Begins MPI where no tool looks, as a program that finds MPI_Init by dlsym does. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank;
    PMPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d is here\n", rank);
    return PMPI_Finalize();
}
