#include "crowd.h"

#include <stdio.h>

#include "bench.h"
#include "rest.h"

/* The first `senders` ranks of each node that has a partner, those of the lower half first;
 * MPI_COMM_NULL on the others. */
static MPI_Comm gather_crowd(const struct nodes *nodes, int senders)
{
    int half = nodes->count / 2, upper = nodes->count - half;
    int index = nodes->index < half ? nodes->index : nodes->index - upper + half;
    int takes_part = nodes->place < senders && (nodes->index < half || nodes->index >= upper);
    MPI_Comm crowd;
    MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED,
                   takes_part ? index * senders + nodes->place : 0, &crowd);
    return crowd;
}

/* The time on rank 0, which takes part in any crowd; the others sleep until it is over. */
static struct timing measure(const struct nodes *nodes, struct meter *meter,
                             enum meter_pattern pattern, int senders, size_t size)
{
    struct timing timing = { 0 };
    MPI_Comm crowd = gather_crowd(nodes, senders);
    if (crowd != MPI_COMM_NULL) {
        timing = meter_measure(meter, pattern, crowd, size);
        MPI_Comm_free(&crowd);
    }
    rest_until_all(MPI_COMM_WORLD);
    return timing;
}

static void report_rate(const struct nodes *nodes, int senders, size_t size,
                        const struct timing *timing)
{
    int window = meter_window(ONE_WAY, size);
    double messages = (double)(nodes->count / 2) * senders * window;
    printf("%20d %16.3f %16.3f\n", senders, messages / timing->best * 1e-6,
           messages / timing->median * 1e-6);
    fflush(stdout);

    json_object(bench.json, NULL);
    json_string(bench.json, "measure", "message_rate");
    json_integer(bench.json, "size", (long long)size);
    json_integer(bench.json, "window", window);
    json_integer(bench.json, "senders", senders);
    json_number(bench.json, "rate", messages / timing->median);
    json_number(bench.json, "best_rate", messages / timing->best);
    meter_write_timing(timing);
    json_end(bench.json);
}

void crowd_message_rate(const struct nodes *nodes, struct meter *meter, size_t size)
{
    if (bench.rank == 0)
        printf("\nmessage rate: windows of %d x %zu bytes from the lower half of the nodes to the "
               "upper\n%20s %16s %16s\n",
               meter_window(ONE_WAY, size), size, "senders of a node", "best million/s",
               "median million/s");
    for (int senders = 1;; senders = 2 * senders < nodes->ranks ? 2 * senders : nodes->ranks) {
        struct timing timing = measure(nodes, meter, ONE_WAY, senders, size);
        if (bench.rank == 0)
            report_rate(nodes, senders, size, &timing);
        if (senders == nodes->ranks)
            break;
    }
}

void crowd_bisection(const struct nodes *nodes, struct meter *meter, size_t size)
{
    struct timing timing = measure(nodes, meter, EXCHANGE, nodes->ranks, size);
    if (bench.rank != 0)
        return;
    int window = meter_window(EXCHANGE, size), pairs = nodes->count / 2 * nodes->ranks;
    double bytes = 2.0 * pairs * window * (double)size;
    printf("\nbisection: %d pairs of ranks, windows of %d x %zu bytes both ways: best %.3f GB/s, "
           "median %.3f GB/s\n",
           pairs, window, size, bytes / timing.best * 1e-9, bytes / timing.median * 1e-9);

    json_object(bench.json, NULL);
    json_string(bench.json, "measure", "bisection");
    json_integer(bench.json, "size", (long long)size);
    json_integer(bench.json, "window", window);
    json_integer(bench.json, "pairs", pairs);
    json_number(bench.json, "bandwidth", bytes / timing.median);
    json_number(bench.json, "best_bandwidth", bytes / timing.best);
    meter_write_timing(&timing);
    json_end(bench.json);
}
