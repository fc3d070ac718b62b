/* What the operations of an MPI must not take longer than: other operations that do the same, more
 * bytes, two halves, and what anybody would write with messages (Träff, Gropp, Thakur,
 * Self-consistent MPI performance guidelines, IEEE TPDS 21, 2010).
 *
 * All ways to the same result are really gone, one call each in turn, so that a spell of the machine
 * meets them alike, and the ratio of a turn is of neighbours in time. A barrier precedes each
 * call, and before it each rank writes anew what it will send, as an application does: a buffer
 * that nobody changes stays in the cache of the rank that reads it, and what is only read
 * then looks cheaper than it is. Each call has other values, so an old result is a wrong one.
 *
 * Ranks leave the barrier as much as a message apart. Where none can end before all have begun, the
 * slowest rank is the one that began first, and the time is right. In an operation with a root
 * others may find all there already, and take no time: so another barrier, of messages, is within
 * the time of each way. */
#include "guidelines.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "clock.h"
#include "memory.h"
#include "sample.h"

/* The smallest message is a double, each next one has so many times as much. */
enum { GROWTH = 8 };

/* Of a visit to a point; the least ratio of its turns is what counts. A visit ends when it has taken
 * so long, but has a turn: a slow operation is what is looked for. */
enum { TURNS = 3 };
static const double MOST_SECONDS = 4e-3;

/* Of all visits of a round. It goes to sizes that are far apart first, as most slow algorithms are
 * slow at several; where ranks wait for a core, or the network is slow, others are left out. */
static const double MOST_OF_ROUND = 1;
enum { PASSES = 4 };

/* Timed seconds of a turn: enough calls for the clock. */
static const double TURN_SECONDS = 100e-6;
enum { MOST_ITERATIONS = 64 };

/* Elements of a block, of a whole message where the operation has no blocks. */
typedef void way_function(const double *send, double *receive, int n);

static double *to_send, *to_receive, *scratch;
static MPI_Request *requests;

/* The operations ------------------------------------------------------------------------------- */

enum { ROOT = 0, TAG = 1 };

static MPI_Comm const world = MPI_COMM_WORLD;

static void barrier(const double *send, double *receive, int n)
{
    (void)send, (void)receive, (void)n;
    MPI_Barrier(world);
}

/* MPI_Bcast has one buffer. Nothing is written through it on the root. */
static double *of_bcast(const double *send, double *receive)
{
    return bench.rank == ROOT ? (double *)send : receive;
}

static void bcast(const double *send, double *receive, int n)
{
    MPI_Bcast(of_bcast(send, receive), n, MPI_DOUBLE, ROOT, world);
}

static void reduce(const double *send, double *receive, int n)
{
    MPI_Reduce(send, receive, n, MPI_DOUBLE, MPI_SUM, ROOT, world);
}

static void allreduce(const double *send, double *receive, int n)
{
    MPI_Allreduce(send, receive, n, MPI_DOUBLE, MPI_SUM, world);
}

static void allgather(const double *send, double *receive, int n)
{
    MPI_Allgather(send, n, MPI_DOUBLE, receive, n, MPI_DOUBLE, world);
}

static void alltoall(const double *send, double *receive, int n)
{
    MPI_Alltoall(send, n, MPI_DOUBLE, receive, n, MPI_DOUBLE, world);
}

static void gather(const double *send, double *receive, int n)
{
    MPI_Gather(send, n, MPI_DOUBLE, receive, n, MPI_DOUBLE, ROOT, world);
}

static void scatter(const double *send, double *receive, int n)
{
    MPI_Scatter(send, n, MPI_DOUBLE, receive, n, MPI_DOUBLE, ROOT, world);
}

static void reduce_scatter(const double *send, double *receive, int n)
{
    MPI_Reduce_scatter_block(send, receive, n, MPI_DOUBLE, MPI_SUM, world);
}

/* The same by other operations ----------------------------------------------------------------- */

