/* collectives: time of one call of each collective operation, over message sizes.
 *
 * Operations without a root are called back to back, as the Intel MPI Benchmarks do: no rank can
 * be more than one call ahead. Operations with a root are not: called back to back, a root that
 * only sends runs ahead of the others and the time of a call shrinks to what it costs to post
 * one. So a barrier precedes each of their calls, and only the call is timed. Rank 0 is the root,
 * always: rotating it would mix different trees into one figure.
 *
 * Results are checked after each batch, outside the time, every element against an answer that
 * each rank computes for itself. Buffers for results are spoiled before and after. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "algorithms.h"
#include "bench.h"
#include "clock.h"
#include "guidelines.h"
#include "memory.h"
#include "pair.h"
#include "payload.h"
#include "ping_pong.h"
#include "sample.h"
#include "sizes.h"
#include "window.h"

/* clang-format off */
enum op { BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, ALLTOALL, REDUCE_SCATTER, SCATTER, GATHER,
          USUAL_OPS,
          SCAN = USUAL_OPS, EXSCAN, ALLGATHERV, ALLTOALLV, SCATTERV, GATHERV, NEIGHBOR_ALLGATHER,
          NEIGHBOR_ALLTOALL, COMM_DUP, COMM_SPLIT,
          OPS };
static const char *const op_names[] = {
    "barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall", "reduce_scatter", "scatter",
    "gather", "scan", "exscan", "allgatherv", "alltoallv", "scatterv", "gatherv",
    "neighbor_allgather", "neighbor_alltoall", "comm_dup", "comm_split", NULL };
/* clang-format on */

enum how { BLOCKING, NONBLOCKING, PERSISTENT, HOWS };
static const char *const how_names[] = { "blocking", "nonblocking", "persistent", NULL };

enum start { START_USUAL, START_BARRIER, START_WINDOW, STARTS };
static const char *const start_names[] = { "usual", "barrier", "window", NULL };

static const struct bench_about about = {
    .program = "collectives",
    .purpose = "time of one call of each collective operation, over message sizes",
    .text =
        "Time: the slowest rank's time for a batch of calls over the number of calls. A barrier,\n"
        "which is not timed, precedes each call of an operation with a root (bcast, reduce,\n"
        "scatter, gather; the root is rank 0) and of a scan, which some ranks could leave before\n"
        "others; the others are called back to back. A call is the blocking one, the nonblocking\n"
        "one and its MPI_Wait, or MPI_Start and MPI_Wait of a persistent request, where the MPI\n"
        "has these. Points are measured in turn, in up to 4 bouts each.\n"
        "That is the usual start; --start barrier has a barrier before each call of any operation.\n"
        "--start window has all ranks call at the same moment, by clocks that are held against each\n"
        "other; the time is from that moment on, for ranks that are late as well.\n"
        "Size, in bytes:\n"
        "  bcast, reduce, allreduce, scans       the whole message\n"
        "  allgather, gather                     what each rank contributes\n"
        "  alltoall, neighbors                   what each rank sends to each\n"
        "  scatter, reduce_scatter               what each rank ends up with\n"
        "Reductions sum doubles; reduce_scatter is MPI_Reduce_scatter_block. The barrier has no\n"
        "size and is measured once, as are comm_dup and comm_split (into two halves), each with\n"
        "its MPI_Comm_free and in blocking calls alone. Those with a v have equal blocks. Neighbors are those of a\n"
        "line of all ranks.\n"
        "With --limits, rank 0 and the last rank play ping-pong (pt2pt's) in between.\n"
        "With --guidelines, the usual operations are called in turn with others that do the same,\n"
        "up to the largest size; a factor is the least of all rounds.\n",
    .examples = "  mpirun -n 4 collectives\n"
                "  mpirun -n 64 collectives --op allreduce,alltoall --min 8 --max 64K --limits\n",
    .min_ranks = 2,
};

