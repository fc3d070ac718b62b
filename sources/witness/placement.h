/* Where this process and its threads sit: CPUs, cores, NUMA domains, packages, memory policy and
 * the CPU time that its cgroups allow.
 *
 * What cannot be read: a CPU without topology is a core of its own in package 0; without NUMA, or
 * with domains that do not divide the CPUs among them, there is one domain, 0; the last CPU is then
 * -1, the memory policy "unknown". lib/assay/machine/topology.py reads the same, by the same rules. */
#ifndef ASSAY_WITNESS_PLACEMENT_H
#define ASSAY_WITNESS_PLACEMENT_H

#include "json.h"

void placement_before_init(void); /* in MPI_Init*, before PMPI_Init: notes the threads that exist */
void placement_after_init(void); /* right after: the new ones are the MPI's */

/* Members pid ... threads of a process. The memory policy is the calling thread's. */
void placement_write(struct json *json);
/* Members cpus, allowed, cores, numa of a host. */
void placement_write_host(struct json *json);

#endif
