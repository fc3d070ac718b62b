/* Many ranks of each node at once: how many messages, and how much between two halves of a job. */
#ifndef ASSAY_CROWD_H
#define ASSAY_CROWD_H

#include <stddef.h>

#include "meter.h"
#include "nodes.h"

/* Collective over MPI_COMM_WORLD. Both print, and write entries of "results".
 *
 * Each node of the lower half has a partner in the upper half, of an odd number of nodes the one in
 * the middle has none; the i-th rank of a node exchanges messages with the i-th of its partner. */
void crowd_message_rate(const struct nodes *nodes, struct meter *meter, size_t size);
void crowd_bisection(const struct nodes *nodes, struct meter *meter, size_t size);

#endif
