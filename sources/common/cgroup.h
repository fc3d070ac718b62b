/* What the control groups of this process leave it: CPUs, and a share of their time. Both versions
 * of cgroups, also side by side, and seen from inside a container. */
#ifndef ASSAY_CGROUP_H
#define ASSAY_CGROUP_H

#include "system.h"

/* The smallest quota, as a number of CPUs, of the process's cgroup and those above it, as far up as
 * they are visible. Infinity when there is none. */
double cgroup_cpu_limit(void);

/* How often, since it was made, a cgroup of the process had used up its quota before the period was
 * over, and the seconds that its CPUs waited then; of it and those above it together. */
struct cgroup_throttled {
    uint64_t periods;
    double seconds;
};
struct cgroup_throttled cgroup_throttled(void);

/* The CPUs of the process's cpuset; empty when there is none. */
struct set cgroup_cpus(void);

#endif