static unsigned chosen_ops = (1u << USUAL_OPS) - 1, chosen_hows = 1u << BLOCKING;
static unsigned chosen_starts = 1u << START_USUAL;
static size_t smallest = 8, largest = (size_t)1 << 20;
static bool with_limits = false, with_guidelines = false, with_algorithms = false;
static bool until_all_end = false;
static struct sample_plan plan = SAMPLE_DEFAULTS;
static struct option_numbers focus;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "op", .kind = OPTION_CHOICES, .value = &chosen_ops, .argument = "LIST",
      .choices = op_names, .help = "what to measure" },
    { .name = "call", .kind = OPTION_CHOICES, .value = &chosen_hows, .argument = "LIST",
      .choices = how_names, .help = "how to call it" },
    { .name = "start", .kind = OPTION_CHOICES, .value = &chosen_starts, .argument = "LIST",
      .choices = start_names, .help = "how the ranks begin a call" },
    SIZES_OPTIONS(smallest, largest, 8, "size, a multiple of 8"),
    SAMPLE_OPTIONS(plan),
    SAMPLE_FOCUS_OPTION(focus),
    { .name = "limits", .kind = OPTION_FLAG, .value = &with_limits,
      .help = "measure the ping-pong between rank 0 and the last rank in the same job: its "
              "latency at 8 bytes and its bandwidth at the largest size" },
    { .name = "guidelines", .kind = OPTION_FLAG, .value = &with_guidelines,
      .help = "measure whether operations take longer than others that do the same" },
    { .name = "algorithms", .kind = OPTION_FLAG, .value = &with_algorithms,
      .help = "write the MPI's control variables of algorithms into the JSON report" },
    { .name = "until-all-end", .kind = OPTION_FLAG, .value = &until_all_end,
      .help = "time operations with a root, and scans, with a barrier of messages behind each: "
              "without one, ranks that enter late find all there and take no time" },
    { .name = NULL },
};
/* clang-format on */

/* One operation at one size. */
struct point {
    enum op op;
    enum how how;
    enum start start;
    size_t size;
    long message;
    char *send, *receive;
    MPI_Request persistent;
    struct sample *sample;
    long calls, late; /* of a window: all, and those that this rank was late for */
};

/* Of operations with a v, in bytes: of the block of each rank. */
static int *counts, *displacements;

/* Of the blocks that this rank sends. */
static struct payload_mark *marks;

/* All ranks one after the other, each with its one or two neighbours. */
static MPI_Comm line = MPI_COMM_NULL;

/* What the operations are ---------------------------------------------------------------------- */

/* Whether a rank may leave it without having waited for any other. */
static bool runs_ahead(enum op op)
{
    return op == BCAST || op == REDUCE || op == SCATTER || op == GATHER || op == SCATTERV ||
           op == GATHERV || op == SCAN || op == EXSCAN;
}

static bool is_reduction(enum op op)
{
    return op == REDUCE || op == ALLREDUCE || op == REDUCE_SCATTER || op == SCAN || op == EXSCAN;
}

static bool makes_communicator(enum op op)
{
    return op == COMM_DUP || op == COMM_SPLIT;
}

static bool has_size(enum op op)
{
    return op != BARRIER && !makes_communicator(op);
}

static bool is_of_neighbours(enum op op)
{
    return op == NEIGHBOR_ALLGATHER || op == NEIGHBOR_ALLTOALL;
}

/* Blocks of `size` bytes in this rank's two buffers. MPI_Bcast has one buffer: the root's counts
 * as its send buffer and the others' as their receive buffers. */
static int blocks_sent(enum op op)
{
    if (!has_size(op))
        return 0;
    switch (op) {
    case BCAST:
        return bench.rank == 0 ? 1 : 0;
    case SCATTER:
    case SCATTERV:
        return bench.rank == 0 ? bench.ranks : 0;
    case ALLTOALL:
    case ALLTOALLV:
    case REDUCE_SCATTER:
        return bench.ranks;
    case NEIGHBOR_ALLTOALL:
        return 2;
    default:
        return 1;
    }
}

static int blocks_received(enum op op)
{
    if (!has_size(op))
        return 0;
    switch (op) {
    case BCAST:
        return bench.rank == 0 ? 0 : 1;
    case REDUCE:
        return bench.rank == 0 ? 1 : 0;
    case EXSCAN:
        return bench.rank == 0 ? 0 : 1;
    case GATHER:
    case GATHERV:
        return bench.rank == 0 ? bench.ranks : 0;
    case ALLGATHER:
    case ALLGATHERV:
    case ALLTOALL:
    case ALLTOALLV:
        return bench.ranks;
    case NEIGHBOR_ALLGATHER:
    case NEIGHBOR_ALLTOALL:
        return 2;
    default:
        return 1;
    }
}

