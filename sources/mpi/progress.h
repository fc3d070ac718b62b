/* A progress thread of the program's own: it does nothing but call MPI, so that messages go on while
 * the rank computes. The last of the cores that a rank may use is given up for it.
 *
 *     progress_start(comm);      the rank leaves that core to the thread, which waits
 *     progress_resume();         the thread has called MPI at least once, and goes on
 *     ... messages in `comm`, computation ...
 *     progress_pause();          the thread is in no call any more
 *     progress_end();            after MPI_Finalize, so that whoever looks there finds it in its place
 *
 * The program needs MPI_THREAD_MULTIPLE. */
#ifndef ASSAY_PROGRESS_H
#define ASSAY_PROGRESS_H

#include <mpi.h>

/* The name of the thread, by which checks/mpi/halo.py finds it in the witness's report. */
#define PROGRESS_NAME "progress"

/* Collective over MPI_COMM_WORLD. Refuses where a rank may use one core only. Pins the calling thread to
 * the other cores for good; threads that it starts later inherit this. */
void progress_start(MPI_Comm comm);

void progress_resume(void);
void progress_pause(void);

/* Collective: calls of MPI_Iprobe, of the rank whose thread made the fewest; on rank 0. */
long progress_calls(void);

void progress_end(void);

#endif
