/* A barrier whose ranks sleep while they wait, so that they take neither a core nor memory bandwidth
 * from those that still measure: a blocking MPI call polls in most MPIs. */
#ifndef ASSAY_REST_H
#define ASSAY_REST_H

#include <mpi.h>

/* Collective over comm. */
void rest_until_all(MPI_Comm comm);

#endif
