/* ring: a message goes round all ranks, from each to the next; time and bandwidth per hop.
 *
 * The table is that of the ring benchmark in the ARSC HPC Users' Newsletter 240 (March 2002):
 * messages of 2^k - 1 and 2^k eight-byte words, so that what happens just below and at a power of
 * two (protocol switches, padding) shows side by side.
 *
 * Payload: rank 0's message is checked whole on every rank after the last lap of a batch, outside
 * the time, and the buffers are spoiled; those before it by their marks. Ranks other than 0 pass on the
 * buffer they received. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "machine_limits.h"
#include "memory.h"
#include "payload.h"
#include "sample.h"

enum { TAG = 1, WORD = 8 };

static const struct bench_about about = {
    .program = "ring",
    .purpose = "a message goes round all ranks; time and bandwidth per hop",
    .text = "Rank 0 sends to rank 1, each rank receives and then sends on, the last one to rank\n"
            "0. The time per hop is that of a lap over the number of ranks (all hops, inside a\n"
            "host and between hosts, count the same), as the first decile over samples; bandwidth\n"
            "is the message over it. Sizes, measured in turn in up to 4 bouts each, are 2^k - 1\n"
            "and 2^k words of 8 bytes, for k = 0, 1, 2, ...\n",
    .examples = "  mpirun -n 4 ring\n"
                "  mpirun -n 16 ring --max-words 1048576 --json ring.json\n",
    .min_ranks = 2,
};

static long max_words = 131072;
static bool with_limits = false;
static struct option_numbers focus;
static struct sample_plan plan = SAMPLE_DEFAULTS;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "max-words", .kind = OPTION_COUNT, .value = &max_words, .argument = "WORDS",
      .low = 1, .high = 1 << 27, .help = "the longest message, in words of 8 bytes" },
    SAMPLE_OPTIONS(plan),
    SAMPLE_FOCUS_OPTION(focus),
    LIMITS_OPTION(with_limits),
    { .name = NULL },
};
/* clang-format on */

struct lap {
    int size;
    long message;
    char *send;    /* rank 0 only */
    char *receive; /* other ranks send it on */
};

static double batch(void *context, long iterations)
{
    struct lap *lap = context;
    int right = (bench.rank + 1) % bench.ranks;
    int left = (bench.rank + bench.ranks - 1) % bench.ranks;
    size_t size = (size_t)lap->size;
    long lacking = 0;
    double seconds = 0;
    sample_barrier(MPI_COMM_WORLD);
    if (bench.rank == 0) {
        struct sample_instant start = sample_now();
        for (long i = 0; i < iterations; i++) {
            struct payload_mark mark = payload_mark(lap->send, size, iterations - 1 - i);
            MPI_Send(lap->send, lap->size, MPI_BYTE, right, TAG, MPI_COMM_WORLD);
            payload_unmark(mark);
            MPI_Recv(lap->receive, lap->size, MPI_BYTE, left, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            lacking += payload_lacks_mark(lap->receive, size, iterations - 1 - i);
            sample_operation();
        }
        seconds = sample_since(start) / bench.ranks;
    } else {
        for (long i = 0; i < iterations; i++) {
            MPI_Recv(lap->receive, lap->size, MPI_BYTE, left, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            lacking += payload_lacks_mark(lap->receive, size, iterations - 1 - i);
            MPI_Send(lap->receive, lap->size, MPI_BYTE, right, TAG, MPI_COMM_WORLD);
        }
    }
    payload_require_marks(lacking, size);
    payload_check(lap->receive, size, 0, lap->message);
    payload_spoil(lap->receive, size, 0, lap->message);
    return seconds;
}

/* The sizes that are measured, in words: 0 and 1, 1 and 2, 3 and 4, 7 and 8, ... */
enum { MOST_POINTS = 64 };

struct point {
    long words;
    struct sample *sample;
};

static int list_points(struct point *points)
{
    int count = 0;
    for (long power = 1; power - 1 <= max_words; power *= 2) {
        if (count == 0 || power - 1 > points[count - 1].words)
            points[count++].words = power - 1;
        if (power <= max_words)
            points[count++].words = power;
    }
    return count;
}

static void report(long words, const struct sample_result *result)
{
    double bandwidth = (double)(words * WORD) / result->time.best;
    printf("%10ld %12ld", words, words * WORD);
    sample_print(result, "%14.2f", bandwidth * 1e-6);
    json_object(bench.json, NULL);
    json_integer(bench.json, "words", words);
    json_integer(bench.json, "size", words * WORD);
    json_number(bench.json, "bandwidth", bandwidth);
    sample_json(bench.json, result);
    json_end(bench.json);
}

static void measure(struct lap *lap, const struct point *point)
{
    lap->size = (int)(point->words * WORD);
    lap->message = point->words;
    payload_fill(lap->send, (size_t)lap->size, 0, lap->message);
    payload_spoil(lap->receive, (size_t)lap->size, 0, lap->message);
    sample_bout(point->sample, MPI_COMM_WORLD, batch, lap);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    size_t bytes = (size_t)max_words * WORD;
    memory_require(2 * bytes, "use a smaller --max-words or fewer ranks per host");
    struct lap lap = { .send = memory_allocate(bytes), .receive = memory_allocate(bytes) };
    struct point points[MOST_POINTS];
    int count = list_points(points);
    for (int i = 0; i < count; i++) {
        size_t size = (size_t)(points[i].words * WORD);
        points[i].sample = sample_start(sample_plan_for(plan, &focus, size), SAMPLE_ROUNDS);
    }

    if (bench.rank == 0)
        printf("\n%10s %12s %12s %12s %14s %8s %8s  %s\n", "words", "bytes", "us per hop",
               "median us", "MB/s per hop", "+- %", "samples", "stopped by");
    for (int round = 0; round < SAMPLE_ROUNDS; round++) {
        if (with_limits)
            limits_measure(LIMITS_SECONDS);
        for (int i = 0; i < count; i++)
            if (sample_is_due(points[i].sample, round))
                measure(&lap, &points[i]);
    }
    if (with_limits)
        limits_measure(LIMITS_SECONDS);
    json_array(bench.json, "results");
    for (int i = 0; i < count; i++) {
        struct sample_result result = sample_end(points[i].sample);
        if (bench.rank == 0)
            report(points[i].words, &result);
    }
    json_end(bench.json);
    if (with_limits)
        limits_report();
    free(lap.send);
    free(lap.receive);
    return bench_end();
}
