/* partitioned: messages of which each part is sent when it is ready (MPI 4, chapter 4).
 *
 * Rank 0 and the last rank send each other such messages in turn. What is measured stands in the help
 * text below.
 *
 * Payload: the sender changes the first and the last word of each partition in each message, just
 * before it says that the partition is ready. The receiver looks at both as soon as it is told that the
 * partition has arrived: a flag that is set too early is found. The last message of each batch is
 * checked whole, outside the time. */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "memory.h"
#include "pair.h"
#include "patience.h"
#include "payload.h"
#include "sample.h"

static bool thread_multiple = false;

static const struct bench_about about = {
    .program = "partitioned",
    .purpose = "messages of which each part is sent when it is ready, between two ranks",
    .text =
        "Ways to send so many bytes, all by persistent requests:\n"
        "  whole        one message (MPI_Send_init).\n"
        "  messages     a message for each partition.\n"
        "  partitioned  MPI_Psend_init; MPI_Pready of each partition; the receiver asks for each\n"
        "               by MPI_Parrived until it has arrived.\n"
        "With several threads each writes its share of the partitions, and starts their messages or\n"
        "says that they are ready. Time: half a round trip between the first and the last rank.\n"
        "Bandwidth is the whole size over it.\n",
    .examples = "  mpirun -n 2 partitioned\n"
                "  mpirun -n 2 partitioned --threads 4 --thread-multiple --partitions 4,16\n",
    .min_ranks = 2,
    .thread_multiple = &thread_multiple,
};

enum way { WHOLE, MESSAGES, PARTITIONED, WAYS };
static const char *const way_names[] = { "whole", "messages", "partitioned", NULL };

enum { MOST_PARTITIONS = 64, MOST_THREADS = 64, LARGEST = 1 << 28 };

static unsigned chosen_ways = (1u << WAYS) - 1;
static long thread_count = 1;
static struct option_numbers partitions = { .values = { 1, 2, 4, 8, 16 }, .count = 5 };
static struct option_numbers sizes = { .values = { 4096, 65536, 1048576, 4194304 }, .count = 4 };
static long patience = PATIENCE_SECONDS;
static struct sample_plan plan = SAMPLE_DEFAULTS;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "way", .kind = OPTION_CHOICES, .value = &chosen_ways, .argument = "LIST",
      .choices = way_names, .help = "how to send" },
    { .name = "partitions", .kind = OPTION_NUMBERS, .value = &partitions, .argument = "LIST",
      .low = 1, .high = MOST_PARTITIONS, .help = "numbers of partitions" },
    { .name = "sizes", .kind = OPTION_NUMBERS, .value = &sizes, .argument = "LIST", .low = 16,
      .high = LARGEST, .help = "bytes of all partitions together; each has a multiple of 16" },
    { .name = "threads", .kind = OPTION_COUNT, .value = &thread_count, .argument = "COUNT",
      .low = 1, .high = MOST_THREADS, .help = "threads of each rank that write partitions" },
    { .name = "thread-multiple", .kind = OPTION_FLAG, .value = &thread_multiple,
      .help = "ask the MPI for MPI_THREAD_MULTIPLE, which several threads need" },
    PATIENCE_OPTION(patience),
    SAMPLE_OPTIONS(plan),
    { .name = NULL },
};
/* clang-format on */

struct point {
    enum way way;
    int partitions;
    size_t size; /* of all together */
    struct sample *sample;
};

/* What a rank of the pair has for all points. */
struct side {
    MPI_Comm pair;
    int rank; /* in the pair */
    char *sent, *received, *expected;
    MPI_Request send[MOST_PARTITIONS], receive[MOST_PARTITIONS];
    int requests;     /* that there are of each */
    int64_t messages; /* that were sent each way, so that no two have the same words */
    long early;       /* partitions that were said to have arrived and had not */
    int team[MOST_PARTITIONS]; /* threads among which each of the last message was dealt out */
    const struct point *point;
};

enum { TAG = 1, WORD = 8 };

#ifdef ASSAY_HAS_PARTITIONED
static const bool has_partitioned = true;
#else
static const bool has_partitioned = false; /* main refuses */
#define MPI_Psend_init(...) ((void)0)
#define MPI_Precv_init(...) ((void)0)
#define MPI_Pready(...) ((void)0)
#define MPI_Parrived(...) ((void)0)
#endif

static size_t part_size(const struct point *point)
{
    return point->size / (size_t)point->partitions;
}

