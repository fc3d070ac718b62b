/* onesided: put, get, accumulate and fetch-and-op between two ranks, by each way to complete them.
 *
 * Rank 0 (the origin) reads and writes memory of the last rank (the target), of which
 * MPI_Win_create made a window. What is measured stands in the help text below. While rank 0 locks, the target waits in a
 * barrier: many MPIs move the data of such an operation only while the target is in an MPI call.
 *
 * Payload: what was to arrive is checked whole after each batch, outside the time, and spoiled
 * before. An accumulate adds whole numbers to zeros, so that the sums tell how often it was done; a
 * fetch-and-op counts, and has to fetch each number in its turn. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "memory.h"
#include "pair.h"
#include "patience.h"
#include "payload.h"
#include "ping_pong.h"
#include "sample.h"
#include "sizes.h"

static const struct bench_about about = {
    .program = "onesided",
    .purpose = "put, get, accumulate and fetch-and-op between two ranks",
    .text =
        "Time: of one operation of rank 0 on memory of the last rank, until it is complete:\n"
        "  fence   the operation, and MPI_Win_fence on both ranks.\n"
        "  pscw    MPI_Win_start, the operation, MPI_Win_complete; on the other rank MPI_Win_post\n"
        "          and MPI_Win_wait.\n"
        "  lock    MPI_Win_lock (shared), the operation, MPI_Win_unlock.\n"
        "  flush   the operation, and MPI_Win_flush, between MPI_Win_lock_all and\n"
        "          MPI_Win_unlock_all, which are not timed.\n"
        "Bandwidth is the message over it. An accumulate adds doubles. fetch_add adds to a number\n"
        "of 8 bytes; it is measured by lock and flush. ping_pong is half a round trip between the\n"
        "same two ranks by MPI_Send and MPI_Recv.\n",
    .examples = "  mpirun -n 2 onesided\n"
                "  mpirun -n 2 onesided --op put,get --sync flush --max 64K --json onesided.json\n",
    .min_ranks = 2,
};

enum op { PING_PONG, PUT, GET, ACCUMULATE, FETCH_ADD, OPS };
static const char *const op_names[] = {
    "ping_pong", "put", "get", "accumulate", "fetch_add", NULL
};
enum sync { FENCE, PSCW, LOCK, FLUSH, SYNCS };
static const char *const sync_names[] = { "fence", "pscw", "lock", "flush", NULL };

static unsigned chosen_ops = (1u << OPS) - 1, chosen_syncs = (1u << SYNCS) - 1;
static size_t smallest = 8, largest = (size_t)1 << 20;
static long patience = PATIENCE_SECONDS;
static struct sample_plan plan = SAMPLE_DEFAULTS;
static struct option_numbers focus;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "op", .kind = OPTION_CHOICES, .value = &chosen_ops, .argument = "LIST",
      .choices = op_names, .help = "what to measure" },
    { .name = "sync", .kind = OPTION_CHOICES, .value = &chosen_syncs, .argument = "LIST",
      .choices = sync_names, .help = "how operations are completed" },
    SIZES_OPTIONS(smallest, largest, 8, "size, a multiple of 8"),
    PATIENCE_OPTION(patience),
    SAMPLE_OPTIONS(plan),
    SAMPLE_FOCUS_OPTION(focus),
    { .name = NULL },
};
/* clang-format on */

/* One operation at one size. */
struct point {
    enum op op;
    enum sync sync;
    size_t size;
    struct sample *sample;
};

/* The two ranks, in the communicator of the pair. */
enum { ORIGIN, TARGET };

/* What a rank of the pair has for all points. */
struct side {
    MPI_Comm pair;
    int rank, other_world;
    MPI_Win window;
    MPI_Group other;             /* the other rank alone */
    char *exposed;               /* memory of the window */
    struct memory_pool
        local[2]; /* of the operations; the other one for what a ping-pong receives */
    const struct point *point;
    int64_t wrong; /* numbers that were fetched out of their turn */
};

