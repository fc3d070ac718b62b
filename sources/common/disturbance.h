/* What takes CPU time from a job: other processes, the hypervisor, quotas, heat.
 *
 *     struct set cpus = { { 0 } };
 *     disturbance_add_cpus(&cpus);                    on each thread
 *     struct disturbance before = disturbance_read(&cpus);
 *     ... the job ...
 *     struct disturbance passed = disturbance_since(&before, &cpus);
 *
 * All of it is read from /proc and /sys, for as little as a file or two for each CPU. No MPI here:
 * `own` is this process's, and whoever knows the other ranks of the host adds up theirs. */
#ifndef ASSAY_DISTURBANCE_H
#define ASSAY_DISTURBANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "system.h"

/* All times in seconds, added up over the CPUs where they are of CPUs. */
struct disturbance {
    double wall;
    int cpus;
    double busy;  /* of the CPUs, with whatever process (user, nice and system time) */
    double own;   /* CPU time of this process, but for threads that may not run on the CPUs */
    double steal; /* the hypervisor ran something else while a process was ready */
    double throttled; /* a quota of the process's cgroups was used up, and CPUs waited */
    uint64_t throttled_periods;
    bool thermal_known; /* the CPUs count how often heat or power slowed them down */
    uint64_t thermal_events;
    double waited; /* threads of this process were ready to run, and had no CPU; over threads */
};

/* Of a CPU since the boot, in seconds. */
struct cpu_times {
    double busy;       /* user, nice and system time */
    double interrupts; /* hardware's and software's */
    double steal;
};

/* By a line of /proc/stat, "cpu3 user nice system idle iowait irq softirq steal ..." in ticks; false if it
 * is another one. That of all CPUs together begins with "cpu ". */
bool disturbance_cpu_times(const char *line, int *cpu, struct cpu_times *times);

/* Adds the CPUs that the calling thread may run on. */
void disturbance_add_cpus(struct set *cpus);

/* The counters, as they stand. */
struct disturbance disturbance_read(const struct set *cpus);

/* What they have gone up by. */
struct disturbance disturbance_since(const struct disturbance *before, const struct set *cpus);

/* Share of the CPUs' time that processes other than those with `own` seconds took, 0 to 1. The
 * kernel may count busy time in ticks (10 ms or less on each CPU), so that a share taken over a
 * second is good to a few percent. */
double disturbance_foreign_share(const struct disturbance *passed, double own);

/* Integer additions that the core of the calling thread carries out in a cycle: as many as it has adders,
 * about half of them while something else computes on the core's other hardware thread. Takes 0.4 ms.
 *
 * 0 where nothing can do so unseen. A virtual machine mostly has hardware threads of the host as its
 * CPUs, and does not know which of them share a core with another guest's: no time is stolen then, and
 * loops take up to twice as long. A machine that shows its hardware threads has other ways to tell. */
double disturbance_additions_per_cycle(void);

#endif
