#include "disturbed.h"

#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>

#include "distance.h"
#include "disturbance.h"
#include "map.h"
#include "system.h"
#include "witness.h"

static struct set cpus; /* of all ranks of the host */
static struct disturbance before;
static double additions; /* a cycle, at the start; 0 if unknown */
static double distance;  /* of cores, in seconds, at the start; 0 if unknown */

/* The ranks whose cores may be moved with each other, and a folder that they share. */
static MPI_Comm neighbours;
static const char *shared;

/* Containers of one machine, such as the nodes of the virtual cluster, have its kernel. Of what is each
 * one's own they share no memory, but the folder of the job. */
static void find_neighbours(const char *folder)
{
    char *text = system_text("/proc/sys/kernel/random/boot_id");
    unsigned long id = text ? (unsigned long)map_hash_text(text, 1) : 0;
    unsigned long bounds[2] = { id, ~id };
    free(text);
    int ranks;
    PMPI_Comm_size(witness.host_comm, &ranks);
    PMPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_UNSIGNED_LONG, MPI_MIN, witness.comm);
    bool are_of_one = ranks < witness.ranks && bounds[0] > 0 && bounds[0] == ~bounds[1];
    neighbours = are_of_one ? witness.comm : witness.host_comm;
    shared = are_of_one ? folder : "/dev/shm";
}

/* Where several share a CPU, they would wait for each other. */
static bool have_a_cpu_each(void)
{
    struct set all = cpus;
    PMPI_Allreduce(MPI_IN_PLACE, all.words, SET_MEMBERS / SET_WORD, MPI_UNSIGNED_LONG, MPI_BOR,
                   neighbours);
    int ranks, count = 0;
    PMPI_Comm_size(neighbours, &ranks);
    for (int cpu = set_next(&all, 0); cpu >= 0; cpu = set_next(&all, cpu + 1))
        count++;
    return count >= ranks;
}

void disturbed_start(const char *folder)
{
    cpus = (struct set){ { 0 } };
    disturbance_add_cpus(&cpus);
    PMPI_Allreduce(MPI_IN_PLACE, cpus.words, SET_MEMBERS / SET_WORD, MPI_UNSIGNED_LONG, MPI_BOR,
                   witness.host_comm);
    additions = disturbance_additions_per_cycle();
    before = disturbance_read(&cpus);
    find_neighbours(folder);
    int may_be_moved = have_a_cpu_each() && additions > 0, all_may_be;
    PMPI_Allreduce(&may_be_moved, &all_may_be, 1, MPI_INT, MPI_MIN, neighbours);
    if (all_may_be)
        distance = distance_of_cores(neighbours, shared);
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
    /* All of them know it, or none. */
    double distance_at_end = distance > 0 ? distance_of_cores(neighbours, shared) : 0;
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
