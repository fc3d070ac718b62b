/* Messages in communicators, intercommunicators and topologies, with known counts, of 4 ranks. */
#include "known.h"

static int out[ROOM], in[ROOM];

/* A message of `count` integers to the next rank of a communicator. */
static void around(MPI_Comm comm, int count)
{
    int own, ranks, from;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &ranks);
    fill(out, count, rank);
    MPI_Sendrecv(out, count, MPI_INT, (own + 1) % ranks, 1, in, ROOM, MPI_INT,
                 (own + ranks - 1) % ranks, 1, comm, MPI_STATUS_IGNORE);
    from = in[0] / 1000;
    expect(in, count, from, "around");
}

static void split(void)
{
    MPI_Comm reversed, half, twin, without;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    around(reversed, 1);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half); /* 0 2, 1 3 */
    around(half, 2);
    MPI_Comm_dup(reversed, &twin);
    around(twin, 3);
    MPI_Comm_free(&twin);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &twin);
    around(twin, 4);
    MPI_Comm_split(half, rank < 2 ? MPI_UNDEFINED : 0, 0, &without); /* 2 alone, 3 alone */
    check((without == MPI_COMM_NULL) == (rank < 2), "no communicator");
    if (without != MPI_COMM_NULL) {
        around(without, 5);
        MPI_Comm_free(&without);
    }
    MPI_Comm_free(&half);
    MPI_Comm_free(&reversed);
    around(twin, 6);
    MPI_Comm_free(&twin);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &twin);
    around(twin, 7);
    MPI_Comm_disconnect(&twin);
}

static void groups(void)
{
    const int chosen[3] = { 3, 0, 1 };
    MPI_Group all, some;
    MPI_Comm made;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 3, chosen, &some);
    MPI_Comm_create(MPI_COMM_WORLD, some, &made);
    if (rank != 2) {
        around(made, 9);
        MPI_Comm_free(&made);
    }
#if !defined MPICH_VERSION || defined I_MPI_VERSION
    /* MPICH 4 crashes in it here. */
    if (rank != 2) {
        MPI_Comm_create_group(MPI_COMM_WORLD, some, 5, &made);
        around(made, 10);
        MPI_Comm_free(&made);
    }
#endif
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}

/* Ranks 0, 1 and 2, 3 as two groups. */
static void inter(void)
{
    MPI_Comm half, between, twin, merged;
    int low = rank < 2, peer = rank % 2, sum, word = 1 << rank, words[2], root;
    MPI_Comm_split(MPI_COMM_WORLD, low, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? 2 : 0, 7, &between);
    /* Crosswise: 0 and 3, 1 and 2. */
    fill(out, ROOM, rank);
    MPI_Sendrecv(out, 4, MPI_INT, 1 - peer, 1, in, ROOM, MPI_INT, 1 - peer, 1, between,
                 MPI_STATUS_IGNORE);
    expect(in, 4, 3 - rank, "between");

    MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, between);
    check(sum == (low ? 4 + 8 : 1 + 2), "MPI_Allreduce between");
    MPI_Barrier(between);
    MPI_Allgather(&word, 1, MPI_INT, words, 1, MPI_INT, between);
    check(words[1] == (low ? 8 : 2), "MPI_Allgather between");
    MPI_Alltoall(out, 2, MPI_INT, in, 2, MPI_INT, between);
    check(in[0] == 1000 * (low ? 2 : 0) + 2 * peer, "MPI_Alltoall between");
    /* Rank 1 is the root of 2 and 3. */
    root = rank == 1 ? MPI_ROOT : low ? MPI_PROC_NULL : 1;
    fill(in, 8, 5);
    MPI_Bcast(in, 8, MPI_INT, root, between);
    MPI_Reduce(&word, &sum, 1, MPI_INT, MPI_SUM, root, between);
    check(rank != 1 || sum == 4 + 8, "MPI_Reduce between");
    MPI_Gather(out, 3, MPI_INT, in, 3, MPI_INT, root, between);
    MPI_Scatter(out, 5, MPI_INT, in, 5, MPI_INT, root, between);
    check(low || in[0] == 1000 + 5 * peer, "MPI_Scatter between");

    MPI_Comm_dup(between, &twin);
    fill(out, 5, rank);
    MPI_Sendrecv(out, 5, MPI_INT, peer, 1, in, ROOM, MPI_INT, peer, 1, twin, MPI_STATUS_IGNORE);
    expect(in, 5, (rank + 2) % 4, "between again");
    MPI_Comm_free(&twin);
    MPI_Intercomm_merge(between, low, &merged); /* 2 3 0 1 */
    around(merged, 6);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

