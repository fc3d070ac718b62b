/* The JSON report of a job: one file, written by rank 0 from what each rank says of itself. */
#ifndef ASSAY_REPORT_H
#define ASSAY_REPORT_H

#include "summary.h"

/* Of docs/report-format.md. */
enum { REPORT_SCHEMA = 3 };

/* Collective over witness.comm: what was there at MPI_Init, marked incomplete. */
void report_write_start(const char *path);

/* By one rank, of a program that uses MPI sessions: that it has so many ranks, of which nothing is
 * recorded. MPI_Init replaces it. */
void report_write_sessions(const char *path, int ranks);

/* First thing in MPI_Finalize: reads sockets and devices, before the witness itself sends. */
void report_collect(void);
/* Collective over witness.comm, after report_collect: the whole report. */
void report_write_end(const char *path, const struct summary *summary);

/* Where a rank leaves before its end: the report of MPI_Init stays. */
void report_abandon(void);

#endif
