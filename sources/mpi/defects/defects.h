/* What a reproducer of a defect has to offer.
 *
 * It returns whether this rank saw the defect. One that crashes, aborts or waits for ever shows it
 * as well: main in defects.c ends it after its time. All ranks of MPI_COMM_WORLD, two at least, call
 * it at once, after they have exchanged messages. */
#ifndef ASSAY_DEFECTS_H
#define ASSAY_DEFECTS_H

#include <mpi.h>
#include <stdbool.h>

bool accumulate_offset(int rank, int ranks);
bool accumulate_pairs(int rank, int ranks);
bool any_source(int rank, int ranks);
bool create_window(int rank, int ranks);
bool graph_of_grid(int rank, int ranks);
bool group_of_grid(int rank, int ranks);
bool incast(int rank, int ranks);
bool neighbour_blocks(int rank, int ranks);
bool neighbour_types(int rank, int ranks);
bool partitioned_some(int rank, int ranks);
bool persistent_gather(int rank, int ranks);
bool persistent_scatter(int rank, int ranks);
bool reduce_large_type(int rank, int ranks);
bool sub_grid(int rank, int ranks);
bool testall_statuses(int rank, int ranks);
bool unexpected_messages(int rank, int ranks);

/* A ring of all ranks: a periodic grid with one dimension. */
static inline MPI_Comm ring_of(int ranks)
{
    int periodic = 1;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
    return ring;
}

#endif
