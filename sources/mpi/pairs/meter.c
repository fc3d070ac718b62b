#include "meter.h"

#include <math.h>
#include <stdbool.h>

#include "bench.h"
#include "payload.h"
#include "ping_pong.h"
#include "stats.h"

enum {
    TAG = 1,
    BATCHES = 11, /* of a point, fewer if they take longer than its budget */
    FEWEST = 3, /* but these, unless they take ten times as long */
    MOST_LONGER = 12,     /* times that batches are made longer, at most ten times each */
    MOST_IN_WINDOW = 64,  /* as in the OSU and Intel MPI Benchmarks */
    WINDOW_BYTES = 4 << 20,
};

/* Of a sum of so few numbers, far more than it can be. */
static const double ROUNDING = 1e-12;

/* One point, on one rank. */
struct point {
    enum meter_pattern pattern;
    MPI_Comm comm;
    int size; /* an int, as MPI's counts are */
    int window;
    bool first; /* whether this rank sends first */
    int peer;   /* in comm */
    struct {
        int rank; /* in MPI_COMM_WORLD */
        long message;
    } own, other;
    struct memory_pool *send, *receive;
};

/* Buffers -------------------------------------------------------------------------------------- */

int meter_window(enum meter_pattern pattern, size_t size)
{
    if (pattern == PING_PONG)
        return 1;
    size_t fitting = WINDOW_BYTES / size;
    return fitting < 2 ? 2 : fitting > MOST_IN_WINDOW ? MOST_IN_WINDOW : (int)fitting;
}

static size_t send_bytes(size_t large)
{
    return memory_pool_bytes(large, 1, true);
}

static size_t receive_bytes(size_t small, size_t large)
{
    size_t of_small = memory_pool_bytes(small, (size_t)meter_window(EXCHANGE, small), true);
    size_t of_large = memory_pool_bytes(large, (size_t)meter_window(EXCHANGE, large), true);
    return of_small > of_large ? of_small : of_large;
}

size_t meter_bytes(size_t small, size_t large)
{
    return send_bytes(large) + receive_bytes(small, large);
}

struct meter meter_make(size_t small, size_t large, double budget)
{
    return (struct meter){
        .budget = budget,
        .send = memory_pool_make(send_bytes(large), true),
        .receive = memory_pool_make(receive_bytes(small, large), true),
    };
}

void meter_free(struct meter *meter)
{
    memory_pool_free(&meter->send);
    memory_pool_free(&meter->receive);
}

/* Every receive slot holds what it must not. */
static void spoil(struct point *point)
{
    for (size_t at = 0; at < point->receive->end; at += point->receive->stride)
        payload_spoil(point->receive->memory + at, (size_t)point->size, point->other.rank,
                      point->other.message);
}

static void check(struct point *point)
{
    for (size_t at = 0; at < point->receive->end; at += point->receive->stride)
        payload_check(point->receive->memory + at, (size_t)point->size, point->other.rank,
                      point->other.message);
}

/* What is timed -------------------------------------------------------------------------------- */

static void post_window(struct point *point, MPI_Request *requests)
{
    for (int w = 0; w < point->window; w++)
        MPI_Irecv(memory_pool_next(point->receive), point->size, MPI_BYTE, point->peer, TAG,
                  point->comm, &requests[w]);
}

static void send_window(struct point *point, MPI_Request *requests)
{
    for (int w = 0; w < point->window; w++)
        MPI_Isend(memory_pool_slot(point->send), point->size, MPI_BYTE, point->peer, TAG,
                  point->comm, &requests[w]);
}

/* All messages of a window are sent from the same buffer. */
static struct payload_mark mark_window(const struct point *point, long left)
{
    return payload_mark(memory_pool_slot(point->send), (size_t)point->size, left);
}

/* One of them, another each time. */
static long lacks_mark(const struct point *point, long left)
{
    const char *slot = point->receive->memory +
                       (size_t)(left % point->window) * point->receive->stride;
    return payload_lacks_mark(slot, (size_t)point->size, left);
}

static double exchange(struct point *point, long iterations)
{
    MPI_Request requests[2 * MOST_IN_WINDOW];
    long lacking = 0;
    struct sample_instant start = sample_now();
    for (long i = 0; i < iterations; i++) {
        struct payload_mark mark = mark_window(point, iterations - 1 - i);
        post_window(point, requests);
        send_window(point, requests + point->window);
        MPI_Waitall(2 * point->window, requests, MPI_STATUSES_IGNORE);
        payload_unmark(mark);
        lacking += lacks_mark(point, iterations - 1 - i);
        sample_operation();
    }
    double seconds = sample_since(start);
    payload_require_marks(lacking, (size_t)point->size);
    return seconds;
}

