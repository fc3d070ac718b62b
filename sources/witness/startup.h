/* How long the rank took to start: from the launcher to main, MPI_Init, and MPI_Finalize. */
#ifndef ASSAY_WITNESS_STARTUP_H
#define ASSAY_WITNESS_STARTUP_H

#include "json.h"

void startup_enter_init(void);
void startup_leave_init(void);

/* In MPI_Init: removes what an earlier job has left beside its report. */
void startup_clear(const char *report);

/* Collective over witness.comm, after the clocks were compared: member `startup` of a process, in
 * seconds. `main`, from the launcher on, only where ASSAY_WITNESS_LAUNCHED told rank 0 when that was,
 * in ns since 1970. */
void startup_write(struct json *json);

/* Around PMPI_Finalize, after which nobody can gather: rank 0 appends a line to `<report>.finalized`,
 * and so does the first rank of a host where it took SLOW_SECONDS. */
void startup_enter_finalize(void);
void startup_leave_finalize(void);

#endif
