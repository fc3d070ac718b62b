/* An MPI that takes memory for each MPI_Reduce. FEWEST_FAULTS in the environment: after the first calls
 * the job aborts if another one has so many page faults, as of memory that had been given back.
 *
 * Preload it into any MPI program:
 *     mpicc -shared -fPIC takes_memory.c -o takes_memory.so
 *     LD_PRELOAD=$PWD/takes_memory.so collectives --op reduce */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { BLOCKS = 3, BYTES = 512 << 10, FIRST_CALLS = 3 };

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

int MPI_Reduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm)
{
    static int calls;
    const char *fewest = getenv("FEWEST_FAULTS");
    long before = faults();
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BYTES);
        memset(blocks[i], 1, BYTES);
    }
    long made = faults() - before;
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    if (fewest && calls++ >= FIRST_CALLS && made >= atol(fewest)) {
        fprintf(stderr, "takes_memory: %ld page faults\n", made);
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    return PMPI_Reduce(send, receive, count, type, op, root, comm);
}