static double one_way(struct point *point, long iterations)
{
    MPI_Request requests[MOST_IN_WINDOW];
    long lacking = 0;
    struct sample_instant start = sample_now();
    for (long i = 0; i < iterations; i++) {
        struct payload_mark mark = mark_window(point, point->first ? iterations - 1 - i : 0);
        if (point->first)
            send_window(point, requests);
        else
            post_window(point, requests);
        MPI_Waitall(point->window, requests, MPI_STATUSES_IGNORE);
        payload_unmark(mark);
        if (!point->first)
            lacking += lacks_mark(point, iterations - 1 - i);
        if (point->first)
            MPI_Recv(NULL, 0, MPI_BYTE, point->peer, TAG, point->comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, point->peer, TAG, point->comm);
        sample_operation();
    }
    double seconds = sample_since(start);
    payload_require_marks(lacking, (size_t)point->size);
    return seconds;
}

/* Seconds of the slowest rank, the same on all. */
static double batch(struct point *point, struct sample_clocks *clocks, long iterations)
{
    double own, seconds;
    sample_clocks_start();
    if (point->pattern == PING_PONG) {
        own = ping_pong(point->comm, point->size, point->send, point->receive, iterations);
    } else {
        sample_barrier(point->comm);
        own = point->pattern == EXCHANGE ? exchange(point, iterations) : one_way(point, iterations);
    }
    if (!point->first || point->pattern != ONE_WAY) {
        check(point);
        spoil(point);
    }
    sample_slowest(point->comm, &own, &seconds, 1);
    sample_clocks_add(clocks, iterations, own, seconds);
    return seconds;
}

static struct point prepare(struct meter *meter, enum meter_pattern pattern, MPI_Comm comm,
                            size_t size)
{
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    struct point point = {
        .pattern = pattern,
        .comm = comm,
        .size = (int)size,
        .window = meter_window(pattern, size),
        .first = rank < ranks / 2,
        .peer = (rank + ranks / 2) % ranks,
        .own = { bench.rank, ++meter->message },
        .send = &meter->send,
        .receive = &meter->receive,
    };
    MPI_Sendrecv(&point.own, sizeof point.own, MPI_BYTE, point.peer, TAG, &point.other,
                 sizeof point.other, MPI_BYTE, point.peer, TAG, comm, MPI_STATUS_IGNORE);
    memory_pool_divide(point.send, size, 1);
    memory_pool_divide(point.receive, size, (size_t)point.window);
    payload_fill(memory_pool_slot(point.send), size, bench.rank, point.own.message);
    spoil(&point);
    return point;
}

/* All ranks of the point decide the same, by times that all have. */
struct timing meter_measure(struct meter *meter, enum meter_pattern pattern, MPI_Comm comm,
                            size_t size)
{
    struct point point = prepare(meter, pattern, comm, size);
    struct sample_clocks *clocks = &meter->clocks[pattern];
    double target = meter->budget / BATCHES, used = 0, kept_seconds = 0, values[BATCHES];
    long iterations = 1;
    int kept = 0, longer = 0;

    batch(&point, clocks, iterations); /* which also connects */
    while (kept == 0 ||
           (kept < BATCHES && used < (kept < FEWEST ? 10 * meter->budget : meter->budget))) {
        double seconds = batch(&point, clocks, iterations);
        if (seconds < target / 2 && longer < MOST_LONGER) {
            /* Also later: an interruption may have made the first batches look long enough. */
            longer++;
            iterations = (long)((double)iterations * fmin(target / fmax(seconds, 1e-9), 10)) + 1;
            kept = 0;
            kept_seconds = 0;
            continue;
        }
        used += seconds;
        kept_seconds += seconds;
        values[kept++] = seconds / (double)iterations;
    }
    struct stats stats = stats_of(values, kept);
    double operations = (double)kept * (double)iterations;
    if (!(fabs(stats.mean * operations - kept_seconds) <= ROUNDING * kept_seconds))
        bench_abort(EXIT_BROKEN, "%g operations took %g s, but their times make %g s", operations,
                    kept_seconds, stats.mean * operations);
    return (struct timing){ .best = stats.min, .median = stats.median };
}

void meter_write_timing(const struct timing *timing)
{
    json_object(bench.json, "time");
    json_number(bench.json, "best", timing->best);
    json_number(bench.json, "median", timing->median);
    json_end(bench.json);
}

void meter_write_clocks(const struct meter *meter)
{
    static const char *const names[] = { "ping-pong", "exchange", "one way" };
    enum { DOUBLES = PATTERNS * sizeof(struct sample_clocks) / sizeof(double) };
    struct sample_clocks all[PATTERNS];
    MPI_Reduce(meter->clocks, all, DOUBLES, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    json_object(bench.json, "clocks");
    for (int pattern = 0; bench.rank == 0 && pattern < PATTERNS; pattern++) {
        if (!(all[pattern].most > 0))
            continue;
        json_object(bench.json, names[pattern]);
        sample_clocks_json(bench.json, &all[pattern]);
        json_end(bench.json);
    }
    json_end(bench.json);
}