#ifdef ASSAY_HAS_PERSISTENT_COLLECTIVES
static const bool has_persistent = true;
#define PREPARE(name, ...) MPI_##name##_init(__VA_ARGS__)
#else
static const bool has_persistent = false;
#define PREPARE(name, ...) \
    bench_abort(EXIT_BROKEN, "this MPI has no MPI_" #name "_init") /* list_points leaves it out */
#endif

/* The blocking call; or the nonblocking one; or what makes a persistent request. */
#define POST(name, small_name, ...)                             \
    do {                                                        \
        if (point->how == BLOCKING)                             \
            MPI_##name(__VA_ARGS__);                            \
        else if (point->how == NONBLOCKING)                     \
            MPI_I##small_name(__VA_ARGS__, request);            \
        else                                                    \
            PREPARE(name, __VA_ARGS__, MPI_INFO_NULL, request); \
    } while (0)

/* The even ranks, and the odd ones; in the other order if it is split. */
static void make_communicator(enum op op)
{
    MPI_Comm made;
    int rank, ranks;
    bool splits = op == COMM_SPLIT;
    if (splits)
        MPI_Comm_split(MPI_COMM_WORLD, bench.rank % 2, -bench.rank, &made);
    else
        MPI_Comm_dup(MPI_COMM_WORLD, &made);
    MPI_Comm_rank(made, &rank);
    MPI_Comm_size(made, &ranks);
    MPI_Comm_free(&made);
    int of_half = bench.ranks / 2 + (bench.rank % 2 == 0 ? bench.ranks % 2 : 0);
    int expected = splits ? of_half - 1 - bench.rank / 2 : bench.rank;
    if (rank != expected || ranks != (splits ? of_half : bench.ranks))
        bench_abort(EXIT_WRONG_PAYLOAD, "%s made this rank %d of %d, and not rank %d of %d",
                    op_names[op], rank, ranks, expected, splits ? of_half : bench.ranks);
}

static void post(const struct point *point, MPI_Request *request)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    char *send = point->send, *receive = point->receive;
    int bytes = (int)point->size, doubles = bytes / (int)sizeof(double);
    switch (point->op) {
    case BARRIER:
        POST(Barrier, barrier, comm);
        break;
    case BCAST:
        POST(Bcast, bcast, bench.rank == 0 ? send : receive, bytes, MPI_BYTE, 0, comm);
        break;
    case REDUCE:
        POST(Reduce, reduce, send, receive, doubles, MPI_DOUBLE, MPI_SUM, 0, comm);
        break;
    case ALLREDUCE:
        POST(Allreduce, allreduce, send, receive, doubles, MPI_DOUBLE, MPI_SUM, comm);
        break;
    case SCAN:
        POST(Scan, scan, send, receive, doubles, MPI_DOUBLE, MPI_SUM, comm);
        break;
    case EXSCAN:
        POST(Exscan, exscan, send, receive, doubles, MPI_DOUBLE, MPI_SUM, comm);
        break;
    case ALLGATHER:
        POST(Allgather, allgather, send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, comm);
        break;
    case ALLGATHERV:
        POST(Allgatherv, allgatherv, send, bytes, MPI_BYTE, receive, counts, displacements,
             MPI_BYTE, comm);
        break;
    case ALLTOALL:
        POST(Alltoall, alltoall, send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, comm);
        break;
    case ALLTOALLV:
        POST(Alltoallv, alltoallv, send, counts, displacements, MPI_BYTE, receive, counts,
             displacements, MPI_BYTE, comm);
        break;
    case REDUCE_SCATTER:
        POST(Reduce_scatter_block, reduce_scatter_block, send, receive, doubles, MPI_DOUBLE,
             MPI_SUM, comm);
        break;
    case SCATTER:
        POST(Scatter, scatter, send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, 0, comm);
        break;
    case SCATTERV:
        POST(Scatterv, scatterv, send, counts, displacements, MPI_BYTE, receive, bytes, MPI_BYTE, 0,
             comm);
        break;
    case GATHER:
        POST(Gather, gather, send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, 0, comm);
        break;
    case GATHERV:
        POST(Gatherv, gatherv, send, bytes, MPI_BYTE, receive, counts, displacements, MPI_BYTE, 0,
             comm);
        break;
    case NEIGHBOR_ALLGATHER:
        POST(Neighbor_allgather, neighbor_allgather, send, bytes, MPI_BYTE, receive, bytes,
             MPI_BYTE, line);
        break;
    case NEIGHBOR_ALLTOALL:
        POST(Neighbor_alltoall, neighbor_alltoall, send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE,
             line);
        break;
    case COMM_DUP:
    case COMM_SPLIT:
        make_communicator(point->op);
        break;
    case OPS:
        break;
    }
}

