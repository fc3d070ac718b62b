/* A fault: a bit of memory flips.
 *
 * Preload it into any MPI program:
 *     mpicc -shared -fPIC flip_memory.c -o flip_memory.so
 *     FLIP_RANK=1 LD_PRELOAD=$PWD/flip_memory.so stream
 * FLIP_RANK (1): the rank of MPI_COMM_WORLD whose memory is damaged: one bit in the largest piece
 * of private memory that it has mapped itself, at its tenth MPI_Barrier. FLIP_SIXTHS (1): how many
 * sixths of the way in. */
#define _GNU_SOURCE 1

#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <sys/mman.h>

static unsigned char *largest;
static size_t largest_bytes;

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real)
        real = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    void *start = real(at, bytes, protection, flags, file, offset);
    if (start != MAP_FAILED && (flags & MAP_ANONYMOUS) && (flags & MAP_PRIVATE) &&
        (protection & PROT_WRITE) && bytes > largest_bytes) {
        largest = start;
        largest_bytes = bytes;
    }
    return start;
}

int MPI_Barrier(MPI_Comm comm)
{
    static int barriers;
    const char *chosen = getenv("FLIP_RANK"), *sixths = getenv("FLIP_SIXTHS");
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* Bit 52 of a double: the last one of its exponent. */
    if (++barriers == 10 && rank == (chosen ? atoi(chosen) : 1) && largest)
        largest[largest_bytes / 6 * (size_t)(sixths ? atoi(sixths) : 1) / 8 * 8 + 6] ^= 0x10;
    return PMPI_Barrier(comm);
}