static char *local(const struct side *side)
{
    return memory_pool_slot(&side->local[0]);
}

/* Contents and answers -------------------------------------------------------------------------- */

/* A small whole number, so that sums are exact. */
static double term(size_t element)
{
    return (double)(element % 1021 + 1);
}

static void set_terms(char *buffer, size_t size, double factor)
{
    for (size_t i = 0; i < size / sizeof(double); i++) {
        double value = factor * term(i);
        memcpy(buffer + i * sizeof value, &value, sizeof value);
    }
}

static void check_sums(const char *buffer, size_t size, long times)
{
    for (size_t i = 0; i < size / sizeof(double); i++) {
        double found, expected = (double)times * term(i);
        memcpy(&found, buffer + i * sizeof found, sizeof found);
        if (found != expected)
            bench_abort(EXIT_WRONG_PAYLOAD,
                        "accumulate of %zu bytes gave a wrong sum in element %zu: expected %g, "
                        "found %g",
                        size, i, expected, found);
    }
}

static void check_count(const char *buffer, long times)
{
    int64_t found;
    memcpy(&found, buffer, sizeof found);
    if (found != times)
        bench_abort(EXIT_WRONG_PAYLOAD, "%ld times 1 was added, and the sum is %lld", times,
                    (long long)found);
}

/* Each rank accesses its own memory of the window as it does that of others: between a lock and an
 * unlock, so that the copies that MPI may keep agree. */
static void prepare(const struct side *side)
{
    size_t size = side->point->size;
    long message = (long)size;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, side->rank, 0, side->window);
    switch (side->point->op) {
    case PUT:
        payload_fill(local(side), size, 0, message);
        payload_spoil(side->exposed, size, 0, message);
        break;
    case GET:
        payload_spoil(local(side), size, bench.ranks - 1, message);
        if (side->rank == TARGET)
            payload_fill(side->exposed, size, bench.ranks - 1, message);
        break;
    default:
        set_terms(local(side), size, 1);
        memset(side->exposed, 0, size);
    }
    MPI_Win_unlock(side->rank, side->window);
}

static void check(const struct side *side, long times)
{
    size_t size = side->point->size;
    if (side->rank == ORIGIN) {
        if (side->point->op == GET)
            payload_check(local(side), size, side->other_world, (long)size);
        if (side->wrong)
            bench_abort(EXIT_WRONG_PAYLOAD, "%lld of %ld numbers were fetched out of their turn",
                        (long long)side->wrong, times);
        return;
    }
    MPI_Win_lock(MPI_LOCK_SHARED, side->rank, 0, side->window);
    if (side->point->op == PUT)
        payload_check(side->exposed, size, 0, (long)size);
    else if (side->point->op == ACCUMULATE)
        check_sums(side->exposed, size, times);
    else if (side->point->op == FETCH_ADD)
        check_count(side->exposed, times);
    MPI_Win_unlock(side->rank, side->window);
}

/* The operations ------------------------------------------------------------------------------- */

/* Of the origin: posts the operation. */
static void call(const struct side *side, int64_t *fetched)
{
    static const int64_t one = 1;
    MPI_Win window = side->window;
    int bytes = (int)side->point->size, doubles = bytes / (int)sizeof(double);
    switch (side->point->op) {
    case PUT:
        MPI_Put(local(side), bytes, MPI_BYTE, TARGET, 0, bytes, MPI_BYTE, window);
        break;
    case GET:
        MPI_Get(local(side), bytes, MPI_BYTE, TARGET, 0, bytes, MPI_BYTE, window);
        break;
    case ACCUMULATE:
        MPI_Accumulate(local(side), doubles, MPI_DOUBLE, TARGET, 0, doubles, MPI_DOUBLE, MPI_SUM,
                       window);
        break;
    default:
        MPI_Fetch_and_op(&one, fetched, MPI_INT64_T, TARGET, 0, MPI_SUM, window);
    }
}

