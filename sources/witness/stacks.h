/* The stacks of a rank whose job is about to be killed for its time: written by gdb, where there is one,
 * into a file of the rank's host beside the report. */
#ifndef ASSAY_STACKS_H
#define ASSAY_STACKS_H

/* To be taken at ASSAY_WITNESS_DEADLINE, in seconds since 1970; before MPI_Init, which may hang too. */
void stacks_before_init(const char *report);
void stacks_after_init(void);

#endif
