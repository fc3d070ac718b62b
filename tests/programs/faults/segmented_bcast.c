/* A bad choice for a window of sizes: MPI_Bcast of 64 to 255 KiB goes in pieces of 512 B.
 *
 * Preload it into any MPI program:
 *     mpicc -shared -fPIC segmented_bcast.c -o segmented_bcast.so
 *     LD_PRELOAD=$PWD/segmented_bcast.so collectives --guidelines */
#include <mpi.h>

enum { FROM = 64 << 10, TO = 256 << 10, PIECE = 512 };

int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int size;
    PMPI_Type_size(type, &size);
    long bytes = (long)count * size;
    if (bytes < FROM || bytes >= TO)
        return PMPI_Bcast(data, count, type, root, comm);
    int code = MPI_SUCCESS;
    for (long done = 0; done < bytes && code == MPI_SUCCESS; done += PIECE)
        code = PMPI_Bcast((char *)data + done, PIECE, MPI_BYTE, root, comm);
    return code;
}
