#define _GNU_SOURCE 1
#include "clocks.h"

#include <mpi.h>
#include <stdlib.h>

#include "ticks.h"
#include "witness.h"

/* A few rounds do where nothing but the clocks of the day is to be compared. */
enum { ROUNDS = 32, FEW_ROUNDS = 4, START_TAG = 301, END_TAG = 302 };

/* All in ns. On the ranks of rank 0's own host, nothing is ahead and nothing is wrong. */
struct measurement {
    int64_t at;     /* this host's clock */
    int64_t ahead;  /* of the clock of rank 0's host */
    int64_t error;  /* bound of that */
    int64_t origin; /* time zero of all ranks, on the clock of rank 0's host */
    int64_t day;    /* this host's clock of the day, ahead of that of rank 0's host */
};

static struct measurement start, last;
static double drift; /* of this host's clock against the other: ns in a ns */

/* What rank 0 answers. */
struct answer {
    int64_t now, origin, day;
};

static int64_t day_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Rank 0: tells one host after the other. A host that has to wait for its turn has one long round
 * trip, which it does not use. In this order, and not whichever asks first: MPICH 4.3.2 over UCX's
 * TCP loses messages from one of several ranks to MPI_ANY_SOURCE.
 * `asks` says of each rank whether it does. */
static void tell_time(const char *asks, int tag, int rounds, int64_t origin)
{
    for (int rank = 0; rank < witness.ranks; rank++) {
        for (int round = 0; asks[rank] && round < rounds; round++) {
            PMPI_Recv(NULL, 0, MPI_BYTE, rank, tag, witness.comm, MPI_STATUS_IGNORE);
            struct answer answer = { monotonic_ns(), origin, day_ns() };
            PMPI_Send(&answer, sizeof answer, MPI_BYTE, rank, tag, witness.comm);
        }
    }
}

static struct measurement ask_time(int tag, int rounds)
{
    struct measurement best = { .error = INT64_MAX };
    for (int round = 0; round < rounds; round++) {
        struct answer answer = { 0 };
        int64_t asked = monotonic_ns();
        PMPI_Send(NULL, 0, MPI_BYTE, 0, tag, witness.comm);
        PMPI_Recv(&answer, sizeof answer, MPI_BYTE, 0, tag, witness.comm, MPI_STATUS_IGNORE);
        int64_t day = day_ns(), half = (monotonic_ns() - asked + 1) / 2;
        if (half < best.error)
            best = (struct measurement){ .at = asked + half,
                                         .ahead = asked + half - answer.now,
                                         .error = half,
                                         .origin = answer.origin,
                                         .day = day - half - answer.day };
    }
    return best;
}

static struct measurement measure(int tag, int rounds)
{
    struct measurement found = { .at = monotonic_ns() };
    found.origin = found.at; /* rank 0's; the others are told */
    char asks = witness.host_rank == 0 && witness.rank != 0, *all = NULL;
    if (witness.rank == 0)
        all = malloc((size_t)witness.ranks);
    PMPI_Gather(&asks, 1, MPI_CHAR, all, 1, MPI_CHAR, 0, witness.comm);
    if (all)
        tell_time(all, tag, rounds, found.origin);
    else if (asks)
        found = ask_time(tag, rounds);
    free(all);
    PMPI_Bcast(&found, sizeof found, MPI_BYTE, 0, witness.host_comm);
    return found;
}

void clocks_measure_start(void)
{
    start = last = measure(START_TAG, ROUNDS);
}

void clocks_measure_end(void)
{
    last = measure(END_TAG, ROUNDS);
    int64_t change = last.ahead - start.ahead, errors = last.error + start.error;
    if (change < -errors || change > errors)
        drift = (double)change / (double)(last.at - start.at);
    else if (last.error < start.error)
        start.ahead = last.ahead;
}

void clocks_measure_once(void)
{
    start = last = measure(END_TAG, FEW_ROUNDS);
}

double clocks_day_ahead(void)
{
    return 1e-9 * (double)last.day;
}

int64_t clocks_global(int64_t moment)
{
    int64_t local = ticks_to_ns(moment);
    int64_t ahead = start.ahead + (int64_t)(drift * (double)(local - start.at));
    return local - ahead - start.origin;
}

void clocks_write_host(struct json *json)
{
    int64_t error = start.error > last.error ? start.error : last.error;
    json_object(json, "clock");
    json_number(json, "offset", 1e-9 * (double)last.ahead);
    json_number(json, "error", 1e-9 * (double)error);
    json_number(json, "day", clocks_day_ahead());
    json_end(json);
}
