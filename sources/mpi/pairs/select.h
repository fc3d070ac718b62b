/* Order statistics of values that are spread over the ranks: nobody ever holds all of them. */
#ifndef ASSAY_SELECT_H
#define ASSAY_SELECT_H

#include <mpi.h>

enum { SELECT_MOST = 64 }; /* values on a rank */

/* Collective over comm. The k-th smallest, from 0, of the values of all its ranks; `count` of them
 * on this one, at most SELECT_MOST, finite and not negative. k is less than their number. */
double select_smallest(MPI_Comm comm, const double *values, int count, long long k);

/* What most of the times are like. */
struct usual {
    double median; /* the lower of the two in the middle */
    double bound;  /* above it a time is suspicious */
};

/* Collective over comm; `all` is the number of the values of all ranks.
 *
 * The bound is the median and the greater of: a quarter of it; six standard deviations of a normal
 * distribution with the same median absolute deviation (1.4826 of it; Rousseeuw and Croux,
 * "Alternatives to the median absolute deviation", 1993, section 1). Up to half of the values may be
 * anything without changing it much. */
struct usual select_usual(MPI_Comm comm, const double *values, int count, long long all);

#endif