/* 2 x 2: a ring across the rows, and a line down the columns. */
static void grid(void)
{
    const int extents[2] = { 2, 2 }, periods[2] = { 0, 1 }, rows[2] = { 0, 1 }, none[2] = { 0, 0 };
    int counts[4] = { 2, 2, 3, 3 }, shifts[4] = { 0, 4, 8, 12 };
    MPI_Aint byte_shifts[4] = { 0, 16, 32, 48 };
    MPI_Datatype types[4] = { MPI_SHORT, MPI_SHORT, MPI_INT, MPI_INT };
    MPI_Comm grid, row, point;
    MPI_Request request;
    MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periods, 0, &grid);
    fill(out, ROOM, rank);
    MPI_Neighbor_allgather(out, 2, MPI_INT, in, 2, MPI_INT, grid);
    expect(in + 4, 2, rank ^ 1, "MPI_Neighbor_allgather");
    MPI_Neighbor_alltoall(out, 3, MPI_INT, in, 3, MPI_INT, grid);
    /* Both blocks of a row go to the same rank; which comes first depends on the MPI's age. */
    check(in[6] + in[9] == 2000 * (rank ^ 1) + 6 + 9, "MPI_Neighbor_alltoall");
    MPI_Neighbor_alltoallv(out, counts, shifts, MPI_INT, in, counts, shifts, MPI_INT, grid);
    check(in[8] + in[12] == 2000 * (rank ^ 1) + 8 + 12, "MPI_Neighbor_alltoallv");
    MPI_Ineighbor_alltoallw(out, counts, byte_shifts, types, in, counts, byte_shifts, types, grid,
                            &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ineighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, grid, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(in[2] == 1000 * (rank ^ 1), "MPI_Ineighbor_allgather");

    MPI_Cart_sub(grid, rows, &row);
    MPI_Neighbor_allgather(out, 4, MPI_INT, in, 4, MPI_INT, row);
    expect(in, 4, rank ^ 1, "in a row");
    around(row, 11);
    MPI_Cart_sub(grid, none, &point);
    if (point != MPI_COMM_NULL) { /* as it should be; MPICH makes but one */
        MPI_Neighbor_allgather(out, 4, MPI_INT, in, 4, MPI_INT, point);
        MPI_Comm_free(&point);
    }
    MPI_Comm_free(&row);
    MPI_Comm_free(&grid);
}

/* 0 - 1 - 2 - 3 and 0 - 3: a ring; and 0 - 2. */
static void graph(void)
{
    const int index[4] = { 3, 5, 8, 10 }, edges[10] = { 1, 2, 3, 0, 2, 0, 1, 3, 0, 2 };
    MPI_Comm graph;
    MPI_Request request;
    const int degree = rank % 2 ? 2 : 3;
    const int *neighbours = &edges[rank ? index[rank - 1] : 0];
    MPI_Graph_create(MPI_COMM_WORLD, 4, index, edges, 0, &graph);
    fill(out, ROOM, rank);
    MPI_Neighbor_allgather(out, 3, MPI_INT, in, 3, MPI_INT, graph);
    for (int i = 0; i < degree; i++)
        expect(in + 3 * i, 3, neighbours[i], "in a graph");
    MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, graph, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < degree; i++)
        check(in[i] / 1000 == neighbours[i], "all to all in a graph");
    MPI_Comm_free(&graph);
}

