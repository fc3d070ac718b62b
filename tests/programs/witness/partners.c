/* Sends to so many partners in so many communicators, over and over.
 *
 *     partners PARTNERS COMMUNICATORS ROUNDS
 *
 * Rank r sends to r+1, r+2, ... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int partners = argc > 1 ? atoi(argv[1]) : 1, count = argc > 2 ? atoi(argv[2]) : 1;
    int rounds = argc > 3 ? atoi(argv[3]) : 1;
    MPI_Comm *comms = malloc((size_t)count * sizeof *comms);
    for (int c = 0; c < count; c++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
    for (int round = 0; round < rounds; round++) {
        for (int c = 0; c < count; c++) {
            for (int p = 1; p <= partners; p++) {
                int token;
                MPI_Sendrecv(&rank, 1, MPI_INT, (rank + p) % ranks, 1, &token, 1, MPI_INT,
                             (rank - p % ranks + ranks) % ranks, 1, comms[c], MPI_STATUS_IGNORE);
            }
        }
    }
    free(comms);
    MPI_Finalize();
    return 0;
}
