/* pt2pt: time and bandwidth of messages between ranks, over message sizes.
 *
 * The patterns, and what is reported for each, follow the definitions of the Intel MPI Benchmarks
 * (PingPong, PingPing, Sendrecv, Exchange), so that figures can be compared. They stand in the
 * help text below. Send and receive buffers are separate and page-aligned.
 *
 * Payload: the last message of every batch is checked whole, from every sender, after the clock
 * has stopped; then the buffer is spoiled, so that it cannot pass again unless it is received
 * again. The warm-up batches begin with a single message, so each point checks its first. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "machine_limits.h"
#include "memory.h"
#include "pair.h"
#include "payload.h"
#include "ping_pong.h"
#include "sample.h"
#include "sizes.h"

enum { TAG = 1 };

static const struct bench_about about = {
    .program = "pt2pt",
    .purpose = "time and bandwidth of messages between ranks, over message sizes",
    .text =
        "Patterns (S: message size, t: time reported, bandwidth: rate reported):\n"
        "  ping-pong      rank 0 sends, the last rank receives and sends back.\n"
        "                 t: half the round trip. bandwidth: S/t.\n"
        "  ping-ping      rank 0 and the last rank send to each other at once (MPI_Isend,\n"
        "                 MPI_Recv, MPI_Wait). t: one such exchange. bandwidth: S/t.\n"
        "  sendrecv       all ranks in a periodic chain: MPI_Sendrecv to the right, from the\n"
        "                 left. t: one call. bandwidth: 2*S/t (a rank's messages in and out).\n"
        "  exchange       all ranks in a periodic chain exchange with both neighbours (2x\n"
        "                 MPI_Isend, 2x MPI_Recv, MPI_Waitall). t: one exchange.\n"
        "                 bandwidth: 4*S/t.\n"
        "  bidirectional  rank 0 and the last rank keep a window of messages under way in both\n"
        "                 directions (MPI_Irecv, MPI_Isend, MPI_Waitall). The window is 16\n"
        "                 messages, or as many as make 4 MiB, but at least 2. t: time of a window\n"
        "                 over its messages per direction. bandwidth: 2*S/t (both directions).\n"
        "t is the slowest rank's, except for ping-pong, where rank 0 holds the clock. It is the\n"
        "first decile over samples of the mean of a sample's iterations: what others took of the\n"
        "machine meanwhile is not in it. Points are measured in turn, in up to 4 bouts each. Idle\n"
        "ranks sleep.\n"
        "The first message of a point and the last of every batch are checked whole, outside the\n"
        "time that counts. With cache off, each message uses another buffer out of a pool of\n"
        "twice the last-level cache, on the sending and on the receiving side.\n",
    .examples =
        "  mpirun -n 2 pt2pt\n"
        "  mpirun -n 2 pt2pt --pattern ping-pong --max 64M --cache off\n"
        "  mpirun -n 4 pt2pt --pattern sendrecv,exchange --ci 0.01 --budget 1 --json out.json\n",
    .min_ranks = 2,
};

enum pattern { PING_PONG, PING_PING, SENDRECV, EXCHANGE, BIDIRECTIONAL, PATTERNS };
static const char *const pattern_names[] = { "ping-pong", "ping-ping",     "sendrecv",
                                             "exchange",  "bidirectional", NULL };
enum cache { CACHE_ON, CACHE_OFF };
static const char *const cache_names[] = { "on", "off", NULL };

static unsigned chosen_patterns = (1u << PATTERNS) - 1;
static size_t smallest = 0, largest = (size_t)4 << 20;
static int cache = CACHE_ON;
static bool with_limits = false;
static struct sample_plan plan = SAMPLE_DEFAULTS;
static struct option_numbers focus;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "pattern", .kind = OPTION_CHOICES, .value = &chosen_patterns, .argument = "LIST",
      .choices = pattern_names, .help = "what to measure" },
    SIZES_OPTIONS(smallest, largest, 0, "message"),
    { .name = "cache", .kind = OPTION_CHOICE, .value = &cache, .argument = "STATE",
      .choices = cache_names, .help = "whether message buffers may stay in the caches" },
    SAMPLE_OPTIONS(plan),
    SAMPLE_FOCUS_OPTION(focus),
    LIMITS_OPTION(with_limits),
    { .name = NULL },
};
/* clang-format on */

enum { MOST_IN_WINDOW = 16, WINDOW_BYTES = 4 << 20 };

