/* pairs: latency and bandwidth of many pairs of nodes at the same time, message rate, bisection.
 *
 * What is measured, and between whom, stands in the help text below; how pairs are chosen in
 * schedule.h, how they are timed and their payload checked in meter.h. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "crowd.h"
#include "meter.h"
#include "nodes.h"
#include "rest.h"
#include "table.h"
#include "tournament.h"

static const struct bench_about about = {
    .program = "pairs",
    .purpose = "latency and bandwidth of many pairs of nodes at once, message rate, bisection",
    .text =
        "A node is a host, or with --group so many ranks of one. Up to 64 nodes all meet in a\n"
        "round-robin tournament, more of them in 2*log2(nodes) of its rounds. The pairs of a\n"
        "round are measured at the same time, between the first ranks of their nodes:\n"
        "  latency        a message of --small bytes there and back; half of the round trip.\n"
        "  bandwidth      windows of messages of --large bytes both ways at once (as many as make\n"
        "                 4 MiB, 2 to 64); bytes of both directions over the time.\n"
        "A pair is suspicious if one of them takes longer than the median of all pairs by a\n"
        "quarter of it, and by 6 standard deviations (from the median absolute deviation). The 8\n"
        "worst of these are measured again alone. Then, between each node of the lower half of\n"
        "the nodes and its partner in the upper half:\n"
        "  message rate   windows of --small bytes one way (64 messages, fewer if they are more\n"
        "                 than 4 MiB; an empty message back), by 1, 2, 4, ... all ranks of a node.\n"
        "  bisection      the bandwidth between all ranks of both halves at once; the sum.\n"
        "Times are means of a batch, that of its slowest rank; best and median are over up to 11\n"
        "batches in the budget. Others sleep meanwhile. The first messages of a point and the last\n"
        "of each batch are checked whole, outside the time. After 30 s, and 10 times the time that\n"
        "the budget allows for all of them, no new round begins.\n",
    .examples = "  mpirun -n 64 --map-by node pairs\n"
                "  mpirun -n 4 pairs --group 1 --json pairs.json\n",
    .min_ranks = 2,
};

static long group = 0;
static size_t small = 8, large = (size_t)1 << 20;
static double budget = 0.1;
static bool tournament = false;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "group", .kind = OPTION_COUNT, .value = &group, .argument = "RANKS", .low = 0,
      .high = 1 << 20, .help = "let each so many ranks of a host stand for a node; 0: all of them" },
    { .name = "small", .kind = OPTION_SIZE, .value = &small, .argument = "BYTES", .low = 1,
      .high = 64 << 10, .help = "messages of latency and message rate" },
    { .name = "large", .kind = OPTION_SIZE, .value = &large, .argument = "BYTES", .low = 1,
      .high = (size_t)1 << 30, .help = "messages of bandwidth and bisection" },
    { .name = "budget", .kind = OPTION_NUMBER, .value = &budget, .argument = "SECONDS",
      .low = 1e-3, .high = 60, .help = "time of each of them, in each round" },
    { .name = "tournament", .kind = OPTION_FLAG, .value = &tournament,
      .help = "tell every pair that met, of any number of nodes, and end there" },
    { .name = NULL },
};
/* clang-format on */

/* Between the first ranks of the nodes, while the others sleep. */
static void play(const struct nodes *nodes, struct meter *meter)
{
    if (nodes->leaders != MPI_COMM_NULL) {
        struct tournament *t = memory_allocate(sizeof *t);
        *t = (struct tournament){ .nodes = nodes, .meter = meter, .small = small, .large = large };
        tournament_play(t);
        table_report(t, tournament);
        free(t);
    }
    rest_until_all(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    if (small > large)
        bench_refuse("--small %zu is greater than --large %zu", small, large);
    struct nodes nodes = nodes_find(group);
    if (nodes.count < 2) {
        nodes_free(&nodes);
        bench_refuse("all %d ranks are on one node, and pairs need two: with --group 1 each rank "
                     "stands for a node",
                     bench.ranks);
    }
    size_t bytes = meter_bytes(small, large) + sizeof(struct tournament);
    memory_require(bytes, "use a smaller --large or fewer ranks per host");

    if (bench.rank == 0) {
        printf("Nodes:          %d, at least %d rank(s) each\n", nodes.count, nodes.ranks);
        printf("Memory:         %.1f MiB a rank\n", (double)bytes / (1 << 20));
    }
    json_integer(bench.json, "nodes", nodes.count);
    json_integer(bench.json, "ranks_per_node", nodes.ranks);
    json_integer(bench.json, "bytes_per_rank", (long long)bytes);

    struct meter meter = meter_make(small, large, budget);
    play(&nodes, &meter);
    if (!tournament) {
        crowd_message_rate(&nodes, &meter, small);
        crowd_bisection(&nodes, &meter, large);
    }
    json_end(bench.json);
    meter_write_clocks(&meter);
    meter_free(&meter);
    nodes_free(&nodes);
    return bench_end();
}