/* Elements of a rank's part of a message, the last of which may be padded. */
static int part_of(int n)
{
    return (n + bench.ranks - 1) / bench.ranks;
}

static void copy(double *to, const double *from, int n)
{
    memcpy(to, from, (size_t)n * sizeof *to);
}

static void own_block(double *receive, const double *blocks, int n)
{
    copy(receive, blocks + (size_t)bench.rank * (size_t)n, n);
}

static void barrier_by_allreduce(const double *send, double *receive, int n)
{
    (void)n;
    allreduce(send, receive, 1);
}

static void three_barriers(const double *send, double *receive, int n)
{
    for (int i = 0; i < 3; i++)
        barrier(send, receive, n);
}

static void bcast_by_scatter_and_allgather(const double *send, double *receive, int n)
{
    scatter(send, scratch, part_of(n));
    allgather(scratch, receive, part_of(n));
}

static void reduce_by_reduce_scatter_and_gather(const double *send, double *receive, int n)
{
    reduce_scatter(send, scratch, part_of(n));
    gather(scratch, receive, part_of(n));
}

static void allreduce_by_reduce_and_bcast(const double *send, double *receive, int n)
{
    reduce(send, receive, n);
    bcast(receive, receive, n);
}

static void allreduce_by_reduce_scatter_and_allgather(const double *send, double *receive, int n)
{
    reduce_scatter(send, scratch, part_of(n));
    allgather(scratch, receive, part_of(n));
}

static void allgather_by_gather_and_bcast(const double *send, double *receive, int n)
{
    gather(send, receive, n);
    bcast(receive, receive, bench.ranks * n);
}

static void allgather_by_alltoall(const double *send, double *receive, int n)
{
    for (int to = 0; to < bench.ranks; to++)
        copy(scratch + (size_t)to * (size_t)n, send, n);
    alltoall(scratch, receive, n);
}

static void scatter_by_bcast(const double *send, double *receive, int n)
{
    bcast(send, scratch, bench.ranks * n);
    own_block(receive, of_bcast(send, scratch), n);
}

static void reduce_scatter_by_reduce_and_scatter(const double *send, double *receive, int n)
{
    reduce(send, scratch, bench.ranks * n);
    scatter(scratch, receive, n);
}

static void reduce_scatter_by_allreduce(const double *send, double *receive, int n)
{
    allreduce(send, scratch, bench.ranks * n);
    own_block(receive, scratch, n);
}

/* The same by messages: whatever algorithms are in force ---------------------------------------- */

static void add(double *sum, const double *more, int n)
{
    MPI_Reduce_local(more, sum, n, MPI_DOUBLE, MPI_SUM);
}

static void exchange(int other, const double *send, double *receive, int n)
{
    MPI_Sendrecv(send, n, MPI_DOUBLE, other, TAG, receive, n, MPI_DOUBLE, other, TAG, world,
                 MPI_STATUS_IGNORE);
}

/* In each step from one rank, and to another, at twice the distance. */
static void barrier_by_messages(const double *send, double *receive, int n)
{
    (void)send, (void)receive, (void)n;
    for (int far = 1; far < bench.ranks; far *= 2)
        MPI_Sendrecv(NULL, 0, MPI_BYTE, (bench.rank + far) % bench.ranks, TAG, NULL, 0, MPI_BYTE,
                     (bench.rank + bench.ranks - far) % bench.ranks, TAG, world, MPI_STATUS_IGNORE);
}

void guidelines_barrier(void)
{
    barrier_by_messages(NULL, NULL, 0);
}