/* One pattern at one size, on one rank. */
struct point {
    enum pattern pattern;
    int size; /* an int, as MPI's counts are */
    int window;
    long message; /* the payload's message number: another one for each point */
    MPI_Comm comm;
    int rank;         /* in comm */
    int right, left;  /* in comm; the same rank for a pair */
    int right_world, left_world;
    struct sample *sample;
};

/* The buffers, of which each point makes its own slots. */
static struct memory_pool sending, receiving;

static void check_and_spoil(struct point *point, char *slot, int sender)
{
    payload_check(slot, (size_t)point->size, sender, point->message);
    payload_spoil(slot, (size_t)point->size, sender, point->message);
}

static struct payload_mark mark_next(const struct point *point, long left)
{
    return payload_mark(memory_pool_next(&sending), (size_t)point->size, left);
}

static long lacks_mark(const struct point *point, const char *slot, long left)
{
    return payload_lacks_mark(slot, (size_t)point->size, left);
}

static double run_ping_pong(struct point *point, long iterations)
{
    double seconds = ping_pong(point->comm, point->size, &sending, &receiving, iterations);
    check_and_spoil(point, memory_pool_slot(&receiving), point->right_world);
    return seconds;
}

static double ping_ping(struct point *point, long iterations)
{
    MPI_Comm comm = point->comm;
    int size = point->size, other = point->right;
    long lacking = 0;
    sample_barrier(comm);
    struct sample_instant start = sample_now();
    for (long i = 0; i < iterations; i++) {
        MPI_Request request;
        struct payload_mark mark = mark_next(point, iterations - 1 - i);
        MPI_Isend(memory_pool_slot(&sending), size, MPI_BYTE, other, TAG, comm, &request);
        MPI_Recv(memory_pool_next(&receiving), size, MPI_BYTE, other, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        payload_unmark(mark);
        lacking += lacks_mark(point, memory_pool_slot(&receiving), iterations - 1 - i);
        sample_operation();
    }
    double seconds = sample_since(start);
    payload_require_marks(lacking, (size_t)size);
    check_and_spoil(point, memory_pool_slot(&receiving), point->right_world);
    return seconds;
}

static double sendrecv(struct point *point, long iterations)
{
    MPI_Comm comm = point->comm;
    int size = point->size;
    long lacking = 0;
    sample_barrier(comm);
    struct sample_instant start = sample_now();
    for (long i = 0; i < iterations; i++) {
        struct payload_mark mark = mark_next(point, iterations - 1 - i);
        MPI_Sendrecv(memory_pool_slot(&sending), size, MPI_BYTE, point->right, TAG,
                     memory_pool_next(&receiving), size, MPI_BYTE, point->left, TAG, comm,
                     MPI_STATUS_IGNORE);
        payload_unmark(mark);
        lacking += lacks_mark(point, memory_pool_slot(&receiving), iterations - 1 - i);
        sample_operation();
    }
    double seconds = sample_since(start);
    payload_require_marks(lacking, (size_t)size);
    check_and_spoil(point, memory_pool_slot(&receiving), point->left_world);
    return seconds;
}

static double exchange(struct point *point, long iterations)
{
    MPI_Comm comm = point->comm;
    int size = point->size;
    char *from_left = NULL, *from_right = NULL;
    long lacking = 0;
    sample_barrier(comm);
    struct sample_instant start = sample_now();
    for (long i = 0; i < iterations; i++) {
        MPI_Request requests[2];
        struct payload_mark mark = mark_next(point, iterations - 1 - i);
        char *message = memory_pool_slot(&sending);
        MPI_Isend(message, size, MPI_BYTE, point->right, TAG, comm, &requests[0]);
        MPI_Isend(message, size, MPI_BYTE, point->left, TAG, comm, &requests[1]);
        from_left = memory_pool_next(&receiving);
        from_right = memory_pool_next(&receiving);
        MPI_Recv(from_left, size, MPI_BYTE, point->left, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Recv(from_right, size, MPI_BYTE, point->right, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        payload_unmark(mark);
        lacking += lacks_mark(point, from_left, iterations - 1 - i) +
                   lacks_mark(point, from_right, iterations - 1 - i);
        sample_operation();
    }
    double seconds = sample_since(start);
    payload_require_marks(lacking, (size_t)size);
    check_and_spoil(point, from_left, point->left_world);
    check_and_spoil(point, from_right, point->right_world);
    return seconds;
}

static double bidirectional(struct point *point, long iterations)
{
    MPI_Comm comm = point->comm;
    int size = point->size, other = point->right, window = point->window;
    char *slots[MOST_IN_WINDOW];
    long lacking = 0;
    sample_barrier(comm);
    struct sample_instant start = sample_now();
    for (long i = 0; i < iterations; i++) {
        MPI_Request requests[2 * MOST_IN_WINDOW];
        for (int w = 0; w < window; w++) {
            slots[w] = memory_pool_next(&receiving);
            MPI_Irecv(slots[w], size, MPI_BYTE, other, TAG, comm, &requests[w]);
        }
        struct payload_mark mark = mark_next(point, iterations - 1 - i); /* of the first message */
        for (int w = 0; w < window; w++)
            MPI_Isend(w ? memory_pool_next(&sending) : memory_pool_slot(&sending), size, MPI_BYTE,
                      other, TAG, comm, &requests[window + w]);
        MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
        payload_unmark(mark);
        lacking += lacks_mark(point, slots[0], iterations - 1 - i);
        sample_operation();
    }
    double seconds = sample_since(start);
    payload_require_marks(lacking, (size_t)size);
    for (int w = 0; w < window; w++)
        check_and_spoil(point, slots[w], point->right_world);
    return seconds / window;
}

static double batch(void *context, long iterations)
{
    static double (*const run[])(struct point *, long) = {
        [PING_PONG] = run_ping_pong, [PING_PING] = ping_ping,         [SENDRECV] = sendrecv,
        [EXCHANGE] = exchange,       [BIDIRECTIONAL] = bidirectional,
    };
    struct point *point = context;
    return run[point->pattern](point, iterations);
}

/* Measuring and reporting ---------------------------------------------------------------------- */

static bool is_chain(enum pattern pattern)
{
    return pattern == SENDRECV || pattern == EXCHANGE;
}

static int window_of(enum pattern pattern, size_t size)
{
    if (pattern != BIDIRECTIONAL)
        return 1;
    size_t fitting = size ? WINDOW_BYTES / size : MOST_IN_WINDOW;
    return fitting < 2 ? 2 : fitting > MOST_IN_WINDOW ? MOST_IN_WINDOW : (int)fitting;
}

/* Slots that a receiver needs at once. */
static size_t receive_slots(enum pattern pattern, size_t size)
{
    return pattern == EXCHANGE ? 2 : (size_t)window_of(pattern, size);
}

static size_t send_bytes(void)
{
    return memory_pool_bytes(largest, 1, cache == CACHE_ON);
}

static size_t receive_bytes(enum pattern pattern)
{
    size_t most = 0;
    for (size_t size = smallest; size <= largest; size = sizes_next(size, largest)) {
        size_t bytes = memory_pool_bytes(size, receive_slots(pattern, size), cache == CACHE_ON);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static bool takes_part(enum pattern pattern)
{
    return chosen_patterns & 1u << pattern && (pair_has_me() || is_chain(pattern));
}

/* Of this rank; 0 if it takes part in nothing. */
static size_t most_received(void)
{
    size_t most = 0;
    for (int pattern = 0; pattern < PATTERNS; pattern++)
        if (takes_part(pattern) && receive_bytes(pattern) > most)
            most = receive_bytes(pattern);
    return most;
}

/* Bytes that pass through a rank for each reported time, in messages. */
static double messages_counted(enum pattern pattern)
{
    static const double counted[] = {
        [PING_PONG] = 1, [PING_PING] = 1, [SENDRECV] = 2, [EXCHANGE] = 4, [BIDIRECTIONAL] = 2,
    };
    return counted[pattern];
}

/* Every slot holds the message that this rank sends, and every receive slot what it must not. */
static void prepare_payload(struct point *point)
{
    size_t size = (size_t)point->size;
    for (size_t at = 0; at < sending.end; at += sending.stride)
        payload_fill(sending.memory + at, size, bench.rank, point->message);
    for (size_t at = 0; at < receiving.end; at += receiving.stride)
        payload_spoil(receiving.memory + at, size, point->left_world, point->message);
}

static void print_head(enum pattern pattern)
{
    printf("\n%s, cache %s\n%10s %12s %12s %12s %8s %12s %8s %10s  %s\n", pattern_names[pattern],
           cache_names[cache], "bytes", "best us", "median us", "p95 us", "+- %", "MB/s", "samples",
           "iterations", "stopped by");
}

static void report(const struct point *point, const struct sample_result *result)
{
    const struct stats *time = &result->time;
    double bandwidth = messages_counted(point->pattern) * point->size / time->best;

    printf("%10d %12.3f %12.3f %12.3f %8.2f %12.2f %8d %10ld  %s\n", point->size, time->best * 1e6,
           time->median * 1e6, time->p95 * 1e6, stats_uncertainty(time) * 100, bandwidth * 1e-6,
           result->samples, result->iterations, result->stopped_by);

    json_object(bench.json, NULL);
    json_string(bench.json, "pattern", pattern_names[point->pattern]);
    json_string(bench.json, "cache", cache_names[cache]);
    json_integer(bench.json, "size", point->size);
    if (point->pattern == BIDIRECTIONAL)
        json_integer(bench.json, "window", point->window);
    json_number(bench.json, "bandwidth", bandwidth);
    sample_json(bench.json, result);
    json_end(bench.json);
}

/* Of all patterns, in the order of their report; free() it. */
static struct point *list_points(int *count)
{
    int sizes = sizes_count(smallest, largest);
    struct point *points = memory_allocate((size_t)(sizes * PATTERNS) * sizeof *points);
    /* To fill a pool that is larger than the caches takes longer than a bout. */
    int bouts = cache == CACHE_ON ? SAMPLE_ROUNDS : 1;
    *count = 0;
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
        if (!(chosen_patterns & 1u << pattern))
            continue;
        for (size_t size = smallest; size <= largest; size = sizes_next(size, largest))
            points[(*count)++] = (struct point){
                .pattern = pattern,
                .size = (int)size,
                .window = window_of(pattern, size),
                .message = (long)size * PATTERNS + pattern,
                .sample = sample_start(sample_plan_for(plan, &focus, size), bouts),
            };
    }
    return points;
}

/* A bout, on the ranks of `comm`. */
static void measure(struct point *point, MPI_Comm comm)
{
    int ranks;
    point->comm = comm;
    MPI_Comm_rank(comm, &point->rank);
    MPI_Comm_size(comm, &ranks);
    point->right = (point->rank + 1) % ranks;
    point->left = (point->rank + ranks - 1) % ranks;
    bool chain = is_chain(point->pattern);
    point->right_world = chain ? point->right : bench.ranks - 1 - bench.rank;
    point->left_world = chain ? point->left : point->right_world;

    size_t size = (size_t)point->size;
    memory_pool_divide(&sending, size, 1);
    memory_pool_divide(&receiving, size, receive_slots(point->pattern, size));
    prepare_payload(point);
    sample_bout(point->sample, comm, batch, point);
}

/* All points in turn, those of a kind by the ranks that take part in them. */
static void measure_round(struct point *points, int count, int round)
{
    for (int i = 0, next = 0; i < count; i = next) {
        bool chain = is_chain(points[i].pattern);
        while (next < count && is_chain(points[next].pattern) == chain)
            next++;
        MPI_Comm comm = chain ? MPI_COMM_WORLD : pair_enter();
        if (comm == MPI_COMM_NULL)
            continue;
        for (int at = i; at < next; at++)
            if (sample_is_due(points[at].sample, round))
                measure(&points[at], comm);
        if (!chain)
            pair_leave(&comm);
    }
}

static void report_all(struct point *points, int count)
{
    json_array(bench.json, "results");
    for (int i = 0; i < count; i++) {
        struct sample_result result = sample_end(points[i].sample);
        if (bench.rank != 0)
            continue;
        if (i == 0 || points[i].pattern != points[i - 1].pattern)
            print_head(points[i].pattern);
        report(&points[i], &result);
    }
    json_end(bench.json);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    sizes_require(smallest, largest, false);
    size_t received = most_received(), sent = received ? send_bytes() : 0;
    memory_require(sent + received, "use a smaller --max or fewer ranks per host");
    sending = memory_pool_make(sent, cache == CACHE_ON);
    receiving = memory_pool_make(received, cache == CACHE_ON);
    int count;
    struct point *points = list_points(&count);

    for (int round = 0; round < SAMPLE_ROUNDS; round++) {
        if (with_limits)
            limits_measure(LIMITS_SECONDS);
        measure_round(points, count, round);
    }
    if (with_limits)
        limits_measure(LIMITS_SECONDS);
    report_all(points, count);
    if (with_limits)
        limits_report();
    free(points);
    memory_pool_free(&sending);
    memory_pool_free(&receiving);
    return bench_end();
}
