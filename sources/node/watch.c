#include "watch.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "disturbance.h"

/* What rank 0 learns of a host from the first rank that is on it. */
struct host_share {
    double seconds, cpus;
    double foreign, steal, throttled; /* shares of the CPUs' time */
    double waited; /* for a CPU, by the threads of the rank that waited most: share of the time */
    double throttled_periods;
    double thermal_events; /* -1: not known */
};

enum { HOST_SHARE_DOUBLES = sizeof(struct host_share) / sizeof(double) };

static MPI_Comm host;     /* the ranks of this host */
static struct set cpus;   /* of all of them */
static struct disturbance before;

void watch_start(void)
{
    MPI_Comm_split(MPI_COMM_WORLD, bench.host_of[bench.rank], bench.rank, &host);
    cpus = (struct set){ { 0 } };
    /* Threads may be bound more narrowly than the process. */
#pragma omp parallel
    {
#pragma omp critical
        disturbance_add_cpus(&cpus);
    }
    MPI_Allreduce(MPI_IN_PLACE, cpus.words, SET_MEMBERS / SET_WORD, MPI_UNSIGNED_LONG, MPI_BOR,
                  host);
    MPI_Barrier(MPI_COMM_WORLD);
    before = disturbance_read(&cpus);
}

static struct host_share share_of_host(void)
{
    struct disturbance passed = disturbance_since(&before, &cpus);
    double own, time = passed.wall * passed.cpus;
    MPI_Allreduce(&passed.own, &own, 1, MPI_DOUBLE, MPI_SUM, host);
    struct host_share share = {
        .seconds = passed.wall,
        .cpus = passed.cpus,
        .foreign = disturbance_foreign_share(&passed, own),
        .steal = passed.steal / time,
        .throttled = passed.throttled / time,
        .waited = passed.waited / passed.wall,
        .throttled_periods = (double)passed.throttled_periods,
        .thermal_events = passed.thermal_known ? (double)passed.thermal_events : -1,
    };
    return share;
}

/* Of the ranks of a host, and of their cgroups, the one that waited longest counts. */
static void take_longest_waits(struct host_share *share)
{
    double most[] = { share->throttled, share->throttled_periods, share->waited };
    MPI_Allreduce(MPI_IN_PLACE, most, 3, MPI_DOUBLE, MPI_MAX, host);
    share->throttled = most[0];
    share->throttled_periods = most[1];
    share->waited = fmin(1, most[2]);
}

static void write_shares(const struct host_share *share)
{
    json_number(bench.json, "foreign_busy_share", share->foreign);
    json_number(bench.json, "steal_share", share->steal);
    json_number(bench.json, "throttled_share", share->throttled);
    json_number(bench.json, "waited_share", share->waited);
    json_integer(bench.json, "throttled_periods", (long long)share->throttled_periods);
    if (share->thermal_events >= 0)
        json_integer(bench.json, "thermal_events", (long long)share->thermal_events);
}

static void report(const struct host_share *shares)
{
    printf("\n%-20s %6s %16s %8s %10s %14s %15s\n", "host", "CPUs", "busy for others", "stolen",
           "throttled", "rank waited", "slowed by heat");
    struct host_share worst = shares[0];
    for (int i = 0; i < bench.host_count; i++) {
        const struct host_share *share = &shares[i];
        printf("%-20s %6.0f %15.1f%% %7.1f%% %9.1f%% %13.1f%%", bench.hosts[i], share->cpus,
               100 * share->foreign, 100 * share->steal, 100 * share->throttled,
               100 * share->waited);
        if (share->thermal_events >= 0)
            printf(" %9.0f times\n", share->thermal_events);
        else
            printf(" %15s\n", "not told");
        worst.foreign = fmax(worst.foreign, share->foreign);
        worst.steal = fmax(worst.steal, share->steal);
        worst.throttled = fmax(worst.throttled, share->throttled);
        worst.throttled_periods = fmax(worst.throttled_periods, share->throttled_periods);
        worst.waited = fmax(worst.waited, share->waited);
        worst.thermal_events = fmax(worst.thermal_events, share->thermal_events);
    }
    fflush(stdout);

    json_object(bench.json, "disturbance");
    write_shares(&worst);
    json_array(bench.json, "hosts");
    for (int i = 0; i < bench.host_count; i++) {
        json_object(bench.json, NULL);
        json_string(bench.json, "host", bench.hosts[i]);
        json_number(bench.json, "seconds", shares[i].seconds);
        json_integer(bench.json, "cpus", (long long)shares[i].cpus);
        write_shares(&shares[i]);
        json_end(bench.json);
    }
    json_end(bench.json);
    json_end(bench.json);
}

void watch_report(void)
{
    struct host_share own = share_of_host(), *all = NULL;
    take_longest_waits(&own);
    MPI_Comm_free(&host);

    if (bench.rank == 0 && !(all = malloc((size_t)bench.ranks * sizeof *all)))
        bench_abort(EXIT_BROKEN, "no memory for the disturbances of %d ranks", bench.ranks);
    MPI_Gather(&own, HOST_SHARE_DOUBLES, MPI_DOUBLE, all, HOST_SHARE_DOUBLES, MPI_DOUBLE, 0,
               MPI_COMM_WORLD);
    if (bench.rank != 0)
        return;
    /* The first rank of each host speaks for it: host i's comes before host i + 1's. */
    for (int rank = 0, found = 0; rank < bench.ranks; rank++)
        if (bench.host_of[rank] == found)
            all[found++] = all[rank];
    report(all);
    free(all);
}
