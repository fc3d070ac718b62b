/* The profile in the job's output, on standard error. */
#ifndef ASSAY_TABLE_H
#define ASSAY_TABLE_H

#include "summary.h"

/* Collective over witness.comm; rank 0 prints. */
void table_print(const struct summary *summary);

#endif
