/* What the programs with known counts share: each does the parts that its arguments name, in that
 * order, and checks the data that it gets. The tests count the calls by hand. */
#ifndef KNOWN_H
#define KNOWN_H

#define _GNU_SOURCE 1

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Elements of the buffers: what most receives post. */
enum { ROOM = 64 };

static int rank, size;

static inline void check(bool right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static inline void fill(int *buffer, int count, int seed)
{
    for (int i = 0; i < count; i++)
        buffer[i] = 1000 * seed + i;
}

static inline void expect(const int *buffer, int count, int seed, const char *what)
{
    for (int i = 0; i < count; i++)
        check(buffer[i] == 1000 * seed + i, what);
}

/* Between calls that are repeated until they succeed: without, they would be too many to be timed
 * one by one. */
static inline void pause_shortly(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
}

/* For the test: how often this rank had to call something. */
static inline void tell(const char *call, long count)
{
    printf("%d %s %ld\n", rank, call, count);
    fflush(stdout);
}

struct part {
    const char *name;
    void (*run)(void);
};

/* main: `parts` ends with an empty one. */
static inline int run_parts(int argc, char **argv, const struct part *parts)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i++) {
        const struct part *part = parts;
        while (part->name && strcmp(part->name, argv[i]) != 0)
            part++;
        check(part->name, "no such part");
        part->run();
        PMPI_Barrier(MPI_COMM_WORLD); /* or a wildcard would take a message of the next part */
    }
    MPI_Finalize();
    return 0;
}

#endif
