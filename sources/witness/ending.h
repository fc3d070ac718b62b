/* The end of a rank that does not reach MPI_Finalize: a line of what was gathered so far. */
#ifndef ASSAY_ENDING_H
#define ASSAY_ENDING_H

/* Before PMPI_Init: notes which signals the program takes itself. */
void ending_before_init(void);
/* The lines go to <report>.ranks. Rank 0 removes it: in MPI_Init that of an earlier run, before any
 * rank can leave; in MPI_Finalize that of ranks that nearly ended. */
void ending_clear(const char *report);
/* At the end of MPI_Init: from now on a signal that ends the rank, or its exit, leaves a line, unless
 * the program itself takes the signal. */
void ending_watch(void);
/* In MPI_Finalize: gives the signals back, and once all is gathered, no longer takes note of an exit. */
void ending_leave_signals(void);
void ending_unwatch(void);
/* Appends the line: JSON, see docs/report-format.md. Safe in a signal handler. */
void ending_write(const char *reason);

#endif
