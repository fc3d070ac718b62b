/* A fault: receives match other messages than they ought to.
 *
 * Preload it into `matching`:
 *     mpicc -shared -fPIC wrong_match.c -o wrong_match.so
 *     WRONG_MATCH=order LD_PRELOAD=$PWD/wrong_match.so matching
 * WRONG_MATCH: "order" exchanges each two messages that rank 1 sends to rank 0 one after the other;
 * "source" says of messages of rank 1 that they came from rank 2, and "later source" of all but the
 * first; "hang" has receives from MPI_ANY_SOURCE match nothing. "late" is no fault: what rank 0 sends
 * itself leaves when it waits for something, and behind what it waits for if it sent others a message
 * meanwhile, as where it lost its core. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 1, NOBODY = 999 }; /* of sources/mpi/matching.c; of no message */

/* Of "late": the message that has not left yet. */
static struct {
    const void *buffer;
    int count;
    MPI_Datatype type;
    MPI_Request *request;
    int others_sent;
} held;

static void let_go(void)
{
    if (held.request)
        PMPI_Isend(held.buffer, held.count, held.type, 0, TAG, MPI_COMM_WORLD, held.request);
    held.request = NULL;
}

static int is(const char *fault)
{
    const char *chosen = getenv("WRONG_MATCH");
    return chosen && strcmp(chosen, fault) == 0;
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    static long sent = 0;
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *bytes = buffer;
    if (is("order") && rank == 1 && tag == TAG)
        bytes += sent++ % 2 == 0 ? count : -count;
    if (is("late") && rank == 0 && to == 0 && tag == TAG && comm == MPI_COMM_WORLD) {
        held.buffer = buffer, held.count = count, held.type = type;
        held.request = request, held.others_sent = 0;
        return MPI_SUCCESS;
    }
    return PMPI_Isend(bytes, count, type, to, tag, comm, request);
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    held.others_sent = 1;
    return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    if (is("hang") && source == MPI_ANY_SOURCE)
        tag = NOBODY;
    return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    static long seen = 0;
    if (!held.others_sent)
        let_go();
    int code = PMPI_Wait(request, status);
    let_go();
    if (status != MPI_STATUS_IGNORE && status->MPI_SOURCE == 1 &&
        (is("source") || (is("later source") && seen++ > 0)))
        status->MPI_SOURCE = 2;
    return code;
}
