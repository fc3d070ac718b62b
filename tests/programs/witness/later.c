/* What MPI 4 has added, and MPI-IO: each argument names a part. Without it in the MPI a part says so. */
#include "known.h"

static int data[ROOM], got[ROOM];

/* An exchange that is a request, with a wildcard and without, and in place. */
static void exchange(void)
{
#if MPI_VERSION >= 4
    MPI_Request request;
    MPI_Status status;
    int next = (rank + 1) % size, before = (rank + size - 1) % size, value = rank;
    for (int i = 0; i < 2; i++) {
        fill(data, 4, rank);
        MPI_Isendrecv(data, 4, MPI_INT, next, 1, got, ROOM, MPI_INT, i ? MPI_ANY_SOURCE : before, 1,
                      MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
        expect(got, 4, before, "MPI_Isendrecv");
    }
    MPI_Isendrecv_replace(&value, 1, MPI_INT, next, 1, before, 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    check(value == before, "MPI_Isendrecv_replace");
#endif
}

/* Three times two partitions of 4 elements. */
static void partitioned(void)
{
#if MPI_VERSION >= 4
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Psend_init(data, 2, 4, MPI_INT, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(got, 2, 4, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    for (int i = 0; i < 3; i++) {
        fill(data, 8, rank);
        MPI_Startall(2, requests);
        MPI_Pready(0, requests[0]);
        MPI_Pready_range(1, 1, requests[0]);
        MPI_Waitall(2, requests, statuses);
        expect(got, 8, before, "MPI_Psend_init");
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
#endif
}

/* Twice a sum of 8 elements and a barrier. */
static void persistent(void)
{
#if MPI_VERSION >= 4
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Allreduce_init(data, got, 8, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 8; k++)
            data[k] = rank + i;
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        check(got[7] == size * (size - 1) / 2 + i * size, "MPI_Allreduce_init");
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
#endif
}

/* Twice 3 elements to both neighbours in a ring. */
static void neighbours(void)
{
#if MPI_VERSION >= 4
    MPI_Request request;
    MPI_Status status;
    MPI_Comm ring;
    int periodic = 1, next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    MPI_Neighbor_alltoall_init(data, 3, MPI_INT, got, 3, MPI_INT, ring, MPI_INFO_NULL, &request);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 6; k++)
            data[k] = 10 * i + rank;
        MPI_Start(&request);
        MPI_Wait(&request, &status);
        check(got[0] == 10 * i + before && got[5] == 10 * i + next, "MPI_Neighbor_alltoall_init");
    }
    MPI_Request_free(&request);
    MPI_Comm_free(&ring);
#endif
}

static void files(void)
{
    MPI_File file;
    MPI_Request request;
    MPI_Status status;
    MPI_Offset place = (MPI_Offset)sizeof *data * 4 * rank;
    MPI_File_open(MPI_COMM_WORLD, "later.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                  &file);
    fill(data, 4, rank);
    MPI_File_write_at_all(file, place, data, 4, MPI_INT, &status);
    MPI_File_sync(file);
    MPI_File_iread_at(file, place, got, 4, MPI_INT, &request);
    MPI_Wait(&request, &status);
    expect(got, 4, rank, "MPI_File_iread_at");
    MPI_File_seek(file, place, MPI_SEEK_SET);
    MPI_File_read_all_begin(file, got, 4, MPI_INT);
    MPI_File_read_all_end(file, got, &status);
    expect(got, 4, rank, "MPI_File_read_all_begin");
    MPI_File_close(&file);
}

int main(int argc, char **argv)
{
    static const struct part parts[] = {
        { "exchange", exchange },     { "partitioned", partitioned },
        { "persistent", persistent }, { "neighbours", neighbours },
        { "files", files },           { NULL, NULL },
    };
    return run_parts(argc, argv, parts);
}
