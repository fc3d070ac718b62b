/* The nodes of a job: the ranks of a host, or with --group that many of them. */
#ifndef ASSAY_NODES_H
#define ASSAY_NODES_H

#include <mpi.h>
#include <stddef.h>

struct nodes {
    int count;
    int index;        /* of this rank's node, in the order of their first ranks */
    int place;        /* of this rank within its node, from 0 */
    int ranks;        /* of the node that has the fewest */
    long group;       /* 0: a host is a node */
    MPI_Comm leaders; /* the first rank of each node, by index; MPI_COMM_NULL on the others */
};

/* Collective over MPI_COMM_WORLD. Hosts are told by their names, as everywhere in these programs:
 * an MPI that was told to use no shared memory may say that no two ranks can share any. */
struct nodes nodes_find(long group);
void nodes_free(struct nodes *nodes);

/* The name of the node whose first rank in MPI_COMM_WORLD is `leader`: its host, with --group
 * followed by that rank. */
void nodes_name(const struct nodes *nodes, int leader, char *name, size_t length);

#endif
