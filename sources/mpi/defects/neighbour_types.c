/* In a graph with edges one way, from the first rank to all others, each neighbour has a type and a
 * number of elements of its own. */
#include "defects.h"

enum { MOST = 8, INTS = 3 };

static int min(int a, int b)
{
    return a < b ? a : b;
}

bool neighbour_types(int rank, int ranks)
{
    int others[MOST], counts[MOST], weights[MOST], sent[MOST][INTS], got[INTS] = { -1, -1, -1 };
    int outs = rank == 0 ? min(ranks - 1, MOST) : 0, ins = rank > 0 && rank <= MOST, root = 0;
    bool is_wrong = false;
    MPI_Aint shifts[MOST], none = 0;
    MPI_Datatype types[MOST], type = MPI_INT;
    MPI_Comm graph;
    for (int i = 0; i < MOST; i++) {
        others[i] = i + 1;
        counts[i] = INTS;
        weights[i] = 1;
        shifts[i] = (MPI_Aint)sizeof sent[0] * i;
        types[i] = MPI_INT;
        for (int j = 0; j < INTS; j++)
            sent[i][j] = 10 * i + j;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, ins, &root, weights, outs, others, weights,
                                   MPI_INFO_NULL, 0, &graph);
    MPI_Neighbor_alltoallw(sent, counts, shifts, types, got, counts, &none, &type, graph);
    for (int j = 0; ins && j < INTS; j++)
        is_wrong = is_wrong || got[j] != 10 * (rank - 1) + j;
    MPI_Comm_free(&graph);
    return is_wrong;
}
