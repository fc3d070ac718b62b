/* Disturbances of a benchmark's run (see disturbance.h), of each host that its ranks are on.
 *
 *     watch_start();      before what is measured
 *     watch_report();     after it, where the JSON report may have an object */
#ifndef ASSAY_WATCH_H
#define ASSAY_WATCH_H

/* Collective over MPI_COMM_WORLD. */
void watch_start(void);

/* Collective over MPI_COMM_WORLD. Prints a line for each host, and writes the object
 * "disturbance": the greatest share of each kind, and "hosts" with those of every one. */
void watch_report(void);

#endif
