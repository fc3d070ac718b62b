#include "tournament.h"

#include <math.h>

#include "bench.h"
#include "clock.h"
#include "rest.h"

/* Playing -------------------------------------------------------------------------------------- */

/* Collective over the leaders: a communicator of this one and its partner, if it has one. */
static MPI_Comm meet(const struct nodes *nodes, int partner)
{
    MPI_Comm pair;
    int first = partner < nodes->index ? partner : nodes->index;
    MPI_Comm_split(nodes->leaders, partner < 0 ? MPI_UNDEFINED : first, nodes->index, &pair);
    return pair;
}

/* Collective over the leaders. Both figures of the pair, if this rank is in one. */
static void play(struct tournament *t, MPI_Comm pair, struct timing *latency,
                 struct timing *exchange)
{
    if (pair != MPI_COMM_NULL)
        *latency = meter_measure(t->meter, PING_PONG, pair, t->small);
    rest_until_all(t->nodes->leaders);
    if (pair != MPI_COMM_NULL)
        *exchange = meter_measure(t->meter, EXCHANGE, pair, t->large);
    rest_until_all(t->nodes->leaders);
}

static void play_round(struct tournament *t, int round)
{
    const struct nodes *nodes = t->nodes;
    int partner = schedule_partner(&t->schedule, round, nodes->index);
    struct game game = { .round = round, .nodes = { nodes->index, partner } };
    MPI_Comm pair = meet(nodes, partner);
    play(t, pair, &game.latency, &game.exchange);
    if (pair == MPI_COMM_NULL)
        return;
    MPI_Allgather(&bench.rank, 1, MPI_INT, game.leaders, 1, MPI_INT, pair);
    MPI_Comm_free(&pair);
    if (nodes->index < partner)
        t->games[t->count++] = game;
}

/* A round takes as long as its slowest pair. A job of a sick network is to end, with what it saw. */
static bool is_in_time(const struct tournament *t)
{
    double planned = 2 * t->schedule.rounds * t->meter->budget;
    int go_on = clock_seconds() - t->start < 30 + 10 * planned;
    MPI_Bcast(&go_on, 1, MPI_INT, 0, t->nodes->leaders);
    return go_on;
}

static void play_rounds(struct tournament *t)
{
    t->start = clock_seconds();
    t->schedule = schedule_make(t->nodes->count);
    while (t->rounds < t->schedule.rounds && (t->rounds == 0 || is_in_time(t)))
        play_round(t, t->rounds++);
}

/* What is usual, and what is not ---------------------------------------------------------------- */

static void find_usual(struct tournament *t)
{
    MPI_Comm leaders = t->nodes->leaders;
    double latencies[SCHEDULE_MOST], exchanges[SCHEDULE_MOST], worst[2] = { 0 };
    for (int i = 0; i < t->count; i++) {
        latencies[i] = t->games[i].latency.median;
        exchanges[i] = t->games[i].exchange.median;
        worst[0] = fmax(worst[0], latencies[i]);
        worst[1] = fmax(worst[1], exchanges[i]);
    }
    t->all = t->count;
    MPI_Allreduce(MPI_IN_PLACE, &t->all, 1, MPI_LONG_LONG, MPI_SUM, leaders);
    t->latency = select_usual(leaders, latencies, t->count, t->all);
    t->exchange = select_usual(leaders, exchanges, t->count, t->all);
    MPI_Allreduce(MPI_IN_PLACE, worst, 2, MPI_DOUBLE, MPI_MAX, leaders);
    t->worst_latency = worst[0];
    t->worst_exchange = worst[1];

    for (int i = 0; i < t->count; i++) {
        t->games[i].suspicious = latencies[i] > t->latency.bound ||
                                 exchanges[i] > t->exchange.bound;
        t->suspicious += t->games[i].suspicious;
    }
    MPI_Allreduce(MPI_IN_PLACE, &t->suspicious, 1, MPI_LONG_LONG, MPI_SUM, leaders);
}

/* How many times longer than usual, by that of the two figures by which it is more. Suspicious
 * pairs come before all others. */
static double severity(const struct tournament *t, const struct game *game)
{
    double latency = game->latency.median / t->latency.median;
    double exchange = game->exchange.median / t->exchange.median;
    return fmax(latency, exchange) + (game->suspicious ? 1e9 : 0);
}

/* The most severe first, until there are enough; each leader knows them all. */
static void find_worst(struct tournament *t)
{
    bool taken[SCHEDULE_MOST] = { false };
    while (t->worst_count < WORST_MOST && t->worst_count < t->all) {
        struct {
            double severity;
            int node;
        } most = { -1, t->nodes->index };
        int own = 0;
        for (int i = 0; i < t->count; i++)
            if (!taken[i] && severity(t, &t->games[i]) > most.severity) {
                most.severity = severity(t, &t->games[i]);
                own = i;
            }
        MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, t->nodes->leaders);
        struct game *game = &t->worst[t->worst_count++];
        if (most.node == t->nodes->index) {
            taken[own] = true;
            *game = t->games[own];
        }
        MPI_Bcast(game, sizeof *game, MPI_BYTE, most.node, t->nodes->leaders);
    }
}

static void play_alone(struct tournament *t)
{
    while (t->alone < t->worst_count && t->worst[t->alone].suspicious && is_in_time(t)) {
        struct game *game = &t->worst[t->alone++];
        int own = t->nodes->index, partner = -1;
        if (own == game->nodes[0] || own == game->nodes[1])
            partner = own == game->nodes[0] ? game->nodes[1] : game->nodes[0];
        MPI_Comm pair = meet(t->nodes, partner);
        play(t, pair, &game->latency_alone, &game->exchange_alone);
        if (pair != MPI_COMM_NULL)
            MPI_Comm_free(&pair);
        MPI_Bcast(game, sizeof *game, MPI_BYTE, game->nodes[0], t->nodes->leaders);
    }
}

void tournament_play(struct tournament *t)
{
    play_rounds(t);
    find_usual(t);
    find_worst(t);
    play_alone(t);
}

double tournament_bandwidth(const struct tournament *t, double seconds)
{
    return 2.0 * meter_window(EXCHANGE, t->large) * (double)t->large / seconds;
}
