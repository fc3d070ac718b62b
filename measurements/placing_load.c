/* A program whose messages are those of a file, to measure what other seats of its ranks gain.
 *
 *     placing_load FILE STEPS MICROSECONDS sendrecv|at-once
 *
 * Each line of FILE, "a b bytes", is two ranks that send so much to each other in each step: one
 * after the other in the order of the lines, or all of a rank at once. Between steps each rank
 * computes for so long. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 4096, LARGEST = 1 << 20 };

static struct {
    int other, bytes;
} partners[MOST];
static int count;
static char *in, *out;

static void compute(long microseconds)
{
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begun.tv_sec) * 1000000 + (now.tv_nsec - begun.tv_nsec) / 1000 <
           microseconds);
}

static void read_partners(const char *path, int rank)
{
    FILE *file = fopen(path, "r");
    int a, b, bytes;
    if (!file)
        MPI_Abort(MPI_COMM_WORLD, 2);
    while (fscanf(file, "%d %d %d", &a, &b, &bytes) == 3)
        if ((a == rank || b == rank) && count < MOST && bytes <= LARGEST)
            partners[count].other = a == rank ? b : a, partners[count++].bytes = bytes;
    fclose(file);
}

static void in_turn(void)
{
    for (int i = 0; i < count; i++)
        MPI_Sendrecv(out, partners[i].bytes, MPI_BYTE, partners[i].other, 0, in, partners[i].bytes,
                     MPI_BYTE, partners[i].other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void at_once(void)
{
    static MPI_Request requests[2 * MOST];
    char *place = in;
    for (int i = 0; i < count; i++) {
        MPI_Irecv(place, partners[i].bytes, MPI_BYTE, partners[i].other, 0, MPI_COMM_WORLD,
                  &requests[2 * i]);
        MPI_Isend(out, partners[i].bytes, MPI_BYTE, partners[i].other, 0, MPI_COMM_WORLD,
                  &requests[2 * i + 1]);
        place += partners[i].bytes;
    }
    MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    int rank;
    size_t whole = LARGEST;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 5)
        MPI_Abort(MPI_COMM_WORLD, 2);
    read_partners(argv[1], rank);
    for (int i = 0; i < count; i++)
        whole += (size_t)partners[i].bytes;
    in = malloc(whole);
    out = calloc(1, LARGEST);
    if (!in || !out)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (long step = 0, steps = atol(argv[2]); step < steps; step++) {
        compute(atol(argv[3]));
        if (strcmp(argv[4], "at-once") == 0)
            at_once();
        else
            in_turn();
    }
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
