/* What the control groups of this process leave it: CPUs, and a share of their time. Both versions
 * of cgroups, also side by side, and seen from inside a container. */
#ifndef ASSAY_WITNESS_CGROUP_H
#define ASSAY_WITNESS_CGROUP_H

#include "system.h"

/* The smallest quota, as a number of CPUs, of the process's cgroup and those above it, as far up as
 * they are visible. Infinity when there is none. */
double cgroup_cpu_limit(void);

/* The CPUs of the process's cpuset; empty when there is none. */
struct set cgroup_cpus(void);

#endif
