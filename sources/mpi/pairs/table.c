#include "table.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

enum { NAME = MPI_MAX_PROCESSOR_NAME + 16 };

static void print_game(const struct tournament *t, const struct game *game)
{
    char names[2][NAME];
    for (int i = 0; i < 2; i++)
        nodes_name(t->nodes, game->leaders[i], names[i], NAME);
    printf("%-20s %-20s %6d %12.3f %12.3f %12.3f %12.3f%s", names[0], names[1], game->round,
           game->latency.best * 1e6, game->latency.median * 1e6,
           tournament_bandwidth(t, game->exchange.best) * 1e-9,
           tournament_bandwidth(t, game->exchange.median) * 1e-9,
           game->suspicious ? "  suspicious" : "");
    if (game->latency_alone.median > 0)
        printf(", alone %.3f us, %.3f GB/s", game->latency_alone.median * 1e6,
               tournament_bandwidth(t, game->exchange_alone.median) * 1e-9);
    putchar('\n');
}

static void json_timings(const struct tournament *t, const char *key, const struct timing *latency,
                         const struct timing *exchange)
{
    json_object(bench.json, key);
    json_number(bench.json, "latency", latency->median);
    json_number(bench.json, "best_latency", latency->best);
    json_number(bench.json, "bandwidth", tournament_bandwidth(t, exchange->median));
    json_number(bench.json, "best_bandwidth", tournament_bandwidth(t, exchange->best));
    meter_write_timing(exchange);
    json_end(bench.json);
}

static void json_game(const struct tournament *t, const struct game *game)
{
    json_object(bench.json, NULL);
    json_array(bench.json, "nodes");
    for (int i = 0; i < 2; i++) {
        char name[NAME];
        nodes_name(t->nodes, game->leaders[i], name, NAME);
        json_string(bench.json, NULL, name);
    }
    json_end(bench.json);
    json_integer(bench.json, "round", game->round);
    json_boolean(bench.json, "suspicious", game->suspicious);
    json_timings(t, "together", &game->latency, &game->exchange);
    if (game->latency_alone.median > 0)
        json_timings(t, "alone", &game->latency_alone, &game->exchange_alone);
    json_end(bench.json);
}

static int by_nodes(const void *a, const void *b)
{
    const struct game *x = a, *y = b;
    return x->nodes[0] != y->nodes[0] ? x->nodes[0] - y->nodes[0] : x->nodes[1] - y->nodes[1];
}

/* Collective over the leaders: their games on the first of them, which returns how many. */
static int gather(const struct tournament *t, struct game *games)
{
    int nodes = t->nodes->count, bytes = t->count * (int)sizeof *games;
    int *counts = memory_allocate(2 * (size_t)nodes * sizeof *counts), *starts = counts + nodes;
    MPI_Gather(&bytes, 1, MPI_INT, counts, 1, MPI_INT, 0, t->nodes->leaders);
    for (int node = 0, start = 0; t->nodes->index == 0 && node < nodes; node++) {
        starts[node] = start;
        start += counts[node];
    }
    MPI_Gatherv(t->games, bytes, MPI_BYTE, games, counts, starts, MPI_BYTE, 0, t->nodes->leaders);
    free(counts);
    return (int)t->all;
}

/* What was measured alone is known of the worst only. */
static void add_alone(const struct tournament *t, struct game *games, int count)
{
    for (int w = 0; w < t->worst_count; w++)
        for (int i = 0; i < count; i++)
            if (by_nodes(&games[i], &t->worst[w]) == 0)
                games[i] = t->worst[w];
}

static void report_games(const struct tournament *t, const struct game *games, int count)
{
    printf("\n%-20s %-20s %6s %12s %12s %12s %12s\n%-20s %-20s %6s %12s %12s %12s %12s\n", "", "",
           "", "us", "us", "GB/s", "GB/s", "node", "node", "round", "best", "median", "best",
           "median");
    json_array(bench.json, "pairs");
    for (int i = 0; i < count; i++) {
        print_game(t, &games[i]);
        json_game(t, &games[i]);
    }
    json_end(bench.json);
}

/* All pairs of a few nodes, and of many where they are wanted; else the worst of many. */
static void report_pairs(const struct tournament *t, bool every)
{
    if (t->nodes->count > TABLE_MOST && !every) {
        if (t->nodes->index == 0) {
            printf("\nThe slowest of %lld pairs:\n", t->all);
            report_games(t, t->worst, t->worst_count);
        }
        return;
    }
    struct game *games = NULL;
    if (t->nodes->index == 0)
        games = memory_allocate((size_t)t->all * sizeof *games);
    int count = gather(t, games);
    if (t->nodes->index == 0) {
        qsort(games, (size_t)count, sizeof *games, by_nodes);
        add_alone(t, games, count);
        report_games(t, games, count);
    }
    free(games);
}

static void json_usual(const char *measure, size_t size, int window, double median, double bound,
                       double worst)
{
    json_object(bench.json, NULL);
    json_string(bench.json, "measure", measure);
    json_integer(bench.json, "size", (long long)size);
    json_integer(bench.json, "window", window);
    json_number(bench.json, "median", median);
    json_number(bench.json, "bound", bound);
    json_number(bench.json, "worst", worst);
    json_end(bench.json);
}

static void report_usual(const struct tournament *t)
{
    double latency[] = { t->latency.median, t->latency.bound, t->worst_latency };
    double rate[] = { tournament_bandwidth(t, t->exchange.median),
                      tournament_bandwidth(t, t->exchange.bound),
                      tournament_bandwidth(t, t->worst_exchange) };
    printf("\n%-26s %12s %18s %12s\n", "pairs at the same time", "median", "suspicious beyond",
           "worst");
    printf("%-26s %12.3f %18.3f %12.3f\n", "latency, us", latency[0] * 1e6, latency[1] * 1e6,
           latency[2] * 1e6);
    printf("%-26s %12.3f %18.3f %12.3f\n", "bandwidth both ways, GB/s", rate[0] * 1e-9,
           rate[1] * 1e-9, rate[2] * 1e-9);
    printf("Suspicious: %lld of %lld pairs", t->suspicious, t->all);
    if (t->suspicious)
        printf("; the %d slowest were measured again alone", t->alone);
    putchar('\n');
    if (t->rounds < t->schedule.rounds)
        printf("Only %d of %d rounds were measured: they took more than 10 times as long as "
               "planned\n",
               t->rounds, t->schedule.rounds);
    fflush(stdout);

    json_integer(bench.json, "suspicious", t->suspicious);
    json_array(bench.json, "results");
    json_usual("latency", t->small, 1, latency[0], latency[1], latency[2]);
    json_usual("bandwidth", t->large, meter_window(EXCHANGE, t->large), rate[0], rate[1], rate[2]);
}

static void report_head_of(const struct tournament *t)
{
    printf("Rounds:         %d, %lld pairs; latency: %zu bytes; bandwidth: windows of %d x %zu "
           "bytes both ways\n",
           t->rounds, t->all, t->small, meter_window(EXCHANGE, t->large), t->large);
    json_object(bench.json, "rounds");
    json_integer(bench.json, "planned", t->schedule.rounds);
    json_integer(bench.json, "measured", t->rounds);
    json_integer(bench.json, "pairs", t->all);
    json_end(bench.json);
}

void table_report(const struct tournament *t, bool every)
{
    if (t->nodes->index == 0)
        report_head_of(t);
    report_pairs(t, every);
    if (t->nodes->index == 0)
        report_usual(t);
}
