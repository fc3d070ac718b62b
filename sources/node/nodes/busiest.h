/* The process of this host, other than the job's ranks, that takes most CPU time. */
#ifndef ASSAY_BUSIEST_H
#define ASSAY_BUSIEST_H

#include <stddef.h>

/* Processes that are visible, with the CPU time that each has had: all its threads, in the kernel's
 * ticks (10 ms mostly). */
struct processes {
    size_t count;
    struct process {
        int id;
        unsigned long long ticks;
        char command[16]; /* as the kernel has it: 15 bytes at most */
    } *of;
};

/* Those that run now; the caller frees `of`, which is NULL where none can be seen. */
struct processes processes_read(void);

/* The one that has taken most since, and the seconds that it took. NULL where none took any.
 *
 * ranks: process IDs of the job's ranks on this host, which are left out. */
const struct process *processes_busiest(const struct processes *before, const struct processes *now,
                                        const int *ranks, int rank_count, double *seconds);

#endif