static void call(struct point *point)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (point->how == PERSISTENT) {
        MPI_Start(&point->persistent);
        MPI_Wait(&point->persistent, MPI_STATUS_IGNORE);
    } else {
        post(point, &request);
        if (point->how == NONBLOCKING)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    sample_operation();
}

/* Contents and answers ------------------------------------------------------------------------- */

/* The payload message number of the block that goes from one rank to another. Blocks that go to
 * everybody have `to` 0. */
static long block_message(const struct point *point, int to)
{
    return point->message * bench.ranks + to;
}

/* The rank before this one, and the one behind; at the ends of the line there is none. */
static int neighbour(int index)
{
    return index == 0 ? bench.rank - 1 : bench.rank + 1;
}

/* What a rank contributes to an element of a sum: a whole number of up to 30 bits, so that sums are
 * exact in any order, and would not be in single precision. */
static double contribution(const struct point *point, size_t element, int rank)
{
    return (double)((element + (size_t)point->message) % 1021) * 1048583 + rank;
}

/* The first so many. */
static int ranks_summed(enum op op)
{
    return op == SCAN ? bench.rank + 1 : op == EXSCAN ? bench.rank : bench.ranks;
}

static double sum_of_contributions(const struct point *point, size_t element)
{
    double ranks = ranks_summed(point->op);
    return ranks * contribution(point, element, 0) + ranks * (ranks - 1) / 2;
}

static void fill(const struct point *point)
{
    size_t blocks = (size_t)blocks_sent(point->op);
    if (is_reduction(point->op)) {
        double *elements = (double *)point->send;
        for (size_t i = 0; i < blocks * point->size / sizeof *elements; i++)
            elements[i] = contribution(point, i, bench.rank);
        return;
    }
    for (int i = 0; i < (int)blocks; i++) {
        int to = point->op == NEIGHBOR_ALLTOALL ? neighbour(i) : i;
        payload_fill(point->send + (size_t)i * point->size, point->size, bench.rank,
                     block_message(point, to));
    }
    for (int i = 0; i < bench.ranks; i++) {
        counts[i] = (int)point->size;
        displacements[i] = i * (int)point->size;
    }
}

/* The block of the receive buffer that came from (or, for one from the root, stands at) `index`:
 * who sent it, and as which message. */
static void expected_block(const struct point *point, int index, int *sender, long *message)
{
    enum op op = point->op;
    bool from_root = op == BCAST || op == SCATTER || op == SCATTERV;
    bool addressed = op == ALLTOALL || op == ALLTOALLV || op == SCATTER || op == SCATTERV ||
                     op == NEIGHBOR_ALLTOALL;
    *sender = from_root ? 0 : is_of_neighbours(op) ? neighbour(index) : index;
    *message = block_message(point, addressed ? bench.rank : 0);
}

static void spoil(const struct point *point)
{
    int blocks = blocks_received(point->op);
    for (int i = 0; i < blocks; i++) {
        char *block = point->receive + (size_t)i * point->size;
        int sender;
        long message;
        expected_block(point, i, &sender, &message);
        if (is_reduction(point->op))
            for (size_t e = 0; e < point->size / sizeof(double); e++)
                ((double *)block)[e] = -1;
        else
            payload_spoil(block, point->size, sender, message);
    }
}

