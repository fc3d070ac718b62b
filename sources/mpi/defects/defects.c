/* defects: runs the reproducer of one known defect of an MPI, in a bounded time.
 *
 *     mpirun -n 2 defects NAME SECONDS
 *
 * Rank 0 writes "defects: NAME begins on N ranks" once all ranks have exchanged messages, and then
 * "defects: NAME shows" or "defects: NAME does not show"; where the MPI is too old for its calls, only
 * "defects: NAME needs calls that this MPI lacks". If a reproducer takes longer than the
 * seconds, each rank writes "defects: hangs" and ends with exit code 3. A job that began and did not
 * get to its end shows the defect, however it ended. Exit code 2: wrong arguments. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "defects.h"

enum { WRONG_ARGUMENTS = 2, HANGS = 3, MOST_SECONDS = 3600 };

#ifdef ASSAY_HAS_PERSISTENT_COLLECTIVES
#define IF_PERSISTENT(reproducer) reproducer
#else
#define IF_PERSISTENT(reproducer) NULL
#endif
#ifdef ASSAY_HAS_PARTITIONED
#define IF_PARTITIONED(reproducer) reproducer
#else
#define IF_PARTITIONED(reproducer) NULL
#endif

static const struct {
    const char *name;
    bool (*shows)(int rank, int ranks); /* NULL where the MPI lacks its calls */
} reproducers[] = {
    { "accumulate-offset", accumulate_offset },
    { "accumulate-pairs", accumulate_pairs },
    { "any-source", any_source },
    { "create-window", create_window },
    { "graph-of-grid", graph_of_grid },
    { "group-of-grid", group_of_grid },
    { "incast", incast },
    { "neighbour-blocks", neighbour_blocks },
    { "neighbour-types", neighbour_types },
    { "partitioned-some", IF_PARTITIONED(partitioned_some) },
    { "persistent-gather", IF_PERSISTENT(persistent_gather) },
    { "persistent-scatter", IF_PERSISTENT(persistent_scatter) },
    { "reduce-large-type", reduce_large_type },
    { "sub-grid", sub_grid },
    { "testall-statuses", testall_statuses },
    { "unexpected-messages", unexpected_messages },
};

enum { COUNT = sizeof reproducers / sizeof reproducers[0] };

/* Ends this rank by itself: launchers sometimes overlook ranks that are to be killed. */
static void end_hung(int number)
{
    static const char words[] = "defects: hangs\n";
    (void)number;
    ssize_t written = write(STDOUT_FILENO, words, sizeof words - 1);
    (void)written;
    _exit(HANGS);
}

/* So that what is missing or misconfigured fails before the reproducer begins. */
static void exchange(int rank, int ranks)
{
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, sent = rank, got = -1;
    MPI_Sendrecv(&sent, 1, MPI_INT, right, 0, &got, 1, MPI_INT, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void say(const char *name, const char *what)
{
    printf("defects: %s %s\n", name, what);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int found = 0, rank, ranks;
    long seconds = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    while (argc == 3 && found < COUNT && strcmp(argv[1], reproducers[found].name) != 0)
        found++;
    if (seconds < 1 || seconds > MOST_SECONDS || found == COUNT) {
        fprintf(stderr, "usage: defects NAME SECONDS, with one of these names:\n");
        for (int i = 0; i < COUNT; i++)
            fprintf(stderr, "  %s\n", reproducers[i].name);
        return WRONG_ARGUMENTS;
    }
    const char *name = reproducers[found].name;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2) {
        fprintf(stderr, "defects: two ranks or more are needed\n");
        MPI_Abort(MPI_COMM_WORLD, WRONG_ARGUMENTS);
    }
    exchange(rank, ranks);
    if (!reproducers[found].shows) {
        if (rank == 0)
            say(name, "needs calls that this MPI lacks");
        MPI_Finalize();
        return 0;
    }
    if (rank == 0)
        printf("defects: %s begins on %d ranks\n", name, ranks);
    fflush(stdout);
    signal(SIGALRM, end_hung);
    alarm((unsigned)seconds);
    int mine = reproducers[found].shows(rank, ranks), any = 0;
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    if (rank == 0)
        say(name, any ? "shows" : "does not show");
    alarm((unsigned)seconds); /* the end has its own time */
    MPI_Finalize();
    return 0;
}
