/* A rank that dies in MPI_Finalize, in one of the calls by which the witness gathers its report.
 *
 * dying RANK CALL: the how-manieth of them. */
#define _GNU_SOURCE 1

#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

static int rank, dies, calls;
static bool ends;

#define DIES_IN(name, parameters, arguments)               \
    int PMPI_##name parameters                             \
    {                                                      \
        int(*real) parameters;                             \
        *(void **)&real = dlsym(RTLD_NEXT, "PMPI_" #name); \
        if (ends && rank == dies && --calls == 0)          \
            raise(SIGKILL);                                \
        return real arguments;                             \
    }
DIES_IN(Barrier, (MPI_Comm comm), (comm))
DIES_IN(Bcast, (void *data, int count, MPI_Datatype type, int root, MPI_Comm comm),
        (data, count, type, root, comm))
DIES_IN(Allreduce,
        (const void *own, void *all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (own, all, count, type, op, comm))
DIES_IN(Reduce,
        (const void *own, void *all, int count, MPI_Datatype type, MPI_Op op, int root,
         MPI_Comm comm),
        (own, all, count, type, op, root, comm))
DIES_IN(Gather,
        (const void *own, int count, MPI_Datatype type, void *all, int counts, MPI_Datatype types,
         int root, MPI_Comm comm),
        (own, count, type, all, counts, types, root, comm))
DIES_IN(Send, (const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
        (data, count, type, to, tag, comm))
DIES_IN(Recv,
        (void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
         MPI_Status *status),
        (data, count, type, from, tag, comm, status))

int main(int argc, char **argv)
{
    if (argc != 3)
        return 1;
    dies = atoi(argv[1]);
    calls = atoi(argv[2]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    ends = true;
    MPI_Finalize();
    return 0;
}
