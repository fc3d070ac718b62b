/* What Open MPI itself counts, where the user has switched on its monitoring: all messages to each
 * rank, also those that collectives consist of. */
#ifndef ASSAY_MONITORING_H
#define ASSAY_MONITORING_H

#include "json.h"

/* End of MPI_Init: with OMPI_MCA_pml_monitoring_enable=1 and a pml that is monitored. */
void monitoring_start(void);
/* First thing in MPI_Finalize, before the witness itself sends. */
void monitoring_stop(void);
/* The program stops variables of the MPI's, and makes a handle of one of them. */
void monitoring_program_stops(void);
void monitoring_program_allocates(int index);
/* Member sent_by_mpi; none where it was not monitored. */
void monitoring_write(struct json *json);

#endif
