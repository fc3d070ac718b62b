/* What a rank has to report at MPI_Finalize, beside its placement and traffic. */
#ifndef ASSAY_SUMMARY_H
#define ASSAY_SUMMARY_H

#include "tally.h"
#include "waits.h"

struct summary {
    double wall; /* s, from the end of MPI_Init to the start of MPI_Finalize */
    int threads; /* that called MPI */
    struct total totals[CALLS];
    struct waits waits[CALLS];
    struct site_waits *site_waits; /* by the number of the site; NULL for none */
    bool gave_up; /* waiting for what another rank knows of waits */
    size_t state; /* bytes that the witness holds */
};

#endif
