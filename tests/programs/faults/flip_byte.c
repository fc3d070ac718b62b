/* A fault: one byte of one received message is flipped, as a bad link or driver would.
 *
 * Preload it into any MPI program:
 *     mpicc -shared -fPIC flip_byte.c -o flip_byte.so
 *     FLIP_RANK=1 FLIP_MESSAGE=7 LD_PRELOAD=$PWD/flip_byte.so pt2pt
 * FLIP_RANK (1): the rank of MPI_COMM_WORLD that receives the damage. FLIP_MESSAGE (0): which of
 * the messages that it receives point to point, counted from 0 in the order of their receive
 * calls; only those that have the byte count. FLIP_OFFSET (0): the byte, from the first one of
 * the receive buffer's data on; for a strided type, inside its first block.
 * Covers MPI_Recv, MPI_Sendrecv, and MPI_Irecv with MPI_Wait, MPI_Waitall and MPI_Testall. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

struct message {
    MPI_Request request;
    void *buffer;
    MPI_Datatype type;
};

static struct message pending = { .request = MPI_REQUEST_NULL }; /* the one to hit */

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

/* Counts a receive; true for the one to hit. */
static int is_chosen(int count, MPI_Datatype type, int source)
{
    static long received = 0;
    int rank, size;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Type_size(type, &size);
    return rank == setting("FLIP_RANK", 1) && source != MPI_PROC_NULL &&
           (long)count * size > setting("FLIP_OFFSET", 0) &&
           received++ == setting("FLIP_MESSAGE", 0);
}

static void flip(void *buffer, MPI_Datatype type)
{
    MPI_Aint lower, extent;
    PMPI_Type_get_true_extent(type, &lower, &extent);
    ((unsigned char *)buffer)[lower + setting("FLIP_OFFSET", 0)] ^= 0xff;
    fprintf(stderr, "flip_byte: flipped a byte\n");
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    int chosen = is_chosen(count, type, source);
    int code = PMPI_Recv(buffer, count, type, source, tag, comm, status);
    if (chosen)
        flip(buffer, type);
    return code;
}

int MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int to, int send_tag,
                 void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                 MPI_Status *status)
{
    int chosen = is_chosen(count, type, source);
    int code = PMPI_Sendrecv(send, send_count, send_type, to, send_tag, buffer, count, type, source,
                             tag, comm, status);
    if (chosen)
        flip(buffer, type);
    return code;
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    int code = PMPI_Irecv(buffer, count, type, source, tag, comm, request);
    if (is_chosen(count, type, source))
        pending = (struct message){ *request, buffer, type };
    return code;
}

static int holds_pending(int count, const MPI_Request *requests)
{
    for (int i = 0; i < count; i++)
        if (requests[i] != MPI_REQUEST_NULL && requests[i] == pending.request)
            return 1;
    return 0;
}

static void flip_pending(void)
{
    flip(pending.buffer, pending.type);
    pending.request = MPI_REQUEST_NULL;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    int chosen = holds_pending(1, request);
    int code = PMPI_Wait(request, status);
    if (chosen)
        flip_pending();
    return code;
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    int chosen = holds_pending(count, requests);
    int code = PMPI_Waitall(count, requests, statuses);
    if (chosen)
        flip_pending();
    return code;
}

int MPI_Testall(int count, MPI_Request *requests, int *done, MPI_Status *statuses)
{
    int chosen = holds_pending(count, requests);
    int code = PMPI_Testall(count, requests, done, statuses);
    if (chosen && *done)
        flip_pending();
    return code;
}
