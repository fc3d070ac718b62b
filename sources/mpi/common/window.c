#include "window.h"

#include <mpi.h>
#include <stddef.h>

#include "bench.h"
#include "clock.h"
#include "stats.h"

enum { ROUNDS = 16, TRIALS = 9, ROOT = 0, TAG = 31 };

/* Seconds by which a moment is ahead at least, and at most: where ranks wait for a core for longer than
 * that, they are late. */
static const double LEAST_AHEAD = 2e-6, MOST_AHEAD = 1e-3;

static MPI_Comm host = MPI_COMM_NULL;
static double offset; /* of this host's clock from that of rank 0's */
static double ahead;  /* of the moments that rank 0 names */
static double error;

static int leader_of(int of_host)
{
    int rank = 0;
    while (bench.host_of[rank] != of_host)
        rank++;
    return rank;
}

/* Rank 0 tells its time, one host after the other. */
static void tell(int leader)
{
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Recv(NULL, 0, MPI_BYTE, leader, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double now = clock_seconds();
        MPI_Send(&now, 1, MPI_DOUBLE, leader, TAG, MPI_COMM_WORLD);
    }
}

static void ask(double *found, double *wrong)
{
    for (int round = 0; round < ROUNDS; round++) {
        double told, asked = clock_seconds();
        MPI_Send(NULL, 0, MPI_BYTE, ROOT, TAG, MPI_COMM_WORLD);
        MPI_Recv(&told, 1, MPI_DOUBLE, ROOT, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double half = (clock_seconds() - asked) / 2;
        if (round == 0 || half < *wrong) {
            *wrong = half;
            *found = asked + half - told;
        }
    }
}

static void compare_clocks(void)
{
    double own[2] = { 0 }, most; /* the offset, and by how much it may be wrong */
    for (int other = 1; other < bench.host_count; other++) {
        int leader = leader_of(other);
        if (bench.rank == ROOT)
            tell(leader);
        else if (bench.rank == leader)
            ask(&own[0], &own[1]);
    }
    MPI_Bcast(own, 2, MPI_DOUBLE, 0, host);
    offset = own[0];
    MPI_Allreduce(&own[1], &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    error = most > error ? most : error;
}

static double name_moment(double from_now)
{
    double moment = clock_seconds() + from_now; /* rank 0's */
    MPI_Bcast(&moment, 1, MPI_DOUBLE, ROOT, MPI_COMM_WORLD);
    return moment + offset;
}

void window_open(void)
{
    double later[TRIALS];
    if (host == MPI_COMM_NULL)
        MPI_Comm_split(MPI_COMM_WORLD, bench.host_of[bench.rank], bench.rank, &host);
    compare_clocks();
    for (int i = 0; i < TRIALS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double moment = name_moment(0), own = clock_seconds() - moment;
        MPI_Allreduce(&own, &later[i], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    ahead = LEAST_AHEAD + 2 * stats_of(later, TRIALS).median;
    ahead = ahead < LEAST_AHEAD ? LEAST_AHEAD : ahead > MOST_AHEAD ? MOST_AHEAD : ahead;
}

double window_wait(bool *is_late)
{
    double moment = name_moment(ahead), now = clock_seconds();
    *is_late = now > moment;
    while (now < moment)
        now = clock_seconds();
    return moment;
}

double window_error(void)
{
    return error;
}

void window_close(void)
{
    if (host != MPI_COMM_NULL)
        MPI_Comm_free(&host);
}
