/* The process of this host that takes most CPU time from the job, and is none of the job's. */
#ifndef ASSAY_BUSIEST_H
#define ASSAY_BUSIEST_H

#include <stddef.h>

#include "system.h"

/* Processes that are visible, with the CPU time that each has had: all its threads, in the kernel's
 * ticks (10 ms mostly). */
struct processes {
    size_t count;
    struct process {
        int id, parent, session;
        int cpu;                         /* of its first thread, where that ran last */
        unsigned long long ticks, begun; /* of an ID that is given again the latter differs */
        char command[16]; /* as the kernel has it: 15 bytes at most */
    } *of;
};

/* Those that run now; the caller frees `of`, which is NULL where none can be seen. */
struct processes processes_read(void);

struct own_job {
    const int *ranks; /* process IDs of those on this host */
    int rank_count;
    struct set cpus;    /* of the ranks */
    const char *number; /* of Slurm; NULL elsewhere */
};

/* The one that ran on the job's CPUs last and has taken most since, and the seconds that it took.
 * NULL where none took any. Left out are the ranks, what started them, all of the sessions of both,
 * and of Slurm's job whatever has a cgroup of it (srun, a batch script). */
const struct process *processes_busiest(const struct processes *before, const struct processes *now,
                                        const struct own_job *job, double *seconds);

#endif