static void open_requests(struct side *side)
{
    const struct point *point = side->point;
    int other = 1 - side->rank, bytes = (int)part_size(point);
    if (point->way == PARTITIONED) {
        side->requests = 1;
        MPI_Psend_init(side->sent, point->partitions, bytes, MPI_BYTE, other, TAG, side->pair,
                       MPI_INFO_NULL, side->send);
        MPI_Precv_init(side->received, point->partitions, bytes, MPI_BYTE, other, TAG, side->pair,
                       MPI_INFO_NULL, side->receive);
        return;
    }
    side->requests = point->partitions;
    for (int i = 0; i < side->requests; i++) {
        /* Threads start them in any order. */
        MPI_Send_init(side->sent + i * bytes, bytes, MPI_BYTE, other, TAG + i, side->pair,
                      &side->send[i]);
        MPI_Recv_init(side->received + i * bytes, bytes, MPI_BYTE, other, TAG + i, side->pair,
                      &side->receive[i]);
    }
}

static void close_requests(struct side *side)
{
    for (int i = 0; i < side->requests; i++) {
        MPI_Request_free(&side->send[i]);
        MPI_Request_free(&side->receive[i]);
    }
}

/* Words and payload ---------------------------------------------------------------------------- */

/* The word of a partition in a message of a rank, at both of its ends. */
static int64_t word_of(int64_t message, int partition, int rank)
{
    return (message * MOST_PARTITIONS + partition) * 2 + rank;
}

static void write_words(char *buffer, size_t size, int64_t word)
{
    memcpy(buffer, &word, WORD);
    memcpy(buffer + size - WORD, &word, WORD);
}

static bool has_words(const char *buffer, size_t size, int64_t word)
{
    return memcmp(buffer, &word, WORD) == 0 && memcmp(buffer + size - WORD, &word, WORD) == 0;
}

static void prepare(const struct side *side)
{
    size_t size = side->point->size;
    payload_fill(side->sent, size, side->rank, (long)side->messages);
    payload_spoil(side->received, size, 1 - side->rank, (long)side->messages);
    payload_fill(side->expected, size, 1 - side->rank, (long)side->messages);
}

static void check_team(const struct side *side)
{
    for (int i = 0; i < side->point->partitions; i++)
        if (side->team[i] != thread_count)
            bench_abort(EXIT_BROKEN, "partitions by %s were dealt out to %d threads, not to %ld",
                        way_names[side->point->way], side->team[i], thread_count);
}

/* The last message of the batch. */
static void check(const struct side *side)
{
    const struct point *point = side->point;
    size_t part = part_size(point);
    for (int i = 0; i < point->partitions; i++) {
        char *expected = side->expected + (size_t)i * part;
        write_words(expected, part, word_of(side->messages, i, 1 - side->rank));
        if (memcmp(side->received + (size_t)i * part, expected, part) != 0)
            bench_abort(EXIT_WRONG_PAYLOAD,
                        "partition %d of %d of %zu bytes by %s arrived wrong; from host %s", i,
                        point->partitions, point->size, way_names[point->way],
                        bench.hosts[bench.host_of[side->rank ? 0 : bench.ranks - 1]]);
    }
    if (side->early)
        bench_abort(EXIT_WRONG_PAYLOAD,
                    "%ld partitions of %d of %zu bytes by %s were said to have arrived and had not",
                    side->early, point->partitions, point->size, way_names[point->way]);
}

/* Messages ------------------------------------------------------------------------------------- */

static void send(struct side *side)
{
    const struct point *point = side->point;
    size_t part = part_size(point);
    if (point->way == PARTITIONED)
        MPI_Start(side->send);
#pragma omp parallel for schedule(static) num_threads((int)thread_count) if (thread_count > 1)
    for (int i = 0; i < point->partitions; i++) {
        write_words(side->sent + (size_t)i * part, part, word_of(side->messages, i, side->rank));
        if (point->way == PARTITIONED)
            MPI_Pready(i, side->send[0]);
        else
            MPI_Start(&side->send[i]);
        side->team[i] = omp_get_num_threads();
    }
    MPI_Waitall(side->requests, side->send, MPI_STATUSES_IGNORE);
}

static void receive(struct side *side)
{
    const struct point *point = side->point;
    size_t part = part_size(point);
    if (point->way != PARTITIONED)
        MPI_Waitall(side->requests, side->receive, MPI_STATUSES_IGNORE);
    for (int i = 0; i < point->partitions; i++) {
        int has_arrived = point->way != PARTITIONED;
        while (!has_arrived)
            MPI_Parrived(side->receive[0], i, &has_arrived);
        side->early += !has_words(side->received + (size_t)i * part, part,
                                  word_of(side->messages, i, 1 - side->rank));
    }
    if (point->way == PARTITIONED)
        MPI_Waitall(1, side->receive, MPI_STATUSES_IGNORE);
}