/* Rank 0 sends to all, itself too; the others send to nobody; of reversed ranks. */
static void star(void)
{
    const int zero = 0, four = 4, weights[4] = { 1, 1, 1, 1 }, all[4] = { 3, 1, 2, 0 };
    int counts[4] = { 1, 2, 3, 4 }, shifts[4] = { 0, 1, 3, 6 }, own;
    MPI_Aint byte_shifts[4] = { 0, 4, 12, 24 };
    MPI_Datatype types[4] = { MPI_INT, MPI_INT, MPI_INT, MPI_INT };
    MPI_Comm reversed, star;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Comm_rank(reversed, &own);
    fill(out, ROOM, rank);
    fill(in, ROOM, 0);
    MPI_Dist_graph_create_adjacent(reversed, 1, &zero, weights, own ? 0 : 4, all, weights,
                                   MPI_INFO_NULL, 0, &star);
    MPI_Neighbor_allgather(out, 2, MPI_INT, in, 2, MPI_INT, star);
    expect(in, 2, 3, "of a star");
    int mine = own == 3 ? 1 : own == 1 ? 2 : own == 2 ? 3 : 4, first = 0;
    MPI_Neighbor_alltoallv(out, counts, shifts, MPI_INT, in, &mine, &first, MPI_INT, star);
    check(in[0] == 3000 + shifts[mine - 1], "MPI_Neighbor_alltoallv of a star");
    MPI_Ineighbor_alltoallv(out, counts, shifts, MPI_INT, in, &mine, &first, MPI_INT, star,
                            &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Aint nowhere = 0;
    MPI_Neighbor_alltoallw(out, counts, byte_shifts, types, in, &mine, &nowhere, types, star);
    check(in[0] == 3000 + shifts[mine - 1], "MPI_Neighbor_alltoallw of a star");
    MPI_Comm_free(&star);

    /* The same, told by rank 2 of it alone. */
    const int source = 0;
    MPI_Dist_graph_create(reversed, own == 2, &source, &four, all, weights, MPI_INFO_NULL, 0,
                          &star);
    mine = 2;
    MPI_Neighbor_allgatherv(out, 2, MPI_INT, in, &mine, &first, MPI_INT, star);
    expect(in, 2, 3, "MPI_Neighbor_allgatherv of a star");
    MPI_Ineighbor_allgatherv(out, 2, MPI_INT, in, &mine, &first, MPI_INT, star, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&star);
    MPI_Comm_free(&reversed);
}

/* Communicators one after another, of all ranks in order and in reverse. In each, all ranks send an
 * integer to its first one, itself included. */
static void make_and_free(int times)
{
    for (int i = 0; i < times; i++) {
        MPI_Comm made;
        MPI_Request request;
        int own, word = i, got;
        MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? -rank : rank, &made);
        MPI_Comm_rank(made, &own);
        MPI_Isend(&word, 1, MPI_INT, 0, 1, made, &request);
        for (int from = 0; own == 0 && from < size; from++) {
            MPI_Recv(&got, 1, MPI_INT, from, 1, made, MPI_STATUS_IGNORE);
            check(got == i, "made and freed");
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&made);
    }
}

static int send_around(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)key, (void)value, (void)extra;
    around(comm, 3);
    return MPI_SUCCESS;
}

/* One that is used while it is freed, whose handle the next one of another size gets. */
static void callbacks(void)
{
    int key, word = 7, got = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, send_around, &key, NULL);
    for (int i = 0; i < 3; i++) {
        MPI_Comm copy, own;
        MPI_Request request;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Comm_set_attr(copy, key, NULL);
        MPI_Comm_free(&copy);
        MPI_Comm_idup(MPI_COMM_SELF, &own, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&word, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, own, MPI_STATUS_IGNORE);
        check(got == word, "in its own");
        MPI_Comm_free(&own);
    }
    MPI_Comm_free_keyval(&key);
}

static void few(void)
{
    make_and_free(30);
}

static void many(void)
{
    make_and_free(300);
}

int main(int argc, char **argv)
{
    static const struct part parts[] = {
        { "split", split },         { "groups", groups }, { "inter", inter }, { "grid", grid },
        { "graph", graph },         { "star", star },     { "few", few },     { "many", many },
        { "callbacks", callbacks }, { NULL, NULL },
    };
    return run_parts(argc, argv, parts);
}
