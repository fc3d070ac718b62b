#include "pair.h"

#include <time.h>

#include "bench.h"
#include "patience.h"

enum { WAKE_TAG = 32767 }; /* the largest tag that every MPI has */

/* Of what rank 0 tells: no step follows. */
static const double ALL_STEPS = 0;

static double next_step(void)
{
    const struct timespec nap = { .tv_nsec = 2000000 };
    double seconds;
    int told = 0;
    for (;;) {
        MPI_Iprobe(0, WAKE_TAG, MPI_COMM_WORLD, &told, MPI_STATUS_IGNORE);
        if (told)
            break;
        nanosleep(&nap, NULL);
    }
    MPI_Recv(&seconds, 1, MPI_DOUBLE, 0, WAKE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return seconds;
}

static void sleep_until_woken(void)
{
    /* Rank 0 says first in what it hangs. */
    enum { LATER_SECONDS = 2 };
    double seconds;
    while ((seconds = next_step()) > ALL_STEPS)
        patience_start(seconds + LATER_SECONDS, "a step of the first and the last rank");
    patience_end();
}

static void tell_between(double seconds)
{
    for (int rank = 1; bench.rank == 0 && rank < bench.ranks - 1; rank++)
        MPI_Send(&seconds, 1, MPI_DOUBLE, rank, WAKE_TAG, MPI_COMM_WORLD);
}

bool pair_has_me(void)
{
    return bench.rank == 0 || bench.rank == bench.ranks - 1;
}

MPI_Comm pair_enter(void)
{
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, pair_has_me() ? 0 : MPI_UNDEFINED, bench.rank, &pair);
    if (!pair_has_me())
        sleep_until_woken();
    return pair;
}

/* By MPI's clock on rank 0: until then those between wait without a further word. */
static double covered;

void pair_leave(MPI_Comm *pair)
{
    MPI_Comm_free(pair);
    tell_between(ALL_STEPS);
    covered = 0;
}

void pair_step(double seconds)
{
    const double now = MPI_Wtime();
    if (now + seconds <= covered)
        return;
    /* A message to each rank takes time: not one for each of many short steps. */
    const double with_next = 1.25 * seconds;
    covered = now + with_next;
    tell_between(with_next);
}