static void check_sums(const struct point *point)
{
    if (blocks_received(point->op) == 0)
        return;
    size_t count = point->size / sizeof(double);
    size_t first = point->op == REDUCE_SCATTER ? count * (size_t)bench.rank : 0;
    const double *found = (const double *)point->receive;
    for (size_t i = 0; i < count; i++) {
        double expected = sum_of_contributions(point, first + i);
        if (found[i] != expected)
            bench_abort(EXIT_WRONG_PAYLOAD,
                        "%s of %zu bytes gave a wrong sum in element %zu: expected %g, found %g",
                        op_names[point->op], point->size, i, expected, found[i]);
    }
}

static void check(const struct point *point)
{
    if (is_reduction(point->op)) {
        check_sums(point);
        return;
    }
    int blocks = blocks_received(point->op);
    for (int i = 0; i < blocks; i++) {
        int sender;
        long message;
        expected_block(point, i, &sender, &message);
        if (sender < 0 || sender >= bench.ranks)
            continue;
        payload_check(point->receive + (size_t)i * point->size, point->size, sender, message);
    }
}

static size_t marked_element(const struct point *point, long left)
{
    return payload_place(point->size / sizeof(double), left);
}

/* Persistent calls have no marks: MPI_Gather_init of Intel MPI 2021.16 gives its root old content. */
static bool has_marks(const struct point *point, long left)
{
    return left > 0 && point->how != PERSISTENT;
}

/* Marks of a call that is not checked whole (payload.h), at the same place of all blocks that this rank
 * sends. In sums one element of each is the number of calls that follow. */
static void mark(const struct point *point, long left)
{
    if (!has_marks(point, left))
        return;
    for (int i = 0; i < blocks_sent(point->op); i++) {
        char *block = point->send + (size_t)i * point->size;
        if (!is_reduction(point->op))
            marks[i] = payload_mark(block, point->size, left);
        else
            ((double *)block)[marked_element(point, left)] = (double)left;
    }
}

static void unmark(const struct point *point, long left)
{
    size_t count = point->size / sizeof(double), element = marked_element(point, left);
    if (!has_marks(point, left))
        return;
    for (int i = 0; i < blocks_sent(point->op); i++)
        if (!is_reduction(point->op))
            payload_unmark(marks[i]);
        else
            ((double *)point->send)[(size_t)i * count + element] =
                contribution(point, (size_t)i * count + element, bench.rank);
}

/* Looks at one of the blocks, another each time. */
static long lacks_mark(const struct point *point, long left)
{
    int blocks = blocks_received(point->op), index = blocks ? (int)(left % blocks) : 0, sender;
    long message;
    if (blocks == 0 || !has_marks(point, left))
        return 0;
    if (is_reduction(point->op))
        return ((const double *)point->receive)[marked_element(point, left)] !=
               (double)left * ranks_summed(point->op);
    expected_block(point, index, &sender, &message);
    return sender >= 0 && sender < bench.ranks &&
           payload_lacks_mark(point->receive + (size_t)index * point->size, point->size, left);
}

/* A barrier moves nothing that could be checked: that nobody leaves it before one rank has come, who
 * comes late. Wherever the others are delayed as well, it takes them no less. */
