/* Prints the node's limits: the vector limit, and the triad limit for each of some sizes. Aborts
 * when ranks learn different ones.
 *
 * Usage: limits WINDOWS BYTES... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "node_limits.h"

static void print_same(double limit)
{
    int rank;
    double greatest;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&limit, &greatest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (limit != greatest)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0)
        printf("%.6g\n", limit);
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    int windows = argc > 1 ? atoi(argv[1]) : 1;
    print_same(limit_vector(MPI_COMM_WORLD, windows).rate);
    for (int i = 2; i < argc; i++) {
        struct triad_limit *limit = limit_triad_make(MPI_COMM_WORLD, atof(argv[i]));
        print_same(limit_triad(limit, windows).rate);
        print_same(limit_triad(limit, windows).rate);
        limit_triad_free(limit);
    }
    MPI_Finalize();
    return 0;
}
