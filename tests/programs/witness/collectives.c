/* Collectives with known counts, on MPI_COMM_WORLD of 4 ranks and on communicators of its own. */
#include "known.h"

static int out[ROOM], in[ROOM];

static void wait_for(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* From and to rank 2. */
static void rooted(void)
{
    const int root = 2, counts[4] = { 1, 2, 3, 4 }, shifts[4] = { 0, 10, 20, 30 };
    MPI_Request request;
    bool is_root = rank == root;
    fill(out, ROOM, is_root ? root : 9);
    MPI_Bcast(out, 10, MPI_INT, root, MPI_COMM_WORLD);
    expect(out, 10, root, "MPI_Bcast");
    MPI_Ibcast(out, 3, MPI_INT, root, MPI_COMM_WORLD, &request);
    wait_for(&request);

    fill(out, ROOM, rank);
    MPI_Gather(out, 2, MPI_INT, in, 2, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; is_root && i < 4; i++)
        expect(in + 2 * i, 2, i, "MPI_Gather");
    MPI_Gather(is_root ? MPI_IN_PLACE : out, 2, MPI_INT, in, 2, MPI_INT, root, MPI_COMM_WORLD);
    MPI_Gatherv(out, counts[rank], MPI_INT, in, counts, shifts, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; is_root && i < 4; i++)
        expect(in + shifts[i], counts[i], i, "MPI_Gatherv");
    MPI_Igather(out, 5, MPI_INT, in, 5, MPI_INT, root, MPI_COMM_WORLD, &request);
    wait_for(&request);
    MPI_Igatherv(is_root ? MPI_IN_PLACE : out, counts[rank], MPI_INT, in, counts, shifts, MPI_INT,
                 root, MPI_COMM_WORLD, &request);
    wait_for(&request);

    MPI_Scatter(out, 4, MPI_INT, in, 4, MPI_INT, root, MPI_COMM_WORLD);
    check(in[0] == 1000 * root + 4 * rank, "MPI_Scatter");
    MPI_Scatter(out, 4, MPI_INT, is_root ? MPI_IN_PLACE : in, 4, MPI_INT, root, MPI_COMM_WORLD);
    MPI_Scatterv(out, counts, shifts, MPI_INT, in, counts[rank], MPI_INT, root, MPI_COMM_WORLD);
    check(in[0] == 1000 * root + shifts[rank], "MPI_Scatterv");
    MPI_Iscatter(out, 1, MPI_INT, in, 1, MPI_INT, root, MPI_COMM_WORLD, &request);
    wait_for(&request);
    MPI_Iscatterv(out, counts, shifts, MPI_INT, is_root ? MPI_IN_PLACE : in, counts[rank], MPI_INT,
                  root, MPI_COMM_WORLD, &request);
    wait_for(&request);

    fill(out, 6, rank);
    MPI_Reduce(out, in, 6, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    check(!is_root || in[5] == 6000 + 4 * 5, "MPI_Reduce");
    MPI_Reduce(is_root ? MPI_IN_PLACE : out, out, 7, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    fill(out, 6, rank);
    MPI_Ireduce(out, in, 2, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD, &request);
    wait_for(&request);
    check(!is_root || in[1] == 3001, "MPI_Ireduce");
}

/* Without a root: blocking. */
static void unrooted(void)
{
    const int counts[4] = { 1, 2, 3, 4 }, shifts[4] = { 0, 10, 20, 30 };
    int bytes_at[4] = { 0, 40, 80, 120 }, equal[4] = { 2, 2, 2, 2 };
    MPI_Datatype types[4] = { MPI_INT, MPI_CHAR, MPI_SHORT, MPI_INT }, ints[4];
    for (int i = 0; i < 4; i++)
        ints[i] = MPI_INT;
    fill(out, ROOM, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allgather(out, 3, MPI_INT, in, 3, MPI_INT, MPI_COMM_WORLD);
    expect(in + 9, 3, 3, "MPI_Allgather");
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 3, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgatherv(out, counts[rank], MPI_INT, in, counts, shifts, MPI_INT, MPI_COMM_WORLD);
    expect(in + 30, 4, 3, "MPI_Allgatherv");
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, shifts, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(out, 5, MPI_INT, in, 5, MPI_INT, MPI_COMM_WORLD);
    check(in[15] == 3000 + 5 * rank, "MPI_Alltoall");
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 5, MPI_INT, MPI_COMM_WORLD);

    /* To rank i go i + 1 integers: so rank + 1 come from each. */
    int mine[4] = { rank + 1, rank + 1, rank + 1, rank + 1 };
    MPI_Alltoallv(out, counts, shifts, MPI_INT, in, mine, shifts, MPI_INT, MPI_COMM_WORLD);
    check(in[30] == 3000 + shifts[rank], "MPI_Alltoallv");
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in, equal, shifts, MPI_INT,
                  MPI_COMM_WORLD);
    MPI_Datatype own[4] = { types[rank], types[rank], types[rank], types[rank] };
    MPI_Alltoallw(out, counts, bytes_at, types, in, mine, bytes_at, own, MPI_COMM_WORLD);
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, in, equal, bytes_at, ints, MPI_COMM_WORLD);

    fill(out, ROOM, rank);
    MPI_Allreduce(out, in, 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(in[9] == 6000 + 36, "MPI_Allreduce");
    MPI_Allreduce(MPI_IN_PLACE, in, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(in[0] == 6000 + 4 * (rank * (rank + 1) / 2), "MPI_Reduce_scatter");
    MPI_Reduce_scatter_block(out, in, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(in[0] == 6000 + 4 * 2 * rank, "MPI_Reduce_scatter_block");
    MPI_Scan(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(in[0] == 1000 * (rank * (rank + 1) / 2), "MPI_Scan");
    MPI_Exscan(out, in, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(rank == 0 || in[0] == 1000 * (rank * (rank - 1) / 2), "MPI_Exscan");
}

static void nonblocking(void)
{
    const int counts[4] = { 1, 2, 3, 4 }, shifts[4] = { 0, 10, 20, 30 };
    int bytes_at[4] = { 0, 40, 80, 120 };
    int mine[4] = { rank + 1, rank + 1, rank + 1, rank + 1 }, got[12][ROOM];
    MPI_Datatype ints[4] = { MPI_INT, MPI_INT, MPI_INT, MPI_INT };
    MPI_Request requests[12], *next = requests;
    fill(out, ROOM, rank);
    MPI_Ibarrier(MPI_COMM_WORLD, next++);
    MPI_Iallgather(out, 3, MPI_INT, got[1], 3, MPI_INT, MPI_COMM_WORLD, next++);
    MPI_Iallgatherv(out, counts[rank], MPI_INT, got[2], counts, shifts, MPI_INT, MPI_COMM_WORLD,
                    next++);
    MPI_Ialltoall(out, 5, MPI_INT, got[3], 5, MPI_INT, MPI_COMM_WORLD, next++);
    MPI_Ialltoallv(out, counts, shifts, MPI_INT, got[4], mine, shifts, MPI_INT, MPI_COMM_WORLD,
                   next++);
    MPI_Ialltoallw(out, counts, bytes_at, ints, got[5], mine, bytes_at, ints, MPI_COMM_WORLD,
                   next++);
    MPI_Iallreduce(out, got[6], 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD, next++);
    MPI_Ireduce_scatter(out, got[7], counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, next++);
    MPI_Ireduce_scatter_block(out, got[8], 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD, next++);
    MPI_Iscan(out, got[9], 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD, next++);
    MPI_Iexscan(out, got[10], 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, next++);
    fill(got[11], 2, rank == 3 ? 7 : 0);
    MPI_Ibcast(got[11], 2, MPI_INT, 3, MPI_COMM_WORLD, next++);
    MPI_Waitall(12, requests, MPI_STATUSES_IGNORE);
    expect(got[1] + 9, 3, 3, "MPI_Iallgather");
    expect(got[2] + 30, 4, 3, "MPI_Iallgatherv");
    check(got[3][15] == 3000 + 5 * rank, "MPI_Ialltoall");
    check(got[4][30] == 3000 + shifts[rank], "MPI_Ialltoallv");
    check(got[5][30] == 3000 + shifts[rank], "MPI_Ialltoallw");
    check(got[6][9] == 6000 + 36, "MPI_Iallreduce");
    check(got[9][0] == 1000 * (rank * (rank + 1) / 2), "MPI_Iscan");
    expect(got[11], 2, 7, "MPI_Ibcast");
}

/* Where there is nobody else, nothing leaves the rank. */
static void alone(void)
{
    fill(out, 4, rank);
    MPI_Bcast(out, 4, MPI_INT, 0, MPI_COMM_SELF);
    MPI_Allreduce(out, in, 4, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    expect(in, 4, rank, "alone");
    MPI_Gather(out, 4, MPI_INT, in, 4, MPI_INT, 0, MPI_COMM_SELF);
    MPI_Alltoall(out, 4, MPI_INT, in, 4, MPI_INT, MPI_COMM_SELF);
    MPI_Barrier(MPI_COMM_SELF);
}

/* In the pairs 0 3 and 1 2, of which the higher rank is the first. */
static void pairs(void)
{
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 || rank == 3, -rank, &pair);
    fill(out, 8, rank);
    MPI_Bcast(out, 8, MPI_INT, 0, pair);
    expect(out, 8, rank == 0 || rank == 3 ? 3 : 2, "MPI_Bcast in a pair");
    fill(out, 8, rank);
    MPI_Allreduce(out, in, 8, MPI_INT, MPI_SUM, pair);
    check(in[0] == 3000, "MPI_Allreduce in a pair");
    MPI_Scatter(out, 3, MPI_INT, in, 3, MPI_INT, 1, pair);
    MPI_Comm_free(&pair);
}

/* The forms with MPI_Count. */
static void large(void)
{
#if MPI_VERSION >= 4
    const MPI_Count counts[4] = { 1, 2, 3, 4 };
    const MPI_Count mine[4] = { rank + 1, rank + 1, rank + 1, rank + 1 };
    const MPI_Aint shifts[4] = { 0, 10, 20, 30 };
    MPI_Request request;
    fill(out, ROOM, rank);
    MPI_Bcast_c(out, 5, MPI_INT, 1, MPI_COMM_WORLD);
    fill(out, ROOM, rank);
    MPI_Allgatherv_c(out, counts[rank], MPI_INT, in, counts, shifts, MPI_INT, MPI_COMM_WORLD);
    expect(in + 30, 4, 3, "MPI_Allgatherv_c");
    MPI_Alltoallv_c(out, counts, shifts, MPI_INT, in, mine, shifts, MPI_INT, MPI_COMM_WORLD);
    check(in[30] == 3000 + shifts[rank], "MPI_Alltoallv_c");
    MPI_Scatterv_c(out, counts, shifts, MPI_INT, in, counts[rank], MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Reduce_scatter_c(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Iallreduce_c(out, in, 6, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    wait_for(&request);
    check(in[5] == 6000 + 20, "MPI_Iallreduce_c");
#endif
}

int main(int argc, char **argv)
{
    static const struct part parts[] = {
        { "rooted", rooted }, { "unrooted", unrooted }, { "nonblocking", nonblocking },
        { "alone", alone },   { "pairs", pairs },       { "large", large },
        { NULL, NULL },
    };
    return run_parts(argc, argv, parts);
}
