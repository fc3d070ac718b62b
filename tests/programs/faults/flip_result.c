/* A fault: collective operations deliver a result with one byte flipped.
 *
 * Preload it into any MPI program:
 *     mpicc -shared -fPIC flip_result.c -o flip_result.so
 *     FLIP_RANK=1 LD_PRELOAD=$PWD/flip_result.so collectives
 * FLIP_RANK (1): the rank of MPI_COMM_WORLD whose results are damaged: all those of more than one
 * element, in the last byte of what it received. */
#include <mpi.h>
#include <stdlib.h>

static void flip(void *buffer, int count, MPI_Datatype type, int blocks)
{
    const char *chosen = getenv("FLIP_RANK");
    int rank, size;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Type_size(type, &size);
    if (rank == (chosen ? atoi(chosen) : 1) && count > 1)
        ((unsigned char *)buffer)[(long)count * size * blocks - 1] ^= 0xff;
}

static int ranks(MPI_Comm comm)
{
    int number;
    PMPI_Comm_size(comm, &number);
    return number;
}

static int is_root(int root, MPI_Comm comm)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank == root;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int code = PMPI_Bcast(buffer, count, type, root, comm);
    if (!is_root(root, comm))
        flip(buffer, count, type, 1);
    return code;
}

int MPI_Reduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm)
{
    int code = PMPI_Reduce(from, to, count, type, op, root, comm);
    if (is_root(root, comm))
        flip(to, count, type, 1);
    return code;
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    int code = PMPI_Allreduce(from, to, count, type, op, comm);
    flip(to, count, type, 1);
    return code;
}

int MPI_Allgather(const void *from, int sent, MPI_Datatype send_type, void *to, int count,
                  MPI_Datatype type, MPI_Comm comm)
{
    int code = PMPI_Allgather(from, sent, send_type, to, count, type, comm);
    /* Host names are gathered too; only data is damaged. */
    if (type != MPI_CHAR)
        flip(to, count, type, ranks(comm));
    return code;
}

int MPI_Alltoall(const void *from, int sent, MPI_Datatype send_type, void *to, int count,
                 MPI_Datatype type, MPI_Comm comm)
{
    int code = PMPI_Alltoall(from, sent, send_type, to, count, type, comm);
    flip(to, count, type, ranks(comm));
    return code;
}

int MPI_Reduce_scatter_block(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm)
{
    int code = PMPI_Reduce_scatter_block(from, to, count, type, op, comm);
    flip(to, count, type, 1);
    return code;
}

int MPI_Scatter(const void *from, int sent, MPI_Datatype send_type, void *to, int count,
                MPI_Datatype type, int root, MPI_Comm comm)
{
    int code = PMPI_Scatter(from, sent, send_type, to, count, type, root, comm);
    flip(to, count, type, 1);
    return code;
}

int MPI_Gather(const void *from, int sent, MPI_Datatype send_type, void *to, int count,
               MPI_Datatype type, int root, MPI_Comm comm)
{
    int code = PMPI_Gather(from, sent, send_type, to, count, type, root, comm);
    if (is_root(root, comm))
        flip(to, count, type, ranks(comm));
    return code;
}

/* Complete when they return. */

int MPI_Iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return MPI_Allreduce(from, to, count, type, op, comm);
}

int MPI_Ialltoall(const void *from, int sent, MPI_Datatype send_type, void *to, int count,
                  MPI_Datatype type, MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return MPI_Alltoall(from, sent, send_type, to, count, type, comm);
}

int MPI_Exscan(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int code = PMPI_Exscan(from, to, count, type, op, comm);
    flip(to, count, type, 1);
    return code;
}

int MPI_Neighbor_alltoall(const void *from, int sent, MPI_Datatype send_type, void *to, int count,
                          MPI_Datatype type, MPI_Comm comm)
{
    int code = PMPI_Neighbor_alltoall(from, sent, send_type, to, count, type, comm);
    flip(to, count, type, 2);
    return code;
}