static double batch(void *context, long iterations)
{
    struct side *side = context;
    bool is_first = side->rank == 0;
    side->early = 0;
    prepare(side);
    open_requests(side);
    sample_barrier(side->pair);
    struct sample_instant start = sample_now();
    for (long i = 0; i < iterations; i++) {
        side->messages++;
        MPI_Startall(side->requests, side->receive);
        if (is_first)
            send(side);
        receive(side);
        if (!is_first)
            send(side);
        sample_operation();
    }
    double seconds = sample_since(start) / 2;
    close_requests(side);
    check_team(side);
    check(side);
    return is_first ? seconds : 0;
}

/* Measuring and reporting ---------------------------------------------------------------------- */

static void measure_all(MPI_Comm pair, size_t largest, const struct point *points, int count)
{
    struct side side = {
        .pair = pair,
        .rank = bench.rank == 0 ? 0 : 1,
        .sent = memory_allocate(largest),
        .received = memory_allocate(largest),
        .expected = memory_allocate(largest),
    };
    for (int round = 0; round < SAMPLE_ROUNDS; round++)
        for (int i = 0; i < count; i++) {
            if (!sample_is_due(points[i].sample, round))
                continue;
            side.point = &points[i];
            pair_step((double)patience + plan.budget);
            patience_start((double)patience + plan.budget, "%zu bytes by %s in %d partitions",
                           points[i].size, way_names[points[i].way], points[i].partitions);
            sample_bout(points[i].sample, pair, batch, &side);
        }
    patience_end();
    free(side.sent);
    free(side.received);
    free(side.expected);
}

/* In the order of their report, all ways of a size and a number after each other; free() it. */
static struct point *list_points(int *count)
{
    int most = sizes.count * (1 + (WAYS - 1) * partitions.count);
    struct point *points = memory_allocate((size_t)most * sizeof *points);
    *count = 0;
    for (int i = 0; i < sizes.count; i++)
        for (int j = 0; j < partitions.count; j++)
            for (int way = 0; way < WAYS; way++)
                if (chosen_ways & 1u << way && (way != WHOLE || j == 0))
                    points[(*count)++] = (struct point){
                        .way = way,
                        .partitions = way == WHOLE ? 1 : (int)partitions.values[j],
                        .size = (size_t)sizes.values[i],
                        .sample = sample_start(plan, SAMPLE_ROUNDS),
                    };
    return points;
}

/* The largest size; refuses those that cannot be divided. */
static size_t check_sizes(void)
{
    size_t largest = 0;
    for (int i = 0; i < sizes.count; i++)
        for (int j = 0; j < partitions.count; j++) {
            double part = sizes.values[i] / partitions.values[j] / (2 * WORD);
            if (part != (double)(long)part || partitions.values[j] != (int)partitions.values[j])
                bench_refuse("%.15g bytes cannot be divided into %.15g partitions of a multiple of "
                             "16 bytes",
                             sizes.values[i], partitions.values[j]);
            largest = (size_t)sizes.values[i] > largest ? (size_t)sizes.values[i] : largest;
        }
    return largest;
}

static void report(const struct point *point)
{
    struct sample_result result = sample_end(point->sample);
    if (bench.rank != 0)
        return;
    double bandwidth = (double)point->size / result.time.best;
    printf("%-12s %10zu %10d", way_names[point->way], point->size, point->partitions);
    sample_print(&result, "%12.2f", bandwidth * 1e-6);
    json_object(bench.json, NULL);
    json_string(bench.json, "way", way_names[point->way]);
    json_integer(bench.json, "size", (long long)point->size);
    json_integer(bench.json, "partitions", point->partitions);
    json_number(bench.json, "bandwidth", bandwidth);
    sample_json(bench.json, &result);
    json_end(bench.json);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    if (!has_partitioned)
        bench_refuse("this MPI has no MPI_Psend_init; use one with MPI 4.0");
    if (thread_count > 1 && !thread_multiple)
        bench_refuse("--threads %ld needs --thread-multiple", thread_count);
    size_t largest = check_sizes();
    memory_require(pair_has_me() ? 3 * largest : 0, "use smaller --sizes");

    int count;
    struct point *points = list_points(&count);
    MPI_Comm pair = pair_enter();
    if (pair != MPI_COMM_NULL) {
        measure_all(pair, largest, points, count);
        pair_leave(&pair);
    }
    if (bench.rank == 0)
        printf("\n%-12s %10s %10s %12s %12s %12s %8s %8s  %s\n", "way", "bytes", "partitions",
               "best us", "median us", "MB/s", "+- %", "samples", "stopped by");
    json_array(bench.json, "results");
    for (int i = 0; i < count; i++)
        report(&points[i]);
    json_end(bench.json);
    free(points);
    return bench_end();
}
