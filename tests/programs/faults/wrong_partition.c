/* A fault: partitions are said to have arrived that have not.
 *
 * Preload it into `partitioned`:
 *     mpicc -shared -fPIC wrong_partition.c -o wrong_partition.so
 *     WRONG_PARTITION=early LD_PRELOAD=$PWD/wrong_partition.so partitioned
 * WRONG_PARTITION: "early" says so of each partition at once, "never" of none; "byte" changes one in
 * the middle of what has arrived. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int is(const char *fault)
{
    const char *chosen = getenv("WRONG_PARTITION");
    return chosen && strcmp(chosen, fault) == 0;
}

/* Open MPI 5 has partitioned messages, and says that it is MPI 3. */
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
#define HAS_PARTITIONED
static char *received;
static MPI_Count size;

int MPI_Precv_init(void *buffer, int partitions, MPI_Count count, MPI_Datatype type, int source,
                   int tag, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    received = buffer;
    size = partitions * count; /* of bytes */
    return PMPI_Precv_init(buffer, partitions, count, type, source, tag, comm, info, request);
}

int MPI_Parrived(MPI_Request request, int partition, int *flag)
{
    int code = PMPI_Parrived(request, partition, flag);
    if (is("early") || is("never"))
        *flag = is("early");
    return code;
}
#endif

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    int code = PMPI_Waitall(count, requests, statuses);
#ifdef HAS_PARTITIONED
    if (is("byte") && received)
        received[size / 2 + 9]++;
#endif
    return code;
}
