/* A program with a PMPI layer of its own: its MPI_Send counts. */
#include <mpi.h>
#include <stdio.h>

static int sends;

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buffer, count, type, dest, tag, comm);
}

int main(int argc, char **argv)
{
    int rank, ranks, token = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < 3; i++) {
        MPI_Request request;
        MPI_Irecv(&token, 1, MPI_INT, (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, &request);
        MPI_Send(&rank, 1, MPI_INT, (rank + 1) % ranks, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    printf("rank %d: %d sends, token %d\n", rank, sends, token);
    MPI_Finalize();
    return 0;
}
