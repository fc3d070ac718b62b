#include "nodes.h"

#include <stdio.h>

#include "bench.h"

struct nodes nodes_find(long group)
{
    struct nodes nodes = { .group = group };
    MPI_Comm host, node;
    MPI_Comm_split(MPI_COMM_WORLD, bench.host_of[bench.rank], bench.rank, &host);
    int place, part;
    MPI_Comm_rank(host, &place);
    part = group ? (int)(place / group) : 0;
    MPI_Comm_split(host, part, place, &node);
    MPI_Comm_free(&host);

    MPI_Comm_rank(node, &nodes.place);
    MPI_Comm_size(node, &nodes.ranks);
    MPI_Allreduce(MPI_IN_PLACE, &nodes.ranks, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);

    MPI_Comm_split(MPI_COMM_WORLD, nodes.place == 0 ? 0 : MPI_UNDEFINED, bench.rank,
                   &nodes.leaders);
    int which[2] = { 0 };
    if (nodes.leaders != MPI_COMM_NULL) {
        MPI_Comm_size(nodes.leaders, &which[0]);
        MPI_Comm_rank(nodes.leaders, &which[1]);
    }
    MPI_Bcast(which, 2, MPI_INT, 0, node);
    MPI_Comm_free(&node);
    nodes.count = which[0];
    nodes.index = which[1];
    return nodes;
}

void nodes_free(struct nodes *nodes)
{
    if (nodes->leaders != MPI_COMM_NULL)
        MPI_Comm_free(&nodes->leaders);
}

void nodes_name(const struct nodes *nodes, int leader, char *name, size_t length)
{
    const char *host = bench.hosts[bench.host_of[leader]];
    if (nodes->group)
        snprintf(name, length, "%s:%d", host, leader);
    else
        snprintf(name, length, "%s", host);
}
