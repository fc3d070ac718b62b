/* Looks MPI functions up by their names, as an interpreter does: `some`, or `all`, also
 * MPI_Init; for `none` that is PMPI_Init. With PLUGIN defined it is a library that says what its own lookups found. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef PLUGIN

int answer(void)
{
    return 1;
}

/* What is next behind this library, and what is in its own scope: none but it has an answer. */
int found(void)
{
    int (*own)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "answer");
    return own && own() == 1 && !dlsym(RTLD_NEXT, "answer") && dlsym(RTLD_NEXT, "malloc");
}

#else

#include <mpi.h>

static void *library;

static void *look_up(const char *name)
{
    return dlsym(library, name);
}

int main(int argc, char **argv)
{
    Dl_info mpi;
    int rank, sum;
    if (argc != 3 || !dladdr((void *)PMPI_Init, &mpi))
        return 2;
    library = dlopen(mpi.dli_fname, RTLD_LAZY);
    void *plugin = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    int (*found)(void) = plugin ? (int (*)(void))dlsym(plugin, "found") : NULL;
    int (*init)(int *, char ***) = (int (*)(int *, char ***))look_up("MPI_Init");
    int (*reduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm) =
        (int (*)(const void *, void *, int, MPI_Datatype, MPI_Op,
                 MPI_Comm))look_up("MPI_Allreduce");
    int (*finalize)(void) = (int (*)(void))look_up("MPI_Finalize");
    if (strcmp(argv[1], "some") == 0) {
        init = MPI_Init;
        finalize = MPI_Finalize;
    } else if (strcmp(argv[1], "none") == 0) { /* where no tool looks */
        init = PMPI_Init;
        finalize = PMPI_Finalize;
    }
    init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 10; i++)
        reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d: sum %d, %s, PMPI %s\n", rank, sum, found && found() ? "found" : "lost",
           look_up("PMPI_Allreduce") == (void *)PMPI_Allreduce ? "same" : "another");
    return finalize();
}

#endif
