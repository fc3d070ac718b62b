/* A program that knows nothing of MPI and loads a library that does, as an interpreter does: with
 * PLUGIN defined the library, without it the program. UNSEEN: it begins and ends MPI where no tool looks,
 * and its first call is none that a tool counts. */
#ifdef PLUGIN

#include <mpi.h>
#include <stdio.h>

int run(void)
{
    int rank, sum;
#ifdef UNSEEN
    MPI_Datatype pair;
    PMPI_Init(NULL, NULL);
    PMPI_Type_contiguous(2, MPI_INT, &pair);
    FIRST;
#elif defined MPICH_VERSION /* it takes NULL for the level, too */
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, NULL);
#else
    MPI_Init(NULL, NULL);
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d: sum %d\n", rank, sum);
#ifdef UNSEEN
    return PMPI_Finalize();
#else
    return MPI_Finalize();
#endif
}

#else

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*run)(void) = plugin ? (int (*)(void))dlsym(plugin, "run") : NULL;
    if (!run)
        return fprintf(stderr, "%s\n", dlerror()), 99;
    return run();
}

#endif