static void begin(const struct side *side)
{
    if (side->point->sync == FENCE)
        MPI_Win_fence(MPI_MODE_NOPRECEDE, side->window);
    else if (side->point->sync == FLUSH && side->rank == ORIGIN)
        MPI_Win_lock_all(0, side->window);
    sample_barrier(side->pair);
}

static void end(const struct side *side)
{
    if (side->point->sync == FENCE)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, side->window);
    else if (side->point->sync == FLUSH && side->rank == ORIGIN)
        MPI_Win_unlock_all(side->window);
    MPI_Barrier(side->pair);
}

static void open_epoch(const struct side *side)
{
    if (side->point->sync == PSCW)
        MPI_Win_start(side->other, 0, side->window);
    else if (side->point->sync == LOCK)
        MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, side->window);
}

static void complete(const struct side *side)
{
    switch (side->point->sync) {
    case FENCE:
        MPI_Win_fence(0, side->window);
        break;
    case PSCW:
        MPI_Win_complete(side->window);
        break;
    case LOCK:
        MPI_Win_unlock(TARGET, side->window);
        break;
    default:
        MPI_Win_flush(TARGET, side->window);
    }
}

static double originate(struct side *side, long iterations)
{
    bool fetches = side->point->op == FETCH_ADD;
    struct sample_instant start = sample_now();
    for (long i = 0; i < iterations; i++) {
        int64_t fetched = -1;
        open_epoch(side);
        call(side, &fetched);
        complete(side);
        if (fetches)
            side->wrong += fetched != i;
        sample_operation();
    }
    return sample_since(start);
}

/* Of the target: its part where it has one. */
static void take_part(const struct side *side, long iterations)
{
    for (long i = 0; i < iterations; i++) {
        if (side->point->sync == FENCE) {
            MPI_Win_fence(0, side->window);
        } else if (side->point->sync == PSCW) {
            MPI_Win_post(side->other, 0, side->window);
            MPI_Win_wait(side->window);
        }
    }
}

static double batch(void *context, long iterations)
{
    struct side *side = context;
    double seconds = 0;
    side->wrong = 0;
    prepare(side);
    MPI_Barrier(side->pair);
    begin(side);
    if (side->rank == ORIGIN)
        seconds = originate(side, iterations);
    else
        take_part(side, iterations);
    end(side);
    check(side, iterations);
    return seconds;
}

/* Measured by messages -------------------------------------------------------------------------- */

static double ping_pong_batch(void *context, long iterations)
{
    struct side *side = context;
    size_t size = side->point->size;
    payload_fill(local(side), size, bench.rank, (long)size);
    payload_spoil(memory_pool_slot(&side->local[1]), size, side->other_world, (long)size);
    double seconds = ping_pong(side->pair, (int)size, &side->local[0], &side->local[1], iterations);
    payload_check(memory_pool_slot(&side->local[1]), size, side->other_world, (long)size);
    return seconds;
}

/* Points and their report ---------------------------------------------------------------------- */

static bool is_measured(enum op op, enum sync sync)
{
    if (!(chosen_ops & 1u << op))
        return false;
    if (op == PING_PONG)
        return sync == 0; /* once */
    return (chosen_syncs & 1u << sync) && (op != FETCH_ADD || sync == LOCK || sync == FLUSH);
}

/* In the order of their report; free() it. */
static struct point *list_points(int *count)
{
    int sizes = sizes_count(smallest, largest);
    struct point *points = memory_allocate((size_t)(sizes * OPS * SYNCS) * sizeof *points);
    *count = 0;
    for (int op = 0; op < OPS; op++)
        for (int sync = 0; sync < SYNCS; sync++) {
            if (!is_measured(op, sync))
                continue;
            size_t first = op == FETCH_ADD ? sizeof(int64_t) : smallest;
            size_t last = op == FETCH_ADD ? first : largest;
            for (size_t size = first; size <= last; size = sizes_next(size, last))
                points[(*count)++] = (struct point){
                    .op = op,
                    .sync = sync,
                    .size = size,
                    .sample = sample_start(sample_plan_for(plan, &focus, size), SAMPLE_ROUNDS),
                };
        }
    return points;
}