static void check_barrier(int late)
{
    enum { TAG = 1 };
    static const double PAUSE = 1e-3;
    struct point barrier = { .op = BARRIER };
    double start = clock_seconds();
    if (bench.rank == late) {
        /* By name: MPICH 4.3.2 over UCX's TCP hangs in a receive from MPI_ANY_SOURCE. */
        for (int other = 0; other < bench.ranks; other++)
            if (other != late)
                MPI_Recv(NULL, 0, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        start = clock_seconds();
        while (clock_seconds() - start < PAUSE)
            ;
        call(&barrier);
        return;
    }
    MPI_Send(NULL, 0, MPI_BYTE, late, TAG, MPI_COMM_WORLD);
    call(&barrier);
    /* The clocks of two hosts may run a little apart. */
    if (clock_seconds() - start < 0.9 * PAUSE)
        bench_abort(EXIT_BROKEN, "left the barrier before rank %d had come", late);
}

/* Measuring and reporting ---------------------------------------------------------------------- */

/* All ranks begin a call; the moment from which it is timed. */
static struct sample_mark begin_call(struct point *point)
{
    sample_barrier(MPI_COMM_WORLD);
    if (point->start != START_WINDOW)
        return sample_mark();
    bool is_late;
    double moment = window_wait(&is_late);
    point->calls++;
    point->late += is_late;
    struct sample_mark mark = sample_mark();
    mark.seconds = moment;
    return mark;
}

static double calls_one_by_one(struct point *point, long iterations)
{
    long lacking = 0;
    struct sample_parts calls = sample_parts_start();
    for (long i = 0; i < iterations; i++) {
        mark(point, iterations - 1 - i);
        struct sample_mark start = begin_call(point);
        call(point);
        if (until_all_end)
            guidelines_barrier();
        sample_parts_add(&calls, start);
        unmark(point, iterations - 1 - i);
        lacking += lacks_mark(point, iterations - 1 - i);
    }
    double seconds = sample_parts_end(&calls);
    payload_require_marks(lacking, point->size);
    return seconds;
}

static double calls_back_to_back(struct point *point, long iterations)
{
    sample_barrier(MPI_COMM_WORLD);
    long lacking = 0;
    struct sample_instant start = sample_now();
    for (long i = 0; i < iterations; i++) {
        mark(point, iterations - 1 - i);
        call(point);
        unmark(point, iterations - 1 - i);
        lacking += lacks_mark(point, iterations - 1 - i);
    }
    double seconds = sample_since(start);
    payload_require_marks(lacking, point->size);
    return seconds;
}

static double batch(void *context, long iterations)
{
    struct point *point = context;
    if (point->how == PERSISTENT)
        post(point, &point->persistent);
    bool is_one_by_one = runs_ahead(point->op) || point->start != START_USUAL;
    double seconds = is_one_by_one ? calls_one_by_one(point, iterations)
                                   : calls_back_to_back(point, iterations);
    if (point->how == PERSISTENT)
        MPI_Request_free(&point->persistent);
    check(point);
    spoil(point);
    return seconds;
}

/* Collective: of the rank that was late most often, on rank 0. */
static double late_share(const struct point *point)
{
    double own = point->calls ? (double)point->late / (double)point->calls : 0, most;
    MPI_Reduce(&own, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return most;
}

static void report(const struct point *point, const struct sample_result *result, double late)
{
    const struct stats *time = &result->time;
    printf("%-18s %10zu %12.3f %12.3f %12.3f %8.2f %8d %10ld  %-6s  %s", op_names[point->op],
           point->size, time->best * 1e6, time->median * 1e6, time->p95 * 1e6,
           stats_uncertainty(time) * 100, result->samples, result->iterations, result->stopped_by,
           how_names[point->how]);
    if (point->start != START_USUAL)
        printf(", %s", start_names[point->start]);
    putchar('\n');

    json_object(bench.json, NULL);
    json_string(bench.json, "op", op_names[point->op]);
    json_string(bench.json, "call", how_names[point->how]);
    json_string(bench.json, "start", start_names[point->start]);
    if (point->start == START_WINDOW)
        json_number(bench.json, "late_share", late);
    json_integer(bench.json, "size", (long long)point->size);
    sample_json(bench.json, result);
    json_end(bench.json);
}

/* Of all operations, in the order of their report; free() it. */
static struct point *list_points(int *count)
{
    int sizes = sizes_count(smallest, largest);
    struct point *points = memory_allocate((size_t)(sizes * OPS * HOWS * STARTS) * sizeof *points);
    *count = 0;
    for (int i = 0; i < OPS * HOWS * STARTS; i++) {
        int op = i / STARTS / HOWS, how = i / STARTS % HOWS, start = i % STARTS;
        bool is_chosen = chosen_ops & 1u << op && chosen_hows & 1u << how &&
                         chosen_starts & 1u << start;
        if (!is_chosen || (how == PERSISTENT && !has_persistent) ||
            (how != BLOCKING && makes_communicator(op)))
            continue;
        size_t size = has_size(op) ? smallest : 0, last = has_size(op) ? largest : 0;
        for (; size <= last; size = has_size(op) ? sizes_next(size, last) : 1) {
            points[*count] = (struct point){
                .op = op, .how = how, .start = start, .size = size, .message = *count
            };
            points[(*count)++].sample =
                sample_start(sample_plan_for(plan, &focus, size), SAMPLE_ROUNDS);
        }
    }
    return points;
}

/* Collective: of the operations' own guidelines, sizes between and above those which they have. A message
 * that takes longer than a longer one, or more than four times as long as half of it, is one at which
 * another algorithm may have begun. The first bouts of all tell it. */
static void add_odd_sizes(const struct point *points, int count)
{
    double *best = memory_allocate((size_t)count * sizeof *best);
    if (bench.rank == 0)
        for (int i = 0; i < count; i++)
            best[i] = sample_last_best(points[i].sample);
    MPI_Bcast(best, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        bool is_odd = false;
        for (int j = 0; j < count; j++) {
            bool is_same = points[j].op == points[i].op && points[j].how == points[i].how &&
                           points[j].start == points[i].start;
            bool is_longer = points[j].size > points[i].size;
            bool is_half = 2 * points[j].size == points[i].size;
            if (is_same && ((is_longer && best[i] > best[j]) || (is_half && best[i] > 4 * best[j])))
                is_odd = true;
        }
        if (is_odd && points[i].how == BLOCKING && points[i].start == START_USUAL)
            guidelines_add(op_names[points[i].op], points[i].size);
    }
    free(best);
}

static void measure(struct point *point, char *send, char *receive)
{
    point->send = send;
    point->receive = receive;
    fill(point);
    spoil(point);
    if (point->start == START_WINDOW)
        window_open();
    sample_bout(point->sample, MPI_COMM_WORLD, batch, point);
}

/* Blocks of the largest operation's two buffers. */
static void most_blocks(size_t *sent, size_t *received)
{
    *sent = *received = 0;
    for (int op = 0; op < OPS; op++) {
        if (!(chosen_ops & 1u << op))
            continue;
        if ((size_t)blocks_sent(op) > *sent)
            *sent = (size_t)blocks_sent(op);
        if ((size_t)blocks_received(op) > *received)
            *received = (size_t)blocks_received(op);
    }
}

/* Limits: the ping-pong over the same MPI ------------------------------------------------------ */

struct volley {
    MPI_Comm pair;
    int size, other; /* other: in MPI_COMM_WORLD */
    struct memory_pool send, receive;
};

static double volley_batch(void *context, long iterations)
{
    struct volley *volley = context;
    double seconds =
        ping_pong(volley->pair, volley->size, &volley->send, &volley->receive, iterations);
    char *received = memory_pool_slot(&volley->receive);
    payload_check(received, (size_t)volley->size, volley->other, volley->size);
    payload_spoil(received, (size_t)volley->size, volley->other, volley->size);
    return seconds;
}

/* The ping-pongs that operations are held against. */
enum { PING_PONG_SMALL, PING_PONG_LARGEST, PING_PONGS };

static struct sample *ping_pongs[PING_PONGS];

static size_t ping_pong_size(int which)
{
    return which == PING_PONG_SMALL ? 8 : largest;
}

static void measure_ping_pong(MPI_Comm pair, size_t size, struct sample *sample)
{
    struct volley volley = {
        .pair = pair,
        .size = (int)size,
        .other = bench.ranks - 1 - bench.rank,
        .send = memory_pool_make(memory_pool_bytes(size, 1, true), true),
        .receive = memory_pool_make(memory_pool_bytes(size, 1, true), true),
    };
    memory_pool_divide(&volley.send, size, 1);
    memory_pool_divide(&volley.receive, size, 1);
    payload_fill(memory_pool_slot(&volley.send), size, bench.rank, volley.size);
    payload_spoil(memory_pool_slot(&volley.receive), size, volley.other, volley.size);
    sample_bout(sample, pair, volley_batch, &volley);
    memory_pool_free(&volley.send);
    memory_pool_free(&volley.receive);
}

static void start_limits(void)
{
    for (int which = 0; which < PING_PONGS; which++)
        ping_pongs[which] = sample_start(plan, SAMPLE_ROUNDS);
}

/* Their bouts of a round. */
static void measure_limits(int round)
{
    MPI_Comm pair = pair_enter();
    if (pair == MPI_COMM_NULL)
        return;
    for (int which = 0; which < PING_PONGS; which++)
        if (sample_is_due(ping_pongs[which], round))
            measure_ping_pong(pair, ping_pong_size(which), ping_pongs[which]);
    pair_leave(&pair);
}

static void report_limits(void)
{
    struct sample_result small = sample_end(ping_pongs[PING_PONG_SMALL]);
    struct sample_result longest = sample_end(ping_pongs[PING_PONG_LARGEST]);
    if (bench.rank != 0)
        return;
    double bandwidth = (double)largest / longest.time.best;
    printf("\nLimits: ping-pong between rank 0 and rank %d\n"
           "  %.3f us (8 B), %.2f MB/s (%zu B)\n",
           bench.ranks - 1, small.time.best * 1e6, bandwidth * 1e-6, largest);
    json_object(bench.json, "limits");
    json_object(bench.json, "ping_pong");
    json_number(bench.json, "latency", small.time.best);
    json_integer(bench.json, "size", (long long)largest);
    json_number(bench.json, "bandwidth", bandwidth);
    json_object(bench.json, "small");
    sample_json(bench.json, &small);
    json_end(bench.json);
    json_object(bench.json, "largest");
    sample_json(bench.json, &longest);
    json_end(bench.json);
    json_end(bench.json);
    json_end(bench.json);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    memory_keep_freed();
    sizes_require(smallest, largest, true);
    unsigned with_v = 1u << ALLGATHERV | 1u << ALLTOALLV | 1u << SCATTERV | 1u << GATHERV;
    if (chosen_ops & with_v && largest * (size_t)bench.ranks > INT_MAX)
        bench_refuse("--max %zu is too large for a v between %d ranks: their blocks have more than "
                     "2 GiB",
                     largest, bench.ranks);
    size_t sent, received;
    most_blocks(&sent, &received);
    size_t more = with_guidelines ? guidelines_bytes(largest) : 0;
    memory_require((sent + received) * largest + more,
                   "use a smaller --max or fewer ranks per host");
    char *send = memory_allocate(sent * largest), *receive = memory_allocate(received * largest);
    counts = memory_allocate((size_t)bench.ranks * sizeof *counts);
    displacements = memory_allocate((size_t)bench.ranks * sizeof *displacements);
    marks =
        memory_allocate((size_t)(bench.ranks + 2) * sizeof *marks); /* a line has two neighbours */
    if (chosen_ops & (1u << NEIGHBOR_ALLGATHER | 1u << NEIGHBOR_ALLTOALL))
        MPI_Cart_create(MPI_COMM_WORLD, 1, &bench.ranks, &(int){ 0 }, 0, &line);
    int count;
    struct point *points = list_points(&count);
    if (count == 0)
        bench_refuse("none of the operations of --op is called as --call says by this MPI");
    if (with_limits)
        start_limits();
    if (with_guidelines)
        guidelines_start(largest, SAMPLE_ROUNDS);
    if (chosen_ops & 1u << BARRIER) {
        check_barrier(0);
        check_barrier(bench.ranks - 1);
    }

    if (bench.rank == 0)
        printf("\n%-18s %10s %12s %12s %12s %8s %8s %10s  %-6s  %s\n", "op", "bytes", "best us",
               "median us", "p95 us", "+- %", "samples", "iterations", "stop", "call");
    for (int round = 0; round < SAMPLE_ROUNDS; round++) {
        if (with_limits)
            measure_limits(round);
        for (int i = 0; i < count; i++)
            if (sample_is_due(points[i].sample, round))
                measure(&points[i], send, receive);
        if (with_guidelines && round == 0)
            add_odd_sizes(points, count);
        if (with_guidelines)
            guidelines_round(round);
    }
    json_array(bench.json, "results");
    for (int i = 0; i < count; i++) {
        struct sample_result result = sample_end(points[i].sample);
        double late = late_share(&points[i]);
        if (bench.rank == 0)
            report(&points[i], &result, late);
    }
    json_end(bench.json);
    if (chosen_starts & 1u << START_WINDOW)
        json_number(bench.json, "clock_error", window_error());
    window_close();
    if (with_limits)
        report_limits();
    if (with_guidelines)
        guidelines_end();
    if (with_algorithms)
        algorithms_json(bench.json);
    if (line != MPI_COMM_NULL)
        MPI_Comm_free(&line);
    free(points);
    free(send);
    free(receive);
    free(counts);
    free(displacements);
    free(marks);
    return bench_end();
}
