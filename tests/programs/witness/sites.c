/* Calls MPI_Send and MPI_Recv from two places each, in two phases; in the second, rank 0 comes late. */
#define _GNU_SOURCE
#include <mpi.h>
#include <unistd.h>

enum { FIRST = 100, SECOND = 3, LATE_US = 50000 };

static void first(int rank)
{
    char data[64] = "";
    for (int i = 0; i < FIRST; i++) {
        if (rank == 0)
            MPI_Send(data, sizeof data, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        else if (rank == 1)
            MPI_Recv(data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void second(int rank)
{
    char data[64] = "";
    for (int i = 0; i < SECOND; i++) {
        if (rank == 0)
            usleep(LATE_US);
        if (rank == 0)
            MPI_Send(data, sizeof data, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        else if (rank == 1)
            MPI_Recv(data, sizeof data, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Pcontrol(1);
    first(rank);
    MPI_Pcontrol(2);
    second(rank);
    MPI_Pcontrol(1);
    first(rank);
    MPI_Pcontrol(0);
    if (rank == 1)
        usleep(LATE_US);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