/* A binomial tree: the lowest bit of a rank is its distance to who sends to it. */
static void bcast_by_messages(const double *send, double *receive, int n)
{
    double *data = of_bcast(send, receive);
    int far = 1;
    for (; far < bench.ranks && !(bench.rank & far); far *= 2)
        ;
    if (bench.rank != ROOT)
        MPI_Recv(data, n, MPI_DOUBLE, bench.rank - far, TAG, world, MPI_STATUS_IGNORE);
    for (far /= 2; far > 0; far /= 2)
        if (bench.rank + far < bench.ranks)
            MPI_Send(data, n, MPI_DOUBLE, bench.rank + far, TAG, world);
}

static void reduce_by_messages(const double *send, double *receive, int n)
{
    const double *sum = send;
    for (int far = 1; far < bench.ranks; far *= 2) {
        if (bench.rank & far) {
            MPI_Send(sum, n, MPI_DOUBLE, bench.rank - far, TAG, world);
            return;
        }
        if (bench.rank + far >= bench.ranks)
            continue;
        MPI_Recv(scratch, n, MPI_DOUBLE, bench.rank + far, TAG, world, MPI_STATUS_IGNORE);
        if (sum == send)
            copy(receive, send, n);
        sum = receive;
        add(receive, scratch, n);
    }
}

/* Ranks above the greatest power of two give theirs to another one, and take the sum from it; all
 * others exchange with partners at twice the distance. */
static void allreduce_by_messages(const double *send, double *receive, int n)
{
    int paired = 1;
    while (2 * paired <= bench.ranks)
        paired *= 2;
    if (bench.rank >= paired) {
        int other = bench.rank - paired;
        MPI_Send(send, n, MPI_DOUBLE, other, TAG, world);
        MPI_Recv(receive, n, MPI_DOUBLE, other, TAG, world, MPI_STATUS_IGNORE);
        return;
    }
    int extra = bench.rank + paired;
    copy(receive, send, n);
    if (extra < bench.ranks) {
        MPI_Recv(scratch, n, MPI_DOUBLE, extra, TAG, world, MPI_STATUS_IGNORE);
        add(receive, scratch, n);
    }
    for (int far = 1; far < paired; far *= 2) {
        exchange(bench.rank ^ far, receive, scratch, n);
        add(receive, scratch, n);
    }
    if (extra < bench.ranks)
        MPI_Send(receive, n, MPI_DOUBLE, extra, TAG, world);
}

