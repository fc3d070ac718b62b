/* A rank that dies in MPI_Finalize, in one of the calls by which the witness gathers its report: it finds
 * the names of PMPI in the program first (built with -rdynamic).
 *
 * dying RANK CALL COUNT: in the how-manieth call of that name. */
#define _GNU_SOURCE 1

#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *last;
static int calls;
static bool dies;

static void count(const char *name)
{
    if (dies && strcmp(name, last) == 0 && --calls == 0)
        raise(SIGKILL);
}

#define COUNTED(name, parameters, arguments)               \
    int PMPI_##name parameters                             \
    {                                                      \
        int(*real) parameters;                             \
        *(void **)&real = dlsym(RTLD_NEXT, "PMPI_" #name); \
        count(#name);                                      \
        return real arguments;                             \
    }
#define DATA void *data, int items, MPI_Datatype type
#define DATA_ const void *data, int items, MPI_Datatype type

COUNTED(Barrier, (MPI_Comm comm), (comm))
COUNTED(Bcast, (DATA, int root, MPI_Comm comm), (data, items, type, root, comm))
COUNTED(Reduce,
        (const void *own, void *all, int items, MPI_Datatype type, MPI_Op op, int root,
         MPI_Comm comm),
        (own, all, items, type, op, root, comm))
COUNTED(Gather, (DATA_, void *all, int each, MPI_Datatype of_all, int root, MPI_Comm comm),
        (data, items, type, all, each, of_all, root, comm))
COUNTED(Gatherv,
        (DATA_, void *all, const int *each, const int *first, MPI_Datatype of_all, int root,
         MPI_Comm comm),
        (data, items, type, all, each, first, of_all, root, comm))
COUNTED(Scatterv,
        (const void *all, const int *each, const int *first, MPI_Datatype of_all, DATA, int root,
         MPI_Comm comm),
        (all, each, first, of_all, data, items, type, root, comm))
COUNTED(Send, (DATA_, int to, int tag, MPI_Comm comm), (data, items, type, to, tag, comm))
COUNTED(Recv, (DATA, int from, int tag, MPI_Comm comm, MPI_Status *status),
        (data, items, type, from, tag, comm, status))
COUNTED(Mprobe, (int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
        (from, tag, comm, message, status))
COUNTED(Isend, (DATA_, int to, int tag, MPI_Comm comm, MPI_Request *request),
        (data, items, type, to, tag, comm, request))
COUNTED(Irecv, (DATA, int from, int tag, MPI_Comm comm, MPI_Request *request),
        (data, items, type, from, tag, comm, request))
COUNTED(Iprobe, (int from, int tag, MPI_Comm comm, int *found, MPI_Status *status),
        (from, tag, comm, found, status))
COUNTED(Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request))

/* Something to say of who waited for whom, by the others. */
static void exchange(int rank, int ranks)
{
    int own = rank, other;
    for (int i = 0; i < 10; i++) {
        MPI_Sendrecv(&own, 1, MPI_INT, (rank + 1) % ranks, 0, &other, 1, MPI_INT,
                     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int rank, ranks;
    if (argc != 4)
        return 1;
    last = argv[2];
    calls = atoi(argv[3]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    exchange(rank, ranks);
    dies = rank == atoi(argv[1]);
    MPI_Finalize();
    return 0;
}
