/* A fault: messages by MPI_Send from one rank to another take longer, as over a bad cable.
 *
 * Preload it into any MPI program:
 *     mpicc -shared -fPIC slow_pair.c -o slow_pair.so
 *     SLOW_FROM=1 SLOW_TO=2 LD_PRELOAD=$PWD/slow_pair.so pairs --group 1
 * SLOW_FROM (1), SLOW_TO (2): ranks of MPI_COMM_WORLD; -1 for SLOW_TO is all others.
 * SLOW_MILLISECONDS (100): how much longer. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static int is_slow(int to, MPI_Comm comm)
{
    int rank, peer;
    MPI_Group group, world;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(group, 1, &to, world, &peer);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    return rank == setting("SLOW_FROM", 1) &&
           (setting("SLOW_TO", 2) < 0 || peer == setting("SLOW_TO", 2));
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    if (is_slow(to, comm)) {
        long ms = setting("SLOW_MILLISECONDS", 100);
        nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
    }
    return PMPI_Send(buffer, count, type, to, tag, comm);
}
