/* What is told of a tournament: all pairs of a few nodes, the slowest of many. */
#ifndef ASSAY_TABLE_H
#define ASSAY_TABLE_H

#include "tournament.h"

/* Nodes of which the first rank gathers all pairs, also where nobody asked for every one. */
enum { TABLE_MOST = 64 };

/* Collective over the leaders. Prints, and writes "rounds", "pairs", "suspicious" and two of the
 * "results" of the JSON file, whose array it begins. `every`: all pairs that met, n log n of n
 * nodes. */
void table_report(const struct tournament *t, bool every);

#endif
