/* The tournament: each round's pairs of nodes at the same time, then what looked slow by itself.
 *
 * Results stay on the node that sent first, as many as there were rounds. The usual times and the
 * slowest pairs are found without gathering the others. */
#ifndef ASSAY_TOURNAMENT_H
#define ASSAY_TOURNAMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "meter.h"
#include "nodes.h"
#include "schedule.h"
#include "select.h"

/* Pairs that are told as the slowest, and measured again if they are suspicious. */
enum { WORST_MOST = 8 };

/* Two nodes that met. */
struct game {
    int round;
    int nodes[2], leaders[2]; /* their numbers, and their first ranks in MPI_COMM_WORLD */
    struct timing latency, exchange;
    bool suspicious;
    struct timing latency_alone, exchange_alone; /* of a suspicious pair */
};

struct tournament {
    const struct nodes *nodes;
    struct meter *meter;
    size_t small, large;
    double start; /* of the first round */
    struct schedule schedule;
    int rounds; /* that were played */
    int count;  /* of games on this rank */
    long long all; /* of all ranks */
    struct game games[SCHEDULE_MOST];
    struct usual latency, exchange;
    double worst_latency, worst_exchange;
    long long suspicious;
    struct game worst[WORST_MOST]; /* the same on all leaders, the slowest first */
    int worst_count;
    int alone; /* of these were measured again */
};

/* Collective over the leaders: fills in what stands below `large`. */
void tournament_play(struct tournament *t);

/* Bytes of both directions in a second, of a time of `exchange`. */
double tournament_bandwidth(const struct tournament *t, double seconds);

#endif
