/* Operations that all ranks begin at the same moment (Hunold and Carpen-Amarie, "MPI benchmarking
 * revisited", 2015), and not as they leave a barrier, which some leave earlier than others.
 *
 * Rank 0 names a moment a little ahead, and each rank waits for it by its own clock. Ranks of a host have
 * one clock. That of each other host is held against the clock of rank 0's by ping-pongs, of which the one
 * with the shortest round trip tells: by half of that it may be wrong. */
#ifndef ASSAY_WINDOW_H
#define ASSAY_WINDOW_H

#include <stdbool.h>

/* Collective over MPI_COMM_WORLD: compares the clocks, and finds out how far ahead a moment has to be.
 * Clocks drift by some us in a second, so it is to be called again for each bout. */
void window_open(void);

/* Collective, after window_open: waits for the next moment, which it returns by this rank's clock.
 * `is_late`: this rank was told of it when it was over. */
double window_wait(bool *is_late);

/* By how many seconds the clock of a host may be off that of rank 0's: the most since the start. */
double window_error(void);

/* Collective, in the end. */
void window_close(void);

#endif
