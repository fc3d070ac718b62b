/* What a launcher made of a program: the size of its world, said by each rank. */

#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank = -1, size = -1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* A message to every rank: some launchers start what cannot talk. */
    MPI_Allreduce(&(int){ 1 }, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    printf("\nassay: rank %d of %d, and %d answered\n", rank, size, sum);
    return sum != size;
}
