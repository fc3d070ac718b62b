/* A fault: one rank is killed in the middle of a run, as by the out-of-memory killer, or stopped.
 *
 * Preload it into any MPI program:
 *     mpicc -shared -fPIC kill_rank.c -o kill_rank.so
 *     KILL_RANK=1 KILL_SEND=1000 LD_PRELOAD=$PWD/kill_rank.so pt2pt
 * KILL_RANK (1): the rank of MPI_COMM_WORLD. KILL_SEND (0): at which of its calls of MPI_Send,
 * MPI_Isend and MPI_Sendrecv, counted from 0. KILL_SIGNAL (9): by which signal; 19 stops it. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static void count(void)
{
    static long sent = 0;
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == setting("KILL_RANK", 1) && sent++ == setting("KILL_SEND", 0))
        raise((int)setting("KILL_SIGNAL", SIGKILL));
}

int MPI_Send(const void *buffer, int elements, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    count();
    return PMPI_Send(buffer, elements, type, to, tag, comm);
}

int MPI_Isend(const void *buffer, int elements, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    count();
    return PMPI_Isend(buffer, elements, type, to, tag, comm, request);
}

int MPI_Sendrecv(const void *send, int send_elements, MPI_Datatype send_type, int to, int send_tag,
                 void *buffer, int elements, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                 MPI_Status *status)
{
    count();
    return PMPI_Sendrecv(send, send_elements, send_type, to, send_tag, buffer, elements, type,
                         source, tag, comm, status);
}