static const char *sync_of(const struct point *point)
{
    return point->op == PING_PONG ? "messages" : sync_names[point->sync];
}

static void report(const struct point *point)
{
    struct sample_result result = sample_end(point->sample);
    if (bench.rank != 0)
        return;
    double bandwidth = (double)point->size / result.time.best;
    printf("%-11s %-9s %10zu", op_names[point->op], sync_of(point), point->size);
    sample_print(&result, "%12.2f", bandwidth * 1e-6);
    json_object(bench.json, NULL);
    json_string(bench.json, "op", op_names[point->op]);
    json_string(bench.json, "sync", sync_of(point));
    json_integer(bench.json, "size", (long long)point->size);
    json_number(bench.json, "bandwidth", bandwidth);
    sample_json(bench.json, &result);
    json_end(bench.json);
}

static void open_window(struct side *side)
{
    MPI_Group both;
    int other = 1 - side->rank;
    MPI_Comm_group(side->pair, &both);
    MPI_Group_incl(both, 1, &other, &side->other);
    MPI_Group_free(&both);
    side->exposed = memory_allocate(largest);
    MPI_Win_create(side->exposed, (MPI_Aint)largest, 1, MPI_INFO_NULL, side->pair, &side->window);
}

static void measure_all(MPI_Comm pair, const struct point *points, int count)
{
    struct side side = {
        .pair = pair,
        .rank = bench.rank == 0 ? ORIGIN : TARGET,
        .other_world = bench.ranks - 1 - bench.rank,
    };
    for (int i = 0; i < 2; i++) {
        side.local[i] = memory_pool_make(memory_pool_bytes(largest, 1, true), true);
        memory_pool_divide(&side.local[i], largest, 1);
    }
    pair_step((double)patience);
    patience_start((double)patience, "MPI_Win_create");
    open_window(&side);
    for (int round = 0; round < SAMPLE_ROUNDS; round++)
        for (int i = 0; i < count; i++) {
            if (!sample_is_due(points[i].sample, round))
                continue;
            side.point = &points[i];
            pair_step((double)patience + plan.budget);
            patience_start((double)patience + plan.budget, "%s by %s of %zu bytes",
                           op_names[points[i].op], sync_of(&points[i]), points[i].size);
            sample_bout(points[i].sample, pair, points[i].op == PING_PONG ? ping_pong_batch : batch,
                        &side);
        }
    pair_step((double)patience);
    patience_start((double)patience, "MPI_Win_free");
    MPI_Win_free(&side.window);
    patience_end();
    free(side.exposed);
    MPI_Group_free(&side.other);
    for (int i = 0; i < 2; i++)
        memory_pool_free(&side.local[i]);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    sizes_require(smallest, largest, true);
    memory_require(pair_has_me() ? 3 * largest : 0, "use a smaller --max");

    int count;
    struct point *points = list_points(&count);
    if (count == 0)
        bench_refuse("fetch_add is measured by lock and flush alone: give --sync one of them");
    MPI_Comm pair = pair_enter();
    if (pair != MPI_COMM_NULL) {
        measure_all(pair, points, count);
        pair_leave(&pair);
    }
    if (bench.rank == 0)
        printf("\n%-11s %-9s %10s %12s %12s %12s %8s %8s  %s\n", "op", "sync", "bytes", "best us",
               "median us", "MB/s", "+- %", "samples", "stopped by");
    json_array(bench.json, "results");
    for (int i = 0; i < count; i++)
        report(&points[i]);
    json_end(bench.json);
    free(points);
    return bench_end();
}
