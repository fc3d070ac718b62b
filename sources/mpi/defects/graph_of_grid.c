/* A distributed graph that is made of a grid is a graph, and no longer a grid. */
#include "defects.h"

bool graph_of_grid(int rank, int ranks)
{
    MPI_Comm ring = ring_of(ranks), graph;
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks, topology;
    const int weight = 1;
    MPI_Dist_graph_create_adjacent(ring, 1, &left, &weight, 1, &right, &weight, MPI_INFO_NULL, 0,
                                   &graph);
    MPI_Topo_test(graph, &topology);
    /* To free a communicator with two topologies would crash. */
    return topology != MPI_DIST_GRAPH;
}
