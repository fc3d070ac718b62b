/* A fault: one message is lost. It is received, so that nobody hangs, but its data never reaches
 * the receive buffer.
 *
 * Preload it into any MPI program:
 *     mpicc -shared -fPIC drop_message.c -o drop_message.so
 *     DROP_RANK=1 DROP_MESSAGE=7 LD_PRELOAD=$PWD/drop_message.so pt2pt
 * DROP_RANK (1): the rank of MPI_COMM_WORLD that loses it. DROP_MESSAGE (0): which of its calls of
 * MPI_Recv, MPI_Sendrecv and MPI_Irecv that bring data, counted from 0. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

/* Where to receive: `buffer`, or for the lost message a place where nobody looks. */
static void *place(void *buffer, int count, MPI_Datatype type, int source)
{
    static long received = 0;
    int rank, size;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Type_size(type, &size);
    if (rank != setting("DROP_RANK", 1) || source == MPI_PROC_NULL || count == 0 || size == 0 ||
        received++ != setting("DROP_MESSAGE", 0))
        return buffer;

    static char *nowhere; /* kept: the message may arrive much later */
    MPI_Aint lower, true_extent, start, extent;
    PMPI_Type_get_true_extent(type, &lower, &true_extent);
    PMPI_Type_get_extent(type, &start, &extent);
    nowhere = malloc((size_t)(extent * (count - 1) + true_extent));
    fprintf(stderr, "drop_message: dropped a message\n");
    return nowhere - lower;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    return PMPI_Recv(place(buffer, count, type, source), count, type, source, tag, comm, status);
}

int MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int to, int send_tag,
                 void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                 MPI_Status *status)
{
    return PMPI_Sendrecv(send, send_count, send_type, to, send_tag,
                         place(buffer, count, type, source), count, type, source, tag, comm,
                         status);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    return PMPI_Irecv(place(buffer, count, type, source), count, type, source, tag, comm, request);
}
