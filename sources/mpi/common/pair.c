#include "pair.h"

#include <stdbool.h>
#include <time.h>

#include "bench.h"

enum { WAKE_TAG = 32767 }; /* the largest tag that every MPI has */

static void sleep_until_woken(void)
{
    const struct timespec nap = { .tv_nsec = 2000000 };
    int woken = 0;
    for (;;) {
        MPI_Iprobe(0, WAKE_TAG, MPI_COMM_WORLD, &woken, MPI_STATUS_IGNORE);
        if (woken)
            break;
        nanosleep(&nap, NULL);
    }
    MPI_Recv(NULL, 0, MPI_BYTE, 0, WAKE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

MPI_Comm pair_enter(void)
{
    MPI_Comm pair;
    bool between = bench.rank > 0 && bench.rank < bench.ranks - 1;
    MPI_Comm_split(MPI_COMM_WORLD, between ? MPI_UNDEFINED : 0, bench.rank, &pair);
    if (between)
        sleep_until_woken();
    return pair;
}

void pair_leave(MPI_Comm *pair)
{
    MPI_Comm_free(pair);
    for (int rank = 1; bench.rank == 0 && rank < bench.ranks - 1; rank++)
        MPI_Send(NULL, 0, MPI_BYTE, rank, WAKE_TAG, MPI_COMM_WORLD);
}
