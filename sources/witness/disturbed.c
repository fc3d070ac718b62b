#include "disturbed.h"

#include <math.h>
#include <mpi.h>

#include "distance.h"
#include "disturbance.h"
#include "witness.h"

static struct set cpus; /* of all ranks of the host */
static struct disturbance before;
static double additions; /* a cycle, at the start; 0 if unknown */
static double distance;  /* of cores, in seconds, at the start; 0 if unknown */

void disturbed_start(void)
{
    cpus = (struct set){ { 0 } };
    disturbance_add_cpus(&cpus);
    PMPI_Allreduce(MPI_IN_PLACE, cpus.words, SET_MEMBERS / SET_WORD, MPI_UNSIGNED_LONG, MPI_BOR,
                   witness.host_comm);
    additions = disturbance_additions_per_cycle();
    before = disturbance_read(&cpus);
    int ranks, may_be_moved = additions > 0, all_may_be;
    PMPI_Comm_size(witness.host_comm, &ranks);
    PMPI_Allreduce(&may_be_moved, &all_may_be, 1, MPI_INT, MPI_MIN, witness.host_comm);
    if (all_may_be && before.cpus >= ranks) /* ranks that share a CPU would wait for each other */
        distance = distance_of_cores();
}

void disturbed_write(struct json *json)
{
    struct disturbance passed = disturbance_since(&before, &cpus);
    double own, time = passed.wall * passed.cpus;
    /* Of the ranks, and of their cgroups, the one that waited longest counts. */
    double waits[2] = { passed.throttled, passed.waited / passed.wall }, most[2];
    PMPI_Reduce(&passed.own, &own, 1, MPI_DOUBLE, MPI_SUM, 0, witness.host_comm);
    PMPI_Reduce(waits, most, 2, MPI_DOUBLE, MPI_MAX, 0, witness.host_comm);
    double at_end = disturbance_additions_per_cycle();
    double more = fmax(additions, at_end), less = fmin(additions, at_end);
    /* All ranks of a host know it, or none. */
    double distance_at_end = distance > 0 ? distance_of_cores() : 0;
    double most_additions, least_additions;
    PMPI_Reduce(&more, &most_additions, 1, MPI_DOUBLE, MPI_MAX, 0, witness.host_comm);
    PMPI_Reduce(&less, &least_additions, 1, MPI_DOUBLE, MPI_MIN, 0, witness.host_comm);
    if (witness.host_rank != 0)
        return;
    json_object(json, "disturbance");
    json_number(json, "seconds", passed.wall);
    json_number(json, "foreign_share", disturbance_foreign_share(&passed, own));
    json_number(json, "steal_share", passed.steal / time);
    json_number(json, "throttled_share", most[0] / time);
    json_number(json, "waited_share", most[1] < 1 ? most[1] : 1);
    if (most_additions > 0) {
        json_number(json, "most_additions", most_additions);
        json_number(json, "least_additions", least_additions);
    }
    if (distance_at_end > 0) {
        json_number(json, "most_core_latency", fmax(distance, distance_at_end));
        json_number(json, "least_core_latency", fmin(distance, distance_at_end));
    }
    if (passed.thermal_known)
        json_integer(json, "thermal_events", (long long)passed.thermal_events);
    json_end(json);
}
