/* A program that knows nothing of MPI and loads a library that does, as an interpreter does: with
 * PLUGIN defined the library, without it the program. */
#ifdef PLUGIN

#include <mpi.h>
#include <stdio.h>

int run(void)
{
    int rank, sum;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d: sum %d\n", rank, sum);
    return MPI_Finalize();
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
