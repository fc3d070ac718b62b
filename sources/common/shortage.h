/* Whether the memory of the hosts is enough, asked before it is taken. */
#ifndef ASSAY_SHORTAGE_H
#define ASSAY_SHORTAGE_H

#include <mpi.h>

#include "host.h"

/* Of the host that lacks most. */
struct shortage {
    char host[MPI_MAX_PROCESSOR_NAME];
    double need, available; /* GiB: of its ranks together, and what it has */
};

/* Collective over MPI_COMM_WORLD. `host` is one number for all ranks of a host, and no other's.
 * Returns whether a host lacks memory, the same on all ranks, and then tells of which. */
static inline int find_shortage(double bytes_on_this_rank, int host, struct shortage *found)
{
    int rank, length;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm ranks_of_host;
    MPI_Comm_split(MPI_COMM_WORLD, host, rank, &ranks_of_host);
    double need = bytes_on_this_rank;
    MPI_Allreduce(MPI_IN_PLACE, &need, 1, MPI_DOUBLE, MPI_SUM, ranks_of_host);
    MPI_Comm_free(&ranks_of_host);

    struct {
        double lack;
        int rank;
    } worst = { need - (double)host_available_memory(), rank };
    MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    if (worst.lack <= 0)
        return 0;
    MPI_Get_processor_name(found->host, &length);
    found->need = need / (1 << 30);
    found->available = (need - worst.lack) / (1 << 30);
    MPI_Bcast(found, sizeof *found, MPI_BYTE, worst.rank, MPI_COMM_WORLD);
    return 1;
}

#endif
