/* The environment variables that steer MPI, its transports, and the threads and libraries of a
 * program: as they were when MPI_Init was called. */
#ifndef ASSAY_VARIABLES_H
#define ASSAY_VARIABLES_H

#include "json.h"

void variables_before_init(void);

/* An entry for each of rank 0's. */
void variables_write(struct json *json);

/* Collective over witness.comm: entries for those that this rank has otherwise than rank 0, and null
 * for those that it has not. NULL where there are none; the caller frees the text. */
char *variables_differing(void);

/* The libraries that LD_PRELOAD names but for this one, which the caller frees; NULL where this one
 * is not among them, and without memory. */
char *variables_preloaded(void);

#endif
