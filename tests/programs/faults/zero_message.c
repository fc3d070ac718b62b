/* A fault: a message arrives as zeros, as from a buffer that nobody has filled.
 *
 * Preload it into any MPI program:
 *     mpicc -shared -fPIC zero_message.c -o zero_message.so
 *     ZERO_RANK=1 ZERO_MESSAGE=7 LD_PRELOAD=$PWD/zero_message.so minife nx=20
 * ZERO_RANK (1): the rank of MPI_COMM_WORLD that sends it. ZERO_MESSAGE (0): which of its calls of
 * MPI_Isend and MPI_Send that carry data, counted from 0; -1: all of them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

/* What to send: `buffer`, or zeros of the same size. */
static const void *content(const void *buffer, int count, MPI_Datatype type, int to)
{
    static long sent = 0;
    long chosen = setting("ZERO_MESSAGE", 0);
    int rank, size;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Type_size(type, &size);
    if (rank != setting("ZERO_RANK", 1) || to == MPI_PROC_NULL || count == 0 || size == 0)
        return buffer;
    if (sent++ != chosen && chosen != -1)
        return buffer;

    MPI_Aint lower, true_extent, start, extent;
    PMPI_Type_get_true_extent(type, &lower, &true_extent);
    PMPI_Type_get_extent(type, &start, &extent);
    /* Kept: the message may leave much later. */
    char *zeros = calloc(1, (size_t)(extent * (count - 1) + true_extent));
    fprintf(stderr, "zero_message: sent zeros\n");
    return zeros - lower;
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    return PMPI_Isend(content(buffer, count, type, to), count, type, to, tag, comm, request);
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    return PMPI_Send(content(buffer, count, type, to), count, type, to, tag, comm);
}
