/* The state of the witness in one rank.
 *
 * The library is preloaded into an MPI program. Its wrappers of MPI calls (wrap_*.c) count and time
 * what the program does; MPI_Finalize gathers it at rank 0 (report.c), which writes one JSON file.
 *
 *   lifecycle.c       MPI_Init, MPI_Finalize, MPI_Abort, signals: when the witness starts and ends
 *   ending.c          what a rank was inside when it ended early; stacks.c: its stacks, if it hangs
 *   bind.c            what the program's MPI offers
 *   wrap_*.c          one wrapper for each MPI call, in families
 *   fortran.c         the calls of Fortran programs go through the C wrappers
 *   references.c      what libraries refer to; weak references to what the MPI does not have
 *   tally.c           counts and times of calls; ticker.c: a clock that costs next to nothing
 *   communicators.c   what a communicator's ranks are in MPI_COMM_WORLD; routes.c: who got messages
 *   sites.c           where in the program calls come from, and in which phase
 *   monitoring.c      what Open MPI counts itself, if asked to
 *   performance.c     what the program reads of all this by MPI_T
 *   requests.c        what a request stands for until it completes
 *   messages.c        log of messages and of calls that waited; instances.c: log of collectives
 *   waits.c           who waited for whom, by what the other side logged; clocks.c: whose clock
 *   placement.c       CPUs, memory, threads; traffic.c: sockets and devices
 *   disturbed.c       who else used the CPUs; distance.c: how far apart the cores are
 *   variables.c       environment variables that steer MPI; settings.c: files, limits and the kernel
 *   entries.c         what ranks mostly have in common: rank 0's, and where another differs
 *   startup.c         how long the start took, MPI_Init and MPI_Finalize
 *   survivors.c       jobs that go on when a rank dies
 *   report.c          the JSON report; table.c: the table in the job's output */
#ifndef ASSAY_WITNESS_H
#define ASSAY_WITNESS_H

#include <mpi.h>
#include <stdbool.h>

struct witness {
    bool active;        /* between MPI_Init and MPI_Finalize; otherwise wrappers only pass on */
    bool profile;       /* time calls, and find out what they waited for */
    bool matrix;        /* report the sizes of the messages of each pair of ranks */
    bool table;         /* print a table in the end */
    int thread_level;   /* provided by MPI_Init */
    int rank, ranks;
    MPI_Comm comm;      /* MPI_COMM_WORLD's duplicate, for the witness's own messages */
    MPI_Comm waits_comm; /* another, for what may be left half done (waits.c) */
    MPI_Comm host_comm; /* its ranks on this host, in their order */
    int host_rank;
    char host[MPI_MAX_PROCESSOR_NAME];
};

extern struct witness witness;

/* To standard error, unless the program has put another file in its place since it began: that may be
 * its data. */
__attribute__((format(printf, 1, 2))) void witness_say(const char *format, ...);

#endif
