/* A fault: MPI-IO does not do what it ought to.
 *
 * Preload it into `files`:
 *     mpicc -shared -fPIC wrong_file.c -o wrong_file.so
 *     WRONG_FILE=place LD_PRELOAD=$PWD/wrong_file.so files
 * WRONG_FILE: "place" writes each rank's blocks a byte too far, "stale"
 * always writes what was written first where blocks take turns, and "refused" fails to write
 * collectively. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int is(const char *fault)
{
    const char *chosen = getenv("WRONG_FILE");
    return chosen && strcmp(chosen, fault) == 0;
}

int MPI_File_write_at(MPI_File file, MPI_Offset place, const void *buffer, int count,
                      MPI_Datatype type, MPI_Status *status)
{
    return PMPI_File_write_at(file, place + is("place"), buffer, count, type, status);
}

int MPI_File_write_at_all(MPI_File file, MPI_Offset place, const void *buffer, int count,
                          MPI_Datatype type, MPI_Status *status)
{
    if (is("refused"))
        return MPI_ERR_IO;
    return PMPI_File_write_at_all(file, place, buffer, count, type, status);
}

int MPI_File_write_all(MPI_File file, const void *buffer, int count, MPI_Datatype type,
                       MPI_Status *status)
{
    static char *first;
    if (!first) {
        first = malloc((size_t)count);
        memcpy(first, buffer, (size_t)count);
    }
    return PMPI_File_write_all(file, is("stale") ? first : buffer, count, type, status);
}