/* To all others at once, and from them; blocks of `apart` elements from each other. */
static void with_all(const double *send, size_t apart, double *receive, int n)
{
    int count = 0;
    for (int step = 1; step < bench.ranks; step++) {
        int other = (bench.rank + step) % bench.ranks;
        MPI_Irecv(receive + (size_t)other * (size_t)n, n, MPI_DOUBLE, other, TAG, world,
                  &requests[count++]);
    }
    for (int step = 1; step < bench.ranks; step++) {
        int other = (bench.rank + bench.ranks - step) % bench.ranks;
        MPI_Isend(send + (size_t)other * apart, n, MPI_DOUBLE, other, TAG, world,
                  &requests[count++]);
    }
    size_t own = (size_t)bench.rank;
    copy(receive + own * (size_t)n, send + own * apart, n);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void allgather_by_messages(const double *send, double *receive, int n)
{
    with_all(send, 0, receive, n);
}

static void alltoall_by_messages(const double *send, double *receive, int n)
{
    with_all(send, (size_t)n, receive, n);
}

static void reduce_scatter_by_messages(const double *send, double *receive, int n)
{
    with_all(send, (size_t)n, scratch, n);
    copy(receive, scratch, n);
    for (int other = 1; other < bench.ranks; other++)
        add(receive, scratch + (size_t)other * (size_t)n, n);
}

static void gather_by_messages(const double *send, double *receive, int n)
{
    if (bench.rank != ROOT) {
        MPI_Send(send, n, MPI_DOUBLE, ROOT, TAG, world);
        return;
    }
    for (int other = 1; other < bench.ranks; other++)
        MPI_Irecv(receive + (size_t)other * (size_t)n, n, MPI_DOUBLE, other, TAG, world,
                  &requests[other - 1]);
    copy(receive, send, n);
    MPI_Waitall(bench.ranks - 1, requests, MPI_STATUSES_IGNORE);
}

static void scatter_by_messages(const double *send, double *receive, int n)
{
    if (bench.rank != ROOT) {
        MPI_Recv(receive, n, MPI_DOUBLE, ROOT, TAG, world, MPI_STATUS_IGNORE);
        return;
    }
    for (int other = 1; other < bench.ranks; other++)
        MPI_Isend(send + (size_t)other * (size_t)n, n, MPI_DOUBLE, other, TAG, world,
                  &requests[other - 1]);
    copy(receive, send, n);
    MPI_Waitall(bench.ranks - 1, requests, MPI_STATUSES_IGNORE);
}

/* All of them ----------------------------------------------------------------------------------- */

/* Of a message that is divided into so many others, or is so many times as long. */
struct way {
    const char *words;
    way_function *run;
    int parts, times;
};

#define ITSELF(run) \
    { "itself with twice the bytes", run, 1, 2 }, { "itself twice with half the bytes", run, 2, 1 }
#define BY(words, run) { words, run, 1, 1 }
#define BY_MESSAGES(name) BY("messages that do the same", name##_by_messages)

enum blocks { NONE, ONE, ONE_EACH };

/* clang-format off */
static const struct operation {
    const char *name;
    enum blocks sent, received;
    bool from_root, to_root, sums;
    struct way ways[SAMPLE_MOST_THINGS]; /* the operation, and the others; ends early without words */
} operations[] = {
    { "barrier", NONE, NONE, false, false, false,
      { BY("", barrier), BY_MESSAGES(barrier), BY("allreduce", barrier_by_allreduce) } },
    /* The results of allreduce are checked below: there is none of barriers. */
    { "allreduce", NONE, NONE, false, false, false,
      { BY("", barrier_by_allreduce), BY("three barriers", three_barriers) } },
    { "bcast", ONE, ONE, true, false, false,
      { BY("", bcast), BY_MESSAGES(bcast),
        BY("scatter and allgather", bcast_by_scatter_and_allgather), ITSELF(bcast) } },
    { "reduce", ONE, ONE, false, true, true,
      { BY("", reduce), BY_MESSAGES(reduce), BY("allreduce", allreduce),
        BY("reduce_scatter and gather", reduce_by_reduce_scatter_and_gather), ITSELF(reduce) } },
    { "allreduce", ONE, ONE, false, false, true,
      { BY("", allreduce), BY_MESSAGES(allreduce),
        BY("reduce and bcast", allreduce_by_reduce_and_bcast),
        BY("reduce_scatter and allgather", allreduce_by_reduce_scatter_and_allgather),
        ITSELF(allreduce) } },
    { "allgather", ONE, ONE_EACH, false, false, false,
      { BY("", allgather), BY_MESSAGES(allgather),
        BY("gather and bcast", allgather_by_gather_and_bcast),
        BY("alltoall", allgather_by_alltoall), ITSELF(allgather) } },
    { "alltoall", ONE_EACH, ONE_EACH, false, false, false,
      { BY("", alltoall), BY_MESSAGES(alltoall), ITSELF(alltoall) } },
    { "reduce_scatter", ONE_EACH, ONE, false, false, true,
      { BY("", reduce_scatter), BY_MESSAGES(reduce_scatter),
        BY("reduce and scatter", reduce_scatter_by_reduce_and_scatter),
        BY("allreduce", reduce_scatter_by_allreduce), ITSELF(reduce_scatter) } },
    { "scatter", ONE_EACH, ONE, true, false, false,
      { BY("", scatter), BY_MESSAGES(scatter), BY("bcast", scatter_by_bcast), ITSELF(scatter) } },
    { "gather", ONE, ONE_EACH, false, true, false,
      { BY("", gather), BY_MESSAGES(gather), BY("allgather", allgather), ITSELF(gather) } },
};
/* clang-format on */
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* Contents and answers -------------------------------------------------------------------------- */

/* The number of the call decides what is sent, so that no result is that of a call before. */
static long calls;

/* The first element of a rank's block for another one; each next one is greater by 1. All are whole
 * numbers, so that sums are exact in any order. */
static double first_element(int from, int to)
{
    return 1009.0 * (double)(calls % 1024) + 101.0 * from + 37.0 * to;
}

static int count_of(enum blocks blocks)
{
    return blocks == ONE_EACH ? bench.ranks : (int)blocks;
}

static int blocks_sent(const struct operation *operation)
{
    return operation->from_root && bench.rank != ROOT ? 0 : count_of(operation->sent);
}

/* MPI_Bcast leaves the root's alone. */
static int blocks_received(const struct operation *operation)
{
    bool has_none = operation->to_root ? bench.rank != ROOT
                                       : bench.rank == ROOT && operation->ways[0].run == bcast;
    return has_none ? 0 : count_of(operation->received);
}

static void write_blocks(const struct operation *operation, int n)
{
    for (int to = 0; to < blocks_sent(operation); to++) {
        double *block = to_send + (size_t)to * (size_t)n, first = first_element(bench.rank, to);
        for (int i = 0; i < n; i++)
            block[i] = first + i;
    }
}

/* Each part of a message has the same. */
static void write_parts(const struct operation *operation, const struct way *way, int n)
{
    double *whole = to_send;
    for (int part = 0; part < way->parts; part++) {
        write_blocks(operation, n);
        to_send += blocks_sent(operation) * n;
    }
    to_send = whole;
}

static void check_part(const struct operation *operation, const struct way *way, int n,
                       const double *received)
{
    bool is_addressed = operation->sent == ONE_EACH;
    double ranks = operation->sums ? bench.ranks : 1;
    for (int block = 0; block < blocks_received(operation); block++) {
        int from = operation->received == ONE_EACH ? block : ROOT;
        double first = ranks * first_element(from, is_addressed ? bench.rank : 0);
        if (operation->sums)
            first += 101.0 * ranks * (ranks - 1) / 2;
        for (int i = 0; i < n; i++) {
            double found = received[(size_t)block * (size_t)n + (size_t)i];
            if (found != first + ranks * i)
                bench_abort(EXIT_WRONG_PAYLOAD,
                            "%s of %zu bytes %s%sgave a wrong element %d: expected %g, found %g",
                            operation->name, (size_t)n * sizeof *received, *way->words ? "by " : "",
                            *way->words ? way->words : "", i, first + ranks * i, found);
        }
    }
}

/* Measuring ------------------------------------------------------------------------------------- */

/* A time of an operation over that of another way, in one turn; 0 if there was none. */
struct ratio {
    double value, own, other; /* the times in seconds */
};

/* An operation at a size: of each round the least ratio to each other way; the calls of a turn, 0
 * before the first. */
struct point {
    const struct operation *operation;
    int n;
    int pass; /* of a round, in which it is visited */
    int ways; /* of the operation that there are at this size */
    int iterations;
    struct ratio (*least)[SAMPLE_MOST_THINGS];
    struct sample_clocks clocks;
};

static struct point *points;
static int point_count, round_count;
static size_t most_bytes; /* of a message, of all blocks together */

/* One call of a way; what it sent before, and what came, are not timed. */
static double time_of_call(const struct operation *operation, const struct way *way, int n,
                           struct sample_parts *timed, bool is_checked)
{
    int of_part = n / way->parts * way->times;
    calls++;
    write_parts(operation, way, of_part);
    size_t sent = (size_t)(blocks_sent(operation) * of_part);
    size_t received = (size_t)(count_of(operation->received) * of_part);
    double before = timed->seconds;
    sample_barrier(world);
    struct sample_mark start = sample_mark();
    for (int part = 0; part < way->parts; part++)
        way->run(to_send + (size_t)part * sent, to_receive + (size_t)part * received, of_part);
    if (operation->from_root || operation->to_root)
        guidelines_barrier();
    sample_operation();
    sample_parts_add(timed, start);
    if (is_checked)
        for (int part = 0; part < way->parts; part++)
            check_part(operation, way, of_part, to_receive + (size_t)part * received);
    return timed->seconds - before;
}

/* All ways in turn, each turn beginning with the next one; the slowest rank's seconds of each.
 * Returns, on all ranks alike, the seconds since the visit began. */
static double take_turn(struct point *point, int first, int iterations, double began,
                        double *slowest)
{
    const struct operation *operation = point->operation;
    double own[SAMPLE_MOST_THINGS] = { 0 }, since, whole = 0;
    sample_clocks_start();
    struct sample_parts timed = sample_parts_start();
    for (int i = 0; i < iterations; i++)
        for (int j = 0; j < point->ways; j++) {
            int way = (first + j) % point->ways;
            own[way] += time_of_call(operation, &operation->ways[way], point->n, &timed,
                                     i == iterations - 1);
        }
    double seconds = sample_parts_end(&timed), parts = 0;
    for (int way = 0; way < point->ways; way++)
        parts += own[way];
    if (!(fabs(parts - seconds) <= 1e-9 * seconds))
        bench_abort(EXIT_BROKEN, "the ways of %s took %g s, all of them %g s", operation->name,
                    parts, seconds);
    sample_slowest(world, own, slowest, point->ways);
    since = clock_seconds() - began;
    sample_slowest(world, &since, &since, 1);
    for (int way = 0; way < point->ways; way++)
        whole += slowest[way];
    sample_clocks_add(&point->clocks, (long)point->ways * iterations, seconds, whole);
    return since;
}

static void keep_least(const struct point *point, int round, const double *slowest)
{
    struct ratio *least = point->least[round];
    for (int way = 1; way < point->ways; way++) {
        double ratio = slowest[0] / slowest[way];
        if (least[way].value == 0 || ratio < least[way].value)
            least[way] = (struct ratio){ ratio, slowest[0], slowest[way] };
    }
}

/* Returns the seconds of the visit, on all ranks alike. */
static double visit(struct point *point, int round)
{
    double slowest[SAMPLE_MOST_THINGS], whole = 0, since = 0;
    double began = clock_seconds();
    int turn = 0;
    if (!point->iterations) {
        take_turn(point, 0, 1, began, slowest); /* finds its connections */
        since = take_turn(point, 0, 1, began, slowest);
        for (int way = 0; way < point->ways; way++)
            whole += slowest[way];
        point->iterations = (int)fmax(1, fmin(MOST_ITERATIONS, TURN_SECONDS / whole));
        if (point->iterations == 1) {
            keep_least(point, round, slowest);
            turn++;
        }
    }
    for (; turn == 0 || (turn < TURNS && since < MOST_SECONDS); turn++) {
        since = take_turn(point, (round + turn) % point->ways, point->iterations, began, slowest);
        keep_least(point, round, slowest);
    }
    return since;
}

/* The program ------------------------------------------------------------------------------------ */

/* Twice the largest message, the last part of which may be padded. */
static size_t buffer_bytes(size_t largest)
{
    return 2 * largest + (size_t)bench.ranks * sizeof(double);
}

size_t guidelines_bytes(size_t largest)
{
    return 3 * buffer_bytes(largest);
}

static bool is_visited(const struct operation *operation, size_t n)
{
    for (int i = 0; i < point_count; i++)
        if (points[i].operation == operation && points[i].n == (int)n)
            return true;
    return false;
}

static void add_point(const struct operation *operation, size_t n, int pass)
{
    bool has_blocks = operation->sent == ONE_EACH || operation->received == ONE_EACH;
    size_t blocks = has_blocks ? (size_t)bench.ranks : 1;
    bool has_size = operation->sent != NONE;
    if ((!has_size && n > 1) || n * blocks * sizeof(double) > most_bytes ||
        is_visited(operation, n))
        return;
    int ways = 0;
    while (ways < SAMPLE_MOST_THINGS && operation->ways[ways].words &&
           operation->ways[ways].parts <= (int)n)
        ways++;
    points = realloc(points, (size_t)(point_count + 1) * sizeof *points);
    if (!points)
        bench_abort(EXIT_BROKEN, "no memory for %d points", point_count + 1);
    struct point *point = &points[point_count++];
    *point = (struct point){ .operation = operation, .n = (int)n, .pass = pass, .ways = ways };
    point->least = memory_allocate((size_t)round_count * sizeof *point->least);
}

void guidelines_start(size_t largest, int rounds)
{
    to_send = memory_allocate(buffer_bytes(largest));
    to_receive = memory_allocate(buffer_bytes(largest));
    scratch = memory_allocate(buffer_bytes(largest));
    requests = memory_allocate(2 * (size_t)bench.ranks * sizeof(MPI_Request));
    round_count = rounds;
    most_bytes = largest;
    int pass = 0;
    for (size_t n = 1; n * sizeof(double) <= largest; n *= GROWTH, pass = (pass + 1) % PASSES)
        for (int i = 0; i < OPERATIONS; i++)
            add_point(&operations[i], n, pass);
}

void guidelines_add(const char *name, size_t size)
{
    for (int i = 0; i < OPERATIONS; i++)
        if (operations[i].sent != NONE && strcmp(operations[i].name, name) == 0)
            add_point(&operations[i], size / sizeof(double), PASSES - 1);
}

void guidelines_round(int round)
{
    double spent = 0;
    for (int pass = 0; pass < PASSES; pass++)
        for (int i = 0; i < point_count && spent < MOST_OF_ROUND; i++)
            if (points[i].pass == pass)
                spent += visit(&points[i], round);
}

static void report(const struct point *point, int way)
{
    const char *words = point->operation->ways[way].words;
    size_t bytes = point->operation->sent == NONE ? 0 : (size_t)point->n * sizeof(double);
    double least = point->least[0][way].value;
    for (int round = 1; round < round_count; round++)
        least = fmin(least, point->least[round][way].value);
    if (least > 1)
        printf("%-18s %10zu %8.2f  %s\n", point->operation->name, bytes, least, words);
    json_object(bench.json, NULL);
    json_string(bench.json, "op", point->operation->name);
    json_integer(bench.json, "size", (long long)bytes);
    json_string(bench.json, "other", words);
    json_array(bench.json, "factors");
    for (int round = 0; round < round_count; round++)
        json_number(bench.json, NULL, point->least[round][way].value);
    json_end(bench.json);
    json_array(bench.json, "seconds"); /* of the operation and of the other, for each factor */
    for (int round = 0; round < round_count; round++) {
        json_array(bench.json, NULL);
        json_number(bench.json, NULL, point->least[round][way].own);
        json_number(bench.json, NULL, point->least[round][way].other);
        json_end(bench.json);
    }
    json_end(bench.json);
    json_object(bench.json, "clocks");
    sample_clocks_json(bench.json, &point->clocks);
    json_end(bench.json);
    json_end(bench.json);
}

void guidelines_end(void)
{
    if (bench.rank == 0)
        printf("\nGuidelines: what took longer, in each round, than others that do the same\n"
               "%-18s %10s %8s  %s\n",
               "op", "bytes", "factor", "than");
    json_array(bench.json, "guidelines");
    for (int i = 0; i < point_count; i++) {
        if (bench.rank == 0)
            for (int way = 1; way < points[i].ways; way++)
                report(&points[i], way);
        free(points[i].least);
    }
    json_end(bench.json);
    free(points);
    free(to_send);
    free(to_receive);
    free(scratch);
    free(requests);
}
