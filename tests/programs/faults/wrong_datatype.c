/* A fault: data in pieces does not arrive as it was sent.
 *
 * Preload it into `datatypes`:
 *     mpicc -shared -fPIC wrong_datatype.c -o wrong_datatype.so
 *     WRONG_DATATYPE=gap LD_PRELOAD=$PWD/wrong_datatype.so datatypes
 * WRONG_DATATYPE: "gap" writes between the first two elements that a datatype receives, "edge" before
 * the first one that MPI_Unpack puts, "short" leaves out the last one that it ought to put, and "once"
 * packs the first message alone. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int is(const char *fault)
{
    const char *chosen = getenv("WRONG_DATATYPE");
    return chosen && strcmp(chosen, fault) == 0;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    int code = PMPI_Recv(buffer, count, type, source, tag, comm, status);
    int size;
    MPI_Aint lower, extent;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &lower, &extent);
    if (is("gap") && extent > size)
        ((double *)buffer)[1] = 1; /* no data is here in any layout */
    return code;
}

int MPI_Pack(const void *buffer, int count, MPI_Datatype type, void *packed, int room,
             int *position, MPI_Comm comm)
{
    static int calls;
    if (is("once") && calls++) {
        PMPI_Pack_size(count, type, comm, position);
        return MPI_SUCCESS;
    }
    return PMPI_Pack(buffer, count, type, packed, room, position, comm);
}

int MPI_Unpack(const void *packed, int size, int *position, void *buffer, int count,
               MPI_Datatype type, MPI_Comm comm)
{
    double *array = buffer;
    MPI_Aint lower, extent;
    PMPI_Type_get_extent(type, &lower, &extent);
    size_t last = (size_t)extent / sizeof *array - 1;
    double before = array[last];
    int code = PMPI_Unpack(packed, size, position, buffer, count, type, comm);
    if (is("edge"))
        array[-1] = 1;
    if (is("short"))
        array[last] = before;
    return code;
}
