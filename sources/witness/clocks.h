/* One time for all ranks.
 *
 * Each host has a CLOCK_MONOTONIC of its own, which started when it was booted. The first rank of
 * each host asks rank 0 for the time in a few ping-pongs; the shortest round trip tells how far
 * the host's clock is ahead, with an error of at most half that round trip. It does so at the
 * start and at the end. Where the two differ by more than their errors, the clocks run at different
 * rates, and in between the difference is taken to change evenly. */
#ifndef ASSAY_CLOCKS_H
#define ASSAY_CLOCKS_H

#include <stdint.h>

#include "json.h"

/* Collective over witness.comm: at the end of MPI_Init, and at the start of MPI_Finalize. */
void clocks_measure_start(void);
void clocks_measure_end(void);
/* In place of both, where no times of ranks are compared: at the start of MPI_Finalize. */
void clocks_measure_once(void);

/* Nanoseconds since clocks_measure_start, on the clock of rank 0's host. */
int64_t clocks_global(int64_t ticks);

/* Seconds by which this host's clock of the day is ahead of that of rank 0's host. */
double clocks_day_ahead(void);

/* Member `clock`, in seconds: how far this host's clock was ahead of that of rank 0's host when it
 * was last measured, the bound of the error, the larger one of both measurements, and how far its
 * clock of the day was ahead, with no larger error. */
void clocks_write_host(struct json *json);

#endif
