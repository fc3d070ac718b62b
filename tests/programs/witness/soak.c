/* Random correct MPI programs, which count what they do.
 *
 *   soak FIRST PROGRAMS OPERATIONS
 *
 * The programs are FIRST, FIRST + 2 and so on. Program n is a sequence of operations that all ranks
 * derive from the seed n: point to point in all modes, collectives, topologies, intercommunicators,
 * one-sided, threads, errors that are returned. Every element that arrives is checked. Each rank's
 * output is a line of each program, with a checksum; what it called, and sent to whom, is in
 * soak-<rank>.json in the working directory. Even programs are run under MPI_THREAD_MULTIPLE, odd
 * ones without threads.
 *
 * Ranks agree about everything that is drawn for an operation: each draws all of it, of all ranks.
 * Whoever is not in the operation's communicator draws nothing, and goes on with the next one. */
#define _GNU_SOURCE 1

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* GCC takes MPI_STATUSES_IGNORE and MPI_UNWEIGHTED for arrays that are too small. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif

/* Also without the witness: in MPICH 4.0 on UCX an assertion fails in receives of matched probes, and
 * its MPI_Neighbor_alltoallw sends wrong counts (pmodels/mpich#6233). */
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40100000
#define OLD_MPICH true
#else
#define OLD_MPICH false
#endif
/* In MPICH up to 5.0.2 (later ones were not tried) the receiving group of MPI_Ibcast takes the root's
 * rank, of the other group, for the one of its own that has the data. */
#ifdef MPICH_NUMVERSION
#define IBCAST_BETWEEN_GROUPS_FAILS true
#else
#define IBCAST_BETWEEN_GROUPS_FAILS false
#endif
#if MPI_VERSION >= 4
#define LARGE(large, small) large
#else
#define LARGE(large, small) small
#endif

enum {
    MOST_CALLS = 160,
    MOST_RANKS = 32,
    BINS = 32,
    SLOTS = 7,           /* communicators at a time; the first two are MPI's own */
    MOST_MESSAGES = 12,  /* of an exchange */
    MOST_REQUESTS = 64,
    TAGS = 16,           /* of an operation */
    ATTACHED = 1 << 20,
    INT = sizeof(int),
};

/* Counts, of each thread. */

enum kind { MESSAGES, ONE_SIDED, NEIGHBOURS, COLLECTIVES, KINDS };
static const char *const kinds[KINDS] = { "", "one_sided", "neighbours", "collectives" };

struct counts {
    struct {
        const char *name;
        long long count, bytes;
    } calls[MOST_CALLS];
    struct {
        long long messages, bytes, sizes[BINS];
    } partners[KINDS][MOST_RANKS];
    uint64_t sum; /* of what arrived, in any order */
};

static struct counts all;
static _Thread_local struct counts *counts = &all;
static int world_rank, world_size, provided;

/* The operation that a failure tells of. */
static int seed_now, operation_now;

static void fail(const char *what)
{
    fprintf(stderr, "rank %d: program %d, operation %d: wrong: %s\n", world_rank, seed_now,
            operation_now, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void check(bool right, const char *what)
{
    if (!right)
        fail(what);
}

/* Calls of a name, and the bytes that the witness's documentation gives them. */
static void called_times(const char *name, long long count, long long bytes)
{
    int i = 0;
    while (i < MOST_CALLS && counts->calls[i].name && strcmp(counts->calls[i].name, name) != 0)
        i++;
    check(i < MOST_CALLS, "too many names");
    counts->calls[i].name = name;
    counts->calls[i].count += count;
    counts->calls[i].bytes += bytes;
}

static void called(const char *name, long long bytes)
{
    called_times(name, 1, bytes);
}

static void sent_of(enum kind kind, int world, long long bytes)
{
    int bin = 0;
    while (bytes >> bin)
        bin++;
    counts->partners[kind][world].messages++;
    counts->partners[kind][world].bytes += bytes;
    counts->partners[kind][world].sizes[bin]++;
}

static void sent_to(int world, long long bytes)
{
    sent_of(MESSAGES, world, bytes);
}

#define CALL(name, bytes, ...) (called("MPI_" #name, bytes), MPI_##name(__VA_ARGS__))
/* In the form with MPI_Count, where the MPI has it. */
#define EITHER(large, name, bytes, ...) \
    (called("MPI_" #name, bytes),       \
     (large) ? LARGE(MPI_##name##_c, MPI_##name)(__VA_ARGS__) : MPI_##name(__VA_ARGS__))

/* Draws */

struct dice {
    uint64_t state;
};

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t key_of(uint64_t a, int b, int c)
{
    return mix(mix(a ^ (uint32_t)b) + (uint32_t)c);
}

static int roll(struct dice *dice, int sides)
{
    return (int)(mix(dice->state++) % (unsigned)sides);
}

static int value_of(uint64_t key, int i)
{
    return (int)(key_of(key, i, 77) & 0xffff);
}

/* Between calls that are repeated until they succeed. */
static void pause_shortly(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
}

/* Communicators */

struct communicator {
    MPI_Comm handle; /* MPI_COMM_NULL: this rank is not in it */
    bool inter;
    int rank, size, side, others; /* side: 0 or 1; others: size of the group that messages go to */
    int world[MOST_RANKS]; /* the other group's ranks */
    int outs, ins, out[MOST_RANKS], in[MOST_RANKS]; /* neighbours */
    int topology;
};

static struct communicator slots[SLOTS];

static void find_neighbours(struct communicator *of)
{
    int weights[MOST_RANKS], weighted;
    MPI_Topo_test(of->handle, &of->topology);
    of->outs = of->ins = 0;
    if (of->topology == MPI_CART) {
        int dimensions;
        MPI_Cartdim_get(of->handle, &dimensions);
        for (int d = 0; d < dimensions; d++)
            MPI_Cart_shift(of->handle, d, 1, &of->out[2 * d], &of->out[2 * d + 1]);
        of->outs = 2 * dimensions;
    } else if (of->topology == MPI_GRAPH) {
        MPI_Graph_neighbors_count(of->handle, of->rank, &of->outs);
        MPI_Graph_neighbors(of->handle, of->rank, MOST_RANKS, of->out);
    } else if (of->topology == MPI_DIST_GRAPH) {
        MPI_Dist_graph_neighbors_count(of->handle, &of->ins, &of->outs, &weighted);
        MPI_Dist_graph_neighbors(of->handle, of->ins, of->in, weights, of->outs, of->out, weights);
        return;
    }
    of->ins = of->outs;
    memcpy(of->in, of->out, sizeof of->in);
}

static void describe(struct communicator *made, MPI_Comm handle)
{
    int inter, all_ranks[MOST_RANKS], own_first, zero = 0;
    MPI_Group own, group, world;
    *made = (struct communicator){ .handle = handle, .topology = MPI_UNDEFINED };
    if (handle == MPI_COMM_NULL)
        return;
    MPI_Comm_test_inter(handle, &inter);
    MPI_Comm_rank(handle, &made->rank);
    MPI_Comm_size(handle, &made->size);
    MPI_Comm_group(handle, &own);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    made->inter = inter;
    made->others = made->size;
    group = own;
    if (inter) {
        MPI_Comm_remote_size(handle, &made->others);
        MPI_Comm_remote_group(handle, &group);
    }
    for (int i = 0; i < made->others; i++)
        all_ranks[i] = i;
    MPI_Group_translate_ranks(group, made->others, all_ranks, world, made->world);
    MPI_Group_translate_ranks(own, 1, &zero, world, &own_first);
    made->side = inter && made->world[0] < own_first;
    if (inter)
        MPI_Group_free(&group);
    else
        find_neighbours(made);
    MPI_Group_free(&own);
    MPI_Group_free(&world);
}

static int size_of(const struct communicator *in, int side)
{
    return side == in->side ? in->size : in->others;
}

/* Datatypes: where their ints are */

enum { MOST_INTS = 8 };

struct layout {
    MPI_Datatype type;
    bool own; /* to be freed */
    int ints, extent, at[MOST_INTS];
};

static struct layout plain(void)
{
    return (struct layout){ .type = MPI_INT, .ints = 1, .extent = 1 };
}

/* Every block is `length` ints, and they begin `stride` apart. */
static void place(struct layout *made, int blocks, int length, int stride)
{
    for (int i = 0; i < blocks * length; i++)
        made->at[i] = i / length * stride + i % length;
    made->ints = blocks * length;
    made->extent = (blocks - 1) * stride + length;
}

static struct layout draw_layout(struct dice *dice)
{
    struct layout made = plain();
    int kind = roll(dice, 9), a = 1 + roll(dice, 3), b = 1 + roll(dice, 2), gap = roll(dice, 3);
    int lengths[2] = { a, b }, starts[2] = { 1, 1 + a + gap };
    MPI_Aint shifts[2] = { INT * starts[0], INT * starts[1] };
    MPI_Datatype types[2] = { MPI_INT, MPI_INT }, inner;
    made.own = kind > 1;
    switch (kind) {
    case 2:
        MPI_Type_contiguous(a, MPI_INT, &made.type);
        place(&made, 1, a, a);
        break;
    case 3:
        MPI_Type_vector(a, b, b + gap, MPI_INT, &made.type);
        place(&made, a, b, b + gap);
        break;
    case 4:
        MPI_Type_dup(MPI_INT, &made.type);
        break;
    case 5:
        MPI_Type_create_resized(MPI_INT, 0, INT * (1 + gap), &made.type);
        made.extent = 1 + gap;
        break;
    case 6:
        MPI_Type_contiguous(0, MPI_INT, &made.type);
        made.ints = made.extent = 0;
        break;
    case 7: /* it begins behind its address, and is resized so as to begin there */
    case 8:
        if (kind == 7)
            MPI_Type_create_struct(2, lengths, shifts, types, &inner);
        else
            MPI_Type_indexed(2, lengths, starts, MPI_INT, &inner);
        made.extent = starts[1] + b;
        MPI_Type_create_resized(inner, 0, INT * made.extent, &made.type);
        MPI_Type_free(&inner);
        made.ints = a + b;
        for (int i = 0; i < made.ints; i++)
            made.at[i] = i < a ? starts[0] + i : starts[1] + i - a;
        break;
    default:
        return made;
    }
    MPI_Type_commit(&made.type);
    return made;
}

static void drop(struct layout *layout)
{
    if (layout->own)
        MPI_Type_free(&layout->type);
    layout->own = false;
}

static int *room(const struct layout *layout, int count)
{
    int *buffer = calloc((size_t)(layout->extent * count) + 1, INT);
    check(buffer, "no memory");
    return buffer;
}

static int *place_of(int *buffer, const struct layout *layout, int i)
{
    return &buffer[i / layout->ints * layout->extent + layout->at[i % layout->ints]];
}

/* The ints of so many elements, from the `first`. */
static void fill(int *buffer, const struct layout *layout, int count, uint64_t key)
{
    for (int i = 0; i < count * layout->ints; i++)
        *place_of(buffer, layout, i) = value_of(key, i);
}

static void expect(int *buffer, const struct layout *layout, int count, uint64_t key,
                   const char *what)
{
    for (int i = 0; i < count * layout->ints; i++) {
        check(*place_of(buffer, layout, i) == value_of(key, i), what);
        counts->sum += mix((uint64_t)value_of(key, i));
    }
}

/* Completion */

/* What of requests may be waited for: all calls that do it. */
static void complete(struct dice *dice, int count, MPI_Request requests[])
{
    int way = roll(dice, 10), index, done = 0, indices[MOST_REQUESTS];
    MPI_Status own[MOST_REQUESTS], *statuses = roll(dice, 2) ? own : MPI_STATUSES_IGNORE;
    MPI_Status *status = statuses == own ? own : MPI_STATUS_IGNORE;
    check(count <= MOST_REQUESTS, "too many requests");
    switch (way) {
    case 0:
    case 1:
        CALL(Waitall, 0, count, requests, statuses);
        break;
    case 2:
        for (int i = count; i-- > 0;)
            CALL(Wait, 0, &requests[i], status);
        break;
    case 3:
        do
            CALL(Waitany, 0, count, requests, &index, status);
        while (index != MPI_UNDEFINED);
        break;
    case 4:
        do
            CALL(Waitsome, 0, count, requests, &done, indices, statuses);
        while (done != MPI_UNDEFINED);
        break;
    case 5:
        for (int i = 0; i < count; i++)
            while (CALL(Test, 0, &requests[i], &done, status), !done)
                pause_shortly();
        break;
    case 6:
        while (CALL(Testall, 0, count, requests, &done, statuses), !done)
            pause_shortly();
        break;
    case 7:
        while (CALL(Testany, 0, count, requests, &index, &done, status),
               !done || index != MPI_UNDEFINED)
            pause_shortly();
        break;
    case 8:
        while (CALL(Testsome, 0, count, requests, &done, indices, statuses), done != MPI_UNDEFINED)
            pause_shortly();
        break;
    default: /* a look before, and the same request twice */
        for (int i = 0; i < count; i++) {
            CALL(Request_get_status, 0, requests[i], &done, MPI_STATUS_IGNORE);
            CALL(Wait, 0, &requests[i], status);
            CALL(Wait, 0, &requests[i], MPI_STATUS_IGNORE);
        }
    }
}

/* Point to point */

enum { PLAIN, BUFFERED, SYNCHRONOUS, READY };
enum { BLOCKING, NONBLOCKING, PERSISTENT, LET_GO };
enum {
    POSTED,
    POSTED_ANY,
    POSTED_PERSISTENT,
    POSTED_WAYS,
    DIRECT = POSTED_WAYS,
    DIRECT_ANY,
    PROBED,
    POLLED,
    MATCHED,
    MATCHED_POLLED,
    WAYS
};

struct message {
    int side, from, to; /* ranks in the group of that side, and in the one they send to */
    int tag, count, more, mode, form, way;
    bool large, retyped;
    struct layout layout;
    uint64_t key;
    bool mine_to_send, mine_to_receive;
    int *buffer, *arrived;
    bool received;
};

/* Requests of an operation, and what is to be freed behind it. */
struct pending {
    MPI_Request requests[MOST_REQUESTS];
    int count;
    MPI_Request persistent[MOST_REQUESTS];
    int persistent_count;
};

static struct message draw_message(struct dice *dice, const struct communicator *in, int tag)
{
    static const int sizes[] = { 0, 0, 1, 1, 2, 3, 5, 8, 40, 300, 3000, 20000 };
    struct message drawn = { .side = in->inter ? roll(dice, 2) : 0, .tag = tag };
    int nobody = roll(dice, 16), threads = counts != &all;
    drawn.from = roll(dice, size_of(in, drawn.side));
    drawn.to = roll(dice, size_of(in, in->inter ? !drawn.side : 0));
    drawn.count = sizes[roll(dice, threads ? 9 : 12)];
    drawn.more = roll(dice, 3);
    drawn.mode = roll(dice, 4);
    drawn.form = roll(dice, 4);
    drawn.way = roll(dice, OLD_MPICH ? MATCHED : WAYS);
    drawn.large = roll(dice, 2);
    drawn.retyped = roll(dice, 2);
    drawn.key = mix(dice->state);
    drawn.layout = draw_layout(dice);
    bool to_itself = !in->inter && drawn.from == drawn.to;
    if (drawn.mode == READY || (to_itself && drawn.form == BLOCKING))
        drawn.way %= POSTED_WAYS;
    drawn.mine_to_send = drawn.side == in->side && drawn.from == in->rank;
    drawn.mine_to_receive = (in->inter ? drawn.side != in->side : true) && drawn.to == in->rank;
    /* One side of it is left out. */
    if (nobody == 0) {
        drawn.to = MPI_PROC_NULL;
        drawn.mine_to_receive = false;
        drawn.count = drawn.count < 9 ? drawn.count : 9;
    } else if (nobody == 1) {
        drawn.from = MPI_PROC_NULL;
        drawn.mine_to_send = false;
    }
    return drawn;
}

static int bytes_of(const struct message *message)
{
    return INT * message->count * message->layout.ints;
}

/* A receive of ints, or of what was sent and some room. */
static struct layout layout_to_receive(const struct message *message, int *count)
{
    struct layout layout = message->layout;
    *count = message->count + message->more;
    if (message->retyped) {
        *count = message->count * layout.ints + message->more;
        layout = plain();
    }
    return layout;
}

static void note_sent(const struct message *message, const struct communicator *in)
{
    if (message->to != MPI_PROC_NULL)
        sent_to(in->world[message->to], bytes_of(message));
}

#define ARGUMENTS message->buffer, message->count, type, message->to, message->tag, in->handle

static void send(struct message *message, const struct communicator *in, struct pending *pending)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype type = message->layout.type;
    long long bytes = message->to == MPI_PROC_NULL ? 0 : bytes_of(message);
    bool large = message->large;
    message->buffer = room(&message->layout, message->count);
    fill(message->buffer, &message->layout, message->count, message->key);
    note_sent(message, in);
    switch (4 * (message->form == LET_GO ? NONBLOCKING : message->form) + message->mode) {
    case 4 * BLOCKING + PLAIN:
        EITHER(large, Send, bytes, ARGUMENTS);
        return;
    case 4 * BLOCKING + BUFFERED:
        EITHER(large, Bsend, bytes, ARGUMENTS);
        return;
    case 4 * BLOCKING + SYNCHRONOUS:
        EITHER(large, Ssend, bytes, ARGUMENTS);
        return;
    case 4 * BLOCKING + READY:
        EITHER(large, Rsend, bytes, ARGUMENTS);
        return;
    case 4 * NONBLOCKING + PLAIN:
        EITHER(large, Isend, bytes, ARGUMENTS, &request);
        break;
    case 4 * NONBLOCKING + BUFFERED:
        EITHER(large, Ibsend, bytes, ARGUMENTS, &request);
        break;
    case 4 * NONBLOCKING + SYNCHRONOUS:
        EITHER(large, Issend, bytes, ARGUMENTS, &request);
        break;
    case 4 * NONBLOCKING + READY:
        EITHER(large, Irsend, bytes, ARGUMENTS, &request);
        break;
    case 4 * PERSISTENT + PLAIN:
        MPI_Send_init(ARGUMENTS, &request);
        break;
    case 4 * PERSISTENT + BUFFERED:
        MPI_Bsend_init(ARGUMENTS, &request);
        break;
    case 4 * PERSISTENT + SYNCHRONOUS:
        MPI_Ssend_init(ARGUMENTS, &request);
        break;
    case 4 * PERSISTENT + READY:
        MPI_Rsend_init(ARGUMENTS, &request);
        break;
    }
    if (message->form == PERSISTENT) {
        CALL(Start, bytes, &request);
        pending->persistent[pending->persistent_count++] = request;
    }
    if (message->form == LET_GO)
        MPI_Request_free(&request);
    else
        pending->requests[pending->count++] = request;
}

static void post(struct message *message, const struct communicator *in, struct pending *pending)
{
    int count,
        source = message->way == POSTED_ANY && message->from >= 0 ? MPI_ANY_SOURCE : message->from;
    struct layout layout = layout_to_receive(message, &count);
    long long bytes = source == MPI_PROC_NULL ? 0 : (long long)INT * count * layout.ints;
    MPI_Request request;
    message->arrived = room(&layout, count);
    if (message->way == POSTED_PERSISTENT) {
        MPI_Recv_init(message->arrived, count, layout.type, source, message->tag, in->handle,
                      &request);
        CALL(Start, 0, &request);
        pending->persistent[pending->persistent_count++] = request;
    } else {
        EITHER(message->large, Irecv, bytes, message->arrived, count, layout.type, source,
               message->tag, in->handle, &request);
    }
    pending->requests[pending->count++] = request;
}

static void check_status(const struct message *message, const MPI_Status *status)
{
    int ints;
    MPI_Get_elements(status, MPI_INT, &ints);
    check(status->MPI_SOURCE == message->from, "source");
    check(message->from == MPI_PROC_NULL ? status->MPI_TAG == MPI_ANY_TAG
                                         : status->MPI_TAG == message->tag,
          "tag");
    check(ints == (message->from == MPI_PROC_NULL ? 0 : message->count * message->layout.ints),
          "count");
}

static void receive(struct message *message, const struct communicator *in, struct dice *dice)
{
    int count, flag = 0, source = message->from, way = message->way;
    bool ignored = roll(dice, 2);
    struct layout layout = layout_to_receive(message, &count);
    long long bytes = source == MPI_PROC_NULL ? 0 : (long long)INT * count * layout.ints;
    MPI_Comm comm = in->handle;
    MPI_Status own, *status = ignored ? MPI_STATUS_IGNORE : &own;
    MPI_Message found;
    MPI_Request request;
    message->arrived = room(&layout, count);
    if (way == MATCHED || way == MATCHED_POLLED) {
        if (way == MATCHED)
            CALL(Mprobe, 0, source, message->tag, comm, &found, status);
        while (way == MATCHED_POLLED &&
               (CALL(Improbe, 0, source, message->tag, comm, &flag, &found, status), !flag))
            pause_shortly();
        if (message->retyped) {
            EITHER(message->large, Mrecv, bytes, message->arrived, count, layout.type, &found,
                   status);
        } else {
            EITHER(message->large, Imrecv, bytes, message->arrived, count, layout.type, &found,
                   &request);
            CALL(Wait, 0, &request, status);
        }
    } else {
        if (way == PROBED)
            CALL(Probe, 0, source, message->tag, comm, status);
        while (way == POLLED && (CALL(Iprobe, 0, source, message->tag, comm, &flag, status), !flag))
            pause_shortly();
        if (way == DIRECT_ANY && source >= 0)
            source = MPI_ANY_SOURCE;
        EITHER(message->large, Recv, bytes, message->arrived, count, layout.type, source,
               message->tag, comm, status);
    }
    if (!ignored)
        check_status(message, &own);
}

static void finish(struct message *message)
{
    int count;
    struct layout layout = layout_to_receive(message, &count);
    if (message->mine_to_receive && message->from != MPI_PROC_NULL) {
        if (message->retyped)
            expect(message->arrived, &layout, message->count * message->layout.ints, message->key,
                   "a message of ints");
        else
            expect(message->arrived, &layout, message->count, message->key, "a message");
    }
    free(message->arrived);
}

/* Buffers of sends that nobody waits for: kept until the program's end, as all else has arrived. */
static void *kept[4096];
static int kept_count;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep(void *buffer)
{
    pthread_mutex_lock(&kept_lock);
    check(kept_count < (int)(sizeof kept / sizeof *kept), "too much to be kept");
    kept[kept_count++] = buffer;
    pthread_mutex_unlock(&kept_lock);
}

/* Messages between random ranks, each with a tag of its own. Those whose receive is not posted before
 * are sent and received in one order by all, so that none waits for a later one. */
static void exchange(const struct communicator *in, struct dice *dice, int tag)
{
    struct message messages[MOST_MESSAGES];
    struct pending pending = { .count = 0 };
    int count = 1 + roll(dice, MOST_MESSAGES);
    bool ready = false;
    for (int i = 0; i < count; i++) {
        messages[i] = draw_message(dice, in, tag + i);
        ready |= messages[i].mode == READY;
    }
    for (int i = 0; i < count; i++)
        if (messages[i].mine_to_receive && messages[i].way < POSTED_WAYS)
            post(&messages[i], in, &pending);
    if (ready)
        CALL(Barrier, 0, in->handle);
    for (int i = 0; i < count; i++) {
        if (messages[i].mine_to_send)
            send(&messages[i], in, &pending);
        if (messages[i].mine_to_receive && messages[i].way >= POSTED_WAYS)
            receive(&messages[i], in, dice);
    }
    /* Datatypes may go before what uses them is complete. */
    for (int i = 0; i < count; i++)
        drop(&messages[i].layout);
    complete(dice, pending.count, pending.requests);
    for (int i = 0; i < pending.persistent_count; i++)
        MPI_Request_free(&pending.persistent[i]);
    for (int i = 0; i < count; i++) {
        finish(&messages[i]);
        if (messages[i].form == LET_GO && messages[i].buffer)
            keep(messages[i].buffer);
        else
            free(messages[i].buffer);
    }
}

static void expect_of_any(int *words, const MPI_Status *status, uint64_t key, int tag)
{
    struct layout layout = plain();
    int number = status->MPI_TAG - tag;
    expect(words, &layout, 1 + number % 4, key_of(key, status->MPI_SOURCE, number), "of any");
}

/* Whoever comes: sources and tags are open. */
static void gather_any(const struct communicator *in, struct dice *dice, int tag)
{
    int root = roll(dice, in->size), each = 1 + roll(dice, 6), way = roll(dice, 4);
    uint64_t key = mix(dice->state);
    int total = each * (in->size - 1), words[4];
    struct layout layout = plain();
    MPI_Request requests[MOST_REQUESTS];
    int arrived[MOST_REQUESTS][4];
    if (in->rank != root) {
        for (int i = 0; i < each; i++) {
            fill(words, &layout, 1 + i % 4, key_of(key, in->rank, i));
            CALL(Send, INT * (1 + i % 4), words, 1 + i % 4, MPI_INT, root, tag + i, in->handle);
            sent_to(in->world[root], INT * (1 + i % 4));
        }
    } else if (way == 0 && total <= MOST_REQUESTS) {
        MPI_Status statuses[MOST_REQUESTS];
        for (int i = 0; i < total; i++)
            CALL(Irecv, INT * 4, arrived[i], 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, in->handle,
                 &requests[i]);
        CALL(Waitall, 0, total, requests, statuses);
        for (int i = 0; i < total; i++)
            expect_of_any(arrived[i], &statuses[i], key, tag);
    } else {
        for (int i = 0; i < total; i++) {
            MPI_Status status;
            MPI_Message found;
            if (way == 1 || (way == 2 && OLD_MPICH)) {
                CALL(Probe, 0, MPI_ANY_SOURCE, MPI_ANY_TAG, in->handle, &status);
                CALL(Recv, INT * 4, words, 4, MPI_INT, status.MPI_SOURCE, status.MPI_TAG,
                     in->handle, &status);
            } else if (way == 2) {
                CALL(Mprobe, 0, MPI_ANY_SOURCE, MPI_ANY_TAG, in->handle, &found, &status);
                CALL(Mrecv, INT * 4, words, 4, MPI_INT, &found, &status);
            } else {
                CALL(Recv, INT * 4, words, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, in->handle,
                     &status);
            }
            expect_of_any(words, &status, key, tag);
        }
    }
    /* Or messages of the next operation would be taken. */
    CALL(Barrier, 0, in->handle);
}

/* One tag, in order. */
static void stream(const struct communicator *in, struct dice *dice, int tag)
{
    int from = roll(dice, in->size), to = roll(dice, in->size), count = 1 + roll(dice, 60);
    bool posted = roll(dice, 2), open_tag = roll(dice, 2);
    struct layout layout = plain();
    MPI_Request requests[MOST_REQUESTS];
    int words[MOST_REQUESTS];
    uint64_t key = mix(dice->state);
    if (from == to)
        return;
    for (int i = 0; in->rank == from && i < count; i++) {
        fill(words, &layout, 1, key_of(key, i, 0));
        CALL(Send, INT, words, 1, MPI_INT, to, tag, in->handle);
        sent_to(in->world[to], INT);
    }
    if (in->rank != to)
        return;
    for (int i = 0; i < count; i++)
        if (posted)
            CALL(Irecv, INT, &words[i], 1, MPI_INT, from, tag, in->handle, &requests[i]);
        else
            CALL(Recv, INT, &words[i], 1, MPI_INT, from, open_tag ? MPI_ANY_TAG : tag, in->handle,
                 MPI_STATUS_IGNORE);
    if (posted)
        complete(dice, count, requests);
    for (int i = 0; i < count; i++)
        expect(&words[i], &layout, 1, key_of(key, i, 0), "a stream");
}

/* To the one so far up, from the one so far down; the ends of a line have nobody. */
static void shift(const struct communicator *in, struct dice *dice, int tag)
{
    struct layout layout = draw_layout(dice);
    int by = roll(dice, in->size), count = roll(dice, 20), replaced = roll(dice, 2);
    bool ring = roll(dice, 2), ignored = roll(dice, 2), large = roll(dice, 2);
    int to = in->rank + by, from = in->rank - by;
    int *out = room(&layout, count), *arrived = room(&layout, count);
    long long bytes = (long long)INT * count * layout.ints;
    uint64_t key = mix(dice->state);
    MPI_Status own, *status = ignored ? MPI_STATUS_IGNORE : &own;
    if (ring) {
        to %= in->size;
        from = (from + in->size) % in->size;
    }
    to = to < in->size ? to : MPI_PROC_NULL;
    from = from >= 0 ? from : MPI_PROC_NULL;
    fill(out, &layout, count, key_of(key, in->rank, 0));
    if (to != MPI_PROC_NULL)
        sent_to(in->world[to], bytes);
    else
        bytes = 0;
    if (replaced) {
        EITHER(large, Sendrecv_replace, bytes, out, count, layout.type, to, tag, from, tag,
               in->handle, status);
        free(arrived);
        arrived = out;
    } else {
        EITHER(large, Sendrecv, bytes, out, count, layout.type, to, tag, arrived, count,
               layout.type, from, MPI_ANY_TAG, in->handle, status);
        free(out);
    }
    if (from != MPI_PROC_NULL)
        expect(arrived, &layout, count, key_of(key, from, 0), "a shift");
    if (!ignored)
        check(own.MPI_SOURCE == from, "the source of a shift");
    free(arrived);
    drop(&layout);
}

/* Persistent requests, started several times. */
static void repeat(const struct communicator *in, struct dice *dice, int tag)
{
    struct layout layout = draw_layout(dice);
    int count = roll(dice, 10), times = 1 + roll(dice, 4), together = roll(dice, 2);
    int to = (in->rank + 1) % in->size, from = (in->rank + in->size - 1) % in->size;
    int *out = room(&layout, count), *arrived = room(&layout, count);
    long long bytes = (long long)INT * count * layout.ints;
    uint64_t key = mix(dice->state);
    MPI_Request requests[2];
    LARGE(MPI_Recv_init_c, MPI_Recv_init)
    (arrived, count, layout.type, from, tag, in->handle, &requests[0]);
    LARGE(MPI_Send_init_c, MPI_Send_init)
    (out, count, layout.type, to, tag, in->handle, &requests[1]);
    for (int i = 0; i < times; i++) {
        fill(out, &layout, count, key_of(key, in->rank, i));
        sent_to(in->world[to], bytes);
        if (together) {
            CALL(Startall, bytes, 2, requests);
        } else {
            CALL(Start, 0, &requests[0]);
            CALL(Start, bytes, &requests[1]);
        }
        complete(dice, 2, requests);
        expect(arrived, &layout, count, key_of(key, from, i), "a persistent request");
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    drop(&layout);
    free(out);
    free(arrived);
}

/* A receive that nothing comes for, between others. */
static void cancel(const struct communicator *in, struct dice *dice, int tag)
{
    int word, cancelled, source = roll(dice, 2) ? MPI_ANY_SOURCE : roll(dice, in->size);
    MPI_Request request;
    MPI_Status status;
    CALL(Irecv, INT, &word, 1, MPI_INT, source, tag + TAGS - 1, in->handle, &request);
    MPI_Cancel(&request);
    CALL(Wait, 0, &request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    check(cancelled, "not cancelled");
    shift(in, dice, tag);
}

/* Calls that fail, and whose program goes on. */
static void err(const struct communicator *in, struct dice *dice, int tag)
{
    /* Open MPI tells nobody of a message to oneself that is too long, and waits for ever for several
     * requests of which one failed; MPICH asks the handler of MPI_COMM_WORLD. */
    int ways = in->size == 1 ? 4 : in->handle == MPI_COMM_WORLD ? 6 : 5;
    int way = roll(dice, ways), other = (in->rank + 1) % in->size;
    int words[4] = { 0 }, out[4] = { 0 }, code = MPI_SUCCESS;
    static const char *const errors[] = { "no error: rank", "no error: count", "no error: root",
                                          "no error: datatype" };
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_set_errhandler(in->handle, MPI_ERRORS_RETURN);
    switch (way) {
    case 0:
        code = CALL(Send, 0, words, 1, MPI_INT, in->size + 3, tag, in->handle);
        break;
    case 1:
        code = CALL(Irecv, 0, words, -1, MPI_INT, 0, tag, in->handle, &request);
        break;
    case 2:
        code = CALL(Bcast, 0, words, 1, MPI_INT, in->size + 1, in->handle);
        break;
    case 3:
        code = CALL(Isend, 0, words, 1, MPI_DATATYPE_NULL, other, tag, in->handle, &request);
        break;
    case 4: /* what arrives is too long */
        CALL(Isend, 3 * INT, out, 3, MPI_INT, other, tag, in->handle, &request);
        sent_to(in->world[other], 3 * INT);
        code = CALL(Recv, 0, words, 1, MPI_INT, MPI_ANY_SOURCE, tag, in->handle, MPI_STATUS_IGNORE);
        CALL(Wait, 0, &request, MPI_STATUS_IGNORE);
        break;
    default:
        CALL(Irecv, INT, words, 1, MPI_INT, MPI_ANY_SOURCE, tag, in->handle, &request);
        CALL(Send, 3 * INT, out, 3, MPI_INT, other, tag, in->handle);
        sent_to(in->world[other], 3 * INT);
        code = CALL(Wait, 0, &request, MPI_STATUS_IGNORE);
    }
    /* MPICH cuts some that are too long without a word. */
    check(way >= 4 || code != MPI_SUCCESS, errors[way]);
    if (way == 4 && code == MPI_SUCCESS)
        called_times("MPI_Recv", 0, INT);
    MPI_Comm_set_errhandler(in->handle, MPI_ERRORS_ARE_FATAL);
}

/* Collectives */

/* Blocks of a collective's buffers, which lie one behind the other in random order of lengths. */
struct blocks {
    int counts[MOST_RANKS], shifts[MOST_RANKS], total;
    int bytes[MOST_RANKS]; /* shifts, of the calls that want bytes */
    MPI_Datatype types[MOST_RANKS];
};

/* `count_of` each partner; a block of nothing has the null datatype, if `null`. */
static struct blocks lay_out(const struct layout *layout, int count, const int counts_of[],
                             MPI_Datatype null)
{
    struct blocks blocks = { .total = 0 };
    for (int i = 0; i < count; i++) {
        blocks.counts[i] = counts_of[i];
        blocks.shifts[i] = blocks.total;
        blocks.bytes[i] = INT * blocks.total * layout->extent;
        blocks.total += counts_of[i];
        blocks.types[i] = counts_of[i] ? layout->type : null;
    }
    return blocks;
}

static int *block_of(int *buffer, const struct layout *layout, const struct blocks *blocks, int i)
{
    return &buffer[blocks->shifts[i] * layout->extent];
}

/* The blocking form, or the nonblocking one and its completion. */
#define BOTH(name, nonblocking, bytes, ...)                  \
    do {                                                     \
        if (later) {                                         \
            CALL(nonblocking, bytes, __VA_ARGS__, &request); \
            complete(dice, 1, &request);                     \
        } else {                                             \
            CALL(name, bytes, __VA_ARGS__);                  \
        }                                                    \
    } while (0)
/* Or either with MPI_Count. */
#define ALL_FOUR(name, nonblocking, bytes, ...)                       \
    do {                                                              \
        if (later) {                                                  \
            EITHER(large, nonblocking, bytes, __VA_ARGS__, &request); \
            complete(dice, 1, &request);                              \
        } else {                                                      \
            EITHER(large, name, bytes, __VA_ARGS__);                  \
        }                                                             \
    } while (0)

/* Elements from a rank to another one. */
static int count_between(uint64_t key, int side, int from, int to, bool symmetric)
{
    if (symmetric && from > to)
        return count_between(key, side, to, from, symmetric);
    int drawn = (int)(key_of(key_of(key, side, from), to, 5) % 6);
    return drawn < 2 ? 0 : drawn - 1;
}

static uint64_t data_key(uint64_t key, int side, int from, int to)
{
    return key_of(key_of(key, side, from), to, 6);
}

enum { NO_TARGET = 99 };

/* What a collective sends to one rank of a communicator; barriers and empty blocks send nothing. */
static void collected(const struct communicator *in, int rank, long long bytes)
{
    if (bytes > 0 && (in->inter || rank != in->rank))
        sent_of(COLLECTIVES, in->world[rank], bytes);
}

static void collected_by_all(const struct communicator *in, long long bytes)
{
    for (int i = 0; i < in->others; i++)
        collected(in, i, bytes);
}

/* Between groups, blocks of different sizes count as their mean, rounded up. */
static void collected_blocks(const struct communicator *in, const int counts_of[], long long size)
{
    long long bytes = 0;
    for (int i = 0; i < in->others; i++)
        bytes += size * counts_of[i];
    for (int i = 0; i < in->others; i++)
        collected(in, i, in->inter ? (bytes + in->others - 1) / in->others : size * counts_of[i]);
}

/* With a root: data goes from it, or to it. */
static void rooted(const struct communicator *in, struct dice *dice)
{
    struct layout layout = draw_layout(dice);
    struct layout one = plain();
    int kind = roll(dice, 6), side = in->inter ? roll(dice, 2) : 0;
    int root_rank = roll(dice, size_of(in, side)), count = roll(dice, 3) ? roll(dice, 200) : 0;
    bool later = roll(dice, 2), large = roll(dice, 2), in_place = roll(dice, 2) && !in->inter;
    uint64_t key = mix(dice->state);
    later = later && !(IBCAST_BETWEEN_GROUPS_FAILS && in->inter && kind == 0);
    MPI_Request request;
    bool at_root_side = side == in->side, root = at_root_side && in->rank == root_rank;
    bool idle = in->inter && at_root_side && !root, leaf = !root && !idle;
    int root_argument = !in->inter || !at_root_side ? root_rank : root ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Comm comm = in->handle;
    /* In an intercommunicator the leaves are the other group, seen from the root. */
    int leaves = in->others, leaf_side = in->inter ? !side : 0;
    long long size = (long long)INT * count * layout.ints;
    bool alone = !in->inter && in->size == 1;
    int counts_of[MOST_RANKS];
    bool various = kind == 2 || kind == 4; /* Gatherv, Scatterv */
    for (int i = 0; i < leaves; i++)
        counts_of[i] = various ? count_between(key, leaf_side, i, NO_TARGET, false) : count;
    struct blocks blocks = lay_out(&layout, root ? leaves : 0, counts_of, layout.type);
    int mine = various ? count_between(key, in->side, in->rank, NO_TARGET, false) : count;
    if (idle)
        mine = 0;
    long long own = (long long)INT * mine * layout.ints;
    int *all_blocks = room(&layout, blocks.total), *block = room(&layout, mine);
    /* What has no meaning at a rank is no datatype and no counts. */
    MPI_Datatype at_root = root ? layout.type : MPI_DATATYPE_NULL;
    MPI_Datatype own_type = idle || (root && in->inter) ? MPI_DATATYPE_NULL : layout.type;
    int *counts_at_root = root ? blocks.counts : NULL, *shifts = root ? blocks.shifts : NULL;
    void *own_data = root && in_place ? MPI_IN_PLACE : block;
    bool receives = kind == 3 || kind == 4, gathers = kind == 1 || kind == 2;
    if (gathers) {
        fill(block, &layout, mine, data_key(key, in->side, in->rank, NO_TARGET));
        if (root && in_place)
            fill(block_of(all_blocks, &layout, &blocks, in->rank), &layout, mine,
                 data_key(key, in->side, in->rank, NO_TARGET));
    }
    for (int i = 0; receives && root && i < leaves; i++)
        fill(block_of(all_blocks, &layout, &blocks, i), &layout, counts_of[i],
             data_key(key, leaf_side, i, NO_TARGET));
    if (root && in->inter)
        mine = 0;
    switch (kind) {
    case 0:
        if (root)
            fill(block, &layout, count, key);
        if (root && in->inter)
            own_type = layout.type;
        /* Also from those that have nothing to do: where they name no elements, Open MPI 5.0 gives their
         * next nonblocking collective another tag than the others have, and waits for ever. */
        ALL_FOUR(Bcast, Ibcast, root && !alone ? size : 0, block, count, layout.type, root_argument,
                 comm);
        if (root)
            collected_by_all(in, size);
        if (leaf)
            expect(block, &layout, count, key, "MPI_Bcast");
        break;
    case 1:
        ALL_FOUR(Gather, Igather, leaf ? own : 0, own_data, mine, own_type, all_blocks, count,
                 at_root, root_argument, comm);
        if (leaf)
            collected(in, root_rank, own);
        break;
    case 2:
        BOTH(Gatherv, Igatherv, leaf ? own : 0, own_data, mine, own_type, all_blocks,
             counts_at_root, shifts, at_root, root_argument, comm);
        if (leaf)
            collected(in, root_rank, own);
        break;
    case 3:
        ALL_FOUR(Scatter, Iscatter, root ? (leaves - !in->inter) * size : 0, all_blocks, count,
                 at_root, own_data, mine, own_type, root_argument, comm);
        if (root)
            collected_by_all(in, size);
        break;
    case 4: {
        long long bytes = 0;
        for (int i = 0; root && i < leaves; i++)
            if (in->inter || i != in->rank)
                bytes += (long long)INT * counts_of[i] * layout.ints;
        BOTH(Scatterv, Iscatterv, bytes, all_blocks, counts_at_root, shifts, at_root, own_data,
             mine, own_type, root_argument, comm);
        if (root)
            collected_blocks(in, counts_of, (long long)INT * layout.ints);
        break;
    }
    default: {
        int *sum = calloc((size_t)count + 1, INT), *part = calloc((size_t)count + 1, INT);
        fill(part, &one, count, data_key(key, in->side, in->rank, NO_TARGET));
        if (root && in_place)
            fill(sum, &one, count, data_key(key, in->side, in->rank, NO_TARGET));
        ALL_FOUR(Reduce, Ireduce, leaf ? (long long)INT * count : 0,
                 root && in_place ? MPI_IN_PLACE : part, root ? sum : NULL, count, MPI_INT, MPI_SUM,
                 root_argument, comm);
        if (leaf)
            collected(in, root_rank, (long long)INT * count);
        for (int i = 0; root && i < count; i++) {
            int right = 0;
            for (int r = 0; r < leaves; r++)
                right += value_of(data_key(key, leaf_side, r, NO_TARGET), i);
            check(sum[i] == right, "MPI_Reduce");
        }
        free(sum);
        free(part);
    }
    }
    for (int i = 0; gathers && root && i < leaves; i++)
        expect(block_of(all_blocks, &layout, &blocks, i), &layout, counts_of[i],
               data_key(key, leaf_side, i, NO_TARGET), "a gathered block");
    if (receives && leaf)
        expect(block, &layout, mine, data_key(key, in->side, in->rank, NO_TARGET),
               "a scattered block");
    drop(&layout);
    free(all_blocks);
    free(block);
}

/* The ints of two ranks and more, as a program's own operation would. */
static void add(void *left, void *right, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)right)[i] += ((int *)left)[i];
}

/* Sums of what all ranks have, from `first` up. */
static int sum_of(uint64_t key, int side, int first, int last, int i)
{
    int sum = 0;
    for (int rank = first; rank < last; rank++)
        sum += value_of(data_key(key, side, rank, NO_TARGET), i);
    return sum;
}

static void expect_sums(const int *sums, int count, uint64_t key, int side, int last, int first_int,
                        const char *what)
{
    for (int i = 0; i < count; i++) {
        int right = sum_of(key, side, 0, last, first_int + i);
        check(sums[i] == right, what);
        counts->sum += mix((uint64_t)right);
    }
}

/* Reductions without a root. */
static void reduce_all(const struct communicator *in, struct dice *dice)
{
    int kind = roll(dice, in->inter ? 3 : 5), count = roll(dice, 3) ? roll(dice, 60) : 0;
    bool later = roll(dice, 2), large = roll(dice, 2), in_place = roll(dice, 2) && !in->inter;
    bool own_operation = roll(dice, 3) == 0;
    uint64_t key = mix(dice->state);
    MPI_Request request;
    MPI_Op op = MPI_SUM;
    MPI_Comm comm = in->handle;
    int other = in->inter ? !in->side : 0, counts_of[MOST_RANKS], before = 0, total = 0;
    /* Both groups of an intercommunicator have to get as much in all. */
    int each = in->inter ? count * in->others : count;
    for (int i = 0; i < in->size; i++) {
        counts_of[i] = in->inter ? each : count_between(key, in->side, i, NO_TARGET, false);
        before += i < in->rank ? counts_of[i] : 0;
        total += counts_of[i];
    }
    int room_for = kind == 1 ? total : kind == 2 ? each * in->size : count;
    int *part = calloc((size_t)room_for + 1, INT), *sums = calloc((size_t)room_for + 1, INT);
    struct layout one = plain();
    fill(in_place ? sums : part, &one, room_for, data_key(key, in->side, in->rank, NO_TARGET));
    void *data = in_place ? MPI_IN_PLACE : part;
    if (own_operation)
        MPI_Op_create(add, 1, &op);
    long long own = (long long)INT * count;
    bool alone = !in->inter && in->size == 1, last = in->rank == in->size - 1;
    switch (kind) {
    case 0:
        ALL_FOUR(Allreduce, Iallreduce, alone ? 0 : own, data, sums, count, MPI_INT, op, comm);
        collected_by_all(in, own);
        expect_sums(sums, count, key, other, in->others, 0, "MPI_Allreduce");
        break;
    case 1:
        BOTH(Reduce_scatter, Ireduce_scatter,
             (long long)INT * (total - (in->inter ? 0 : counts_of[in->rank])), data, sums,
             counts_of, MPI_INT, op, comm);
        /* Between groups they are those of the own one. */
        if (in->inter)
            collected_by_all(in, (long long)INT * total / in->others);
        else
            collected_blocks(in, counts_of, INT);
        expect_sums(sums, counts_of[in->rank], key, other, in->others, before,
                    "MPI_Reduce_scatter");
        break;
    case 2:
        ALL_FOUR(Reduce_scatter_block, Ireduce_scatter_block,
                 (long long)INT * each * (in->size - !in->inter), data, sums, each, MPI_INT, op,
                 comm);
        collected_by_all(in, in->inter ? (long long)INT * each * in->size / in->others
                                       : (long long)INT * each);
        expect_sums(sums, each, key, other, in->others, in->rank * each,
                    "MPI_Reduce_scatter_block");
        break;
    case 3:
        ALL_FOUR(Scan, Iscan, last ? 0 : own, data, sums, count, MPI_INT, op, comm);
        expect_sums(sums, count, key, 0, in->rank + 1, 0, "MPI_Scan");
        break;
    default:
        ALL_FOUR(Exscan, Iexscan, last ? 0 : own, data, sums, count, MPI_INT, op, comm);
        if (in->rank)
            expect_sums(sums, count, key, 0, in->rank, 0, "MPI_Exscan");
    }
    if (kind >= 3 && !last) /* scans */
        collected(in, in->rank + 1, own);
    if (own_operation)
        MPI_Op_free(&op);
    free(part);
    free(sums);
}

/* From all to all. */
static void to_all(const struct communicator *in, struct dice *dice)
{
    struct layout layout = draw_layout(dice);
    int kind = roll(dice, 6), count = roll(dice, 3) ? roll(dice, 60) : 0;
    bool later = roll(dice, 2), large = roll(dice, 2), in_place = roll(dice, 2) && !in->inter;
    bool null = roll(dice, 2);
    uint64_t key = mix(dice->state);
    MPI_Request request;
    MPI_Comm comm = in->handle;
    /* MPICH's MPI_Ialltoallw takes blocks of the wrong place then, and Open MPI's waits for ever. */
    in_place = in_place && !(kind == 5 && later);
    int other = in->inter ? !in->side : 0, out_counts[MOST_RANKS], in_counts[MOST_RANKS];
    bool various = kind == 2 || kind == 4 || kind == 5, to_one_block = kind == 1 || kind == 2;
    long long leaving = 0;
    for (int i = 0; i < in->others; i++) {
        int target = to_one_block ? NO_TARGET : i, me = to_one_block ? NO_TARGET : in->rank;
        out_counts[i] = various ? count_between(key, in->side, in->rank, target, in_place) : count;
        in_counts[i] = various ? count_between(key, other, i, me, in_place) : count;
        if (in->inter || i != in->rank)
            leaving += (long long)INT * out_counts[i] * layout.ints;
    }
#ifdef OPEN_MPI
    null = false; /* it takes no null datatype, whatever the count */
#endif
    MPI_Datatype empty = null ? MPI_DATATYPE_NULL : layout.type;
    struct blocks outs = lay_out(&layout, in->others, out_counts, empty);
    struct blocks ins = lay_out(&layout, in->others, in_counts, empty);
    int *out = room(&layout, outs.total), *arrived = room(&layout, ins.total);
    int mine = out_counts[0]; /* of those calls that send one block to all */
    long long once = (long long)INT * mine * layout.ints;
    bool alone = !in->inter && in->size == 1;
    void *data = in_place ? MPI_IN_PLACE : out;
    MPI_Datatype type = in_place ? MPI_DATATYPE_NULL : layout.type;
    if (to_one_block)
        fill(in_place ? block_of(arrived, &layout, &ins, in->rank) : out, &layout, mine,
             data_key(key, in->side, in->rank, NO_TARGET));
    for (int i = 0; !to_one_block && i < in->others; i++)
        fill(in_place ? block_of(arrived, &layout, &ins, i) : block_of(out, &layout, &outs, i),
             &layout, out_counts[i], data_key(key, in->side, in->rank, i));
    switch (kind) {
    case 0:
        BOTH(Barrier, Ibarrier, 0, comm);
        break;
    case 1:
        ALL_FOUR(Allgather, Iallgather, alone ? 0 : once, data, in_place ? 0 : mine, type, arrived,
                 count, layout.type, comm);
        break;
    case 2:
        BOTH(Allgatherv, Iallgatherv, alone ? 0 : once, data, in_place ? 0 : mine, type, arrived,
             ins.counts, ins.shifts, layout.type, comm);
        break;
    case 3:
        ALL_FOUR(Alltoall, Ialltoall, leaving, data, in_place ? 0 : count, type, arrived, count,
                 layout.type, comm);
        break;
    case 4:
        BOTH(Alltoallv, Ialltoallv, leaving, data, in_place ? NULL : outs.counts,
             in_place ? NULL : outs.shifts, type, arrived, ins.counts, ins.shifts, layout.type,
             comm);
        break;
    default:
        BOTH(Alltoallw, Ialltoallw, leaving, data, in_place ? NULL : outs.counts,
             in_place ? NULL : outs.bytes, in_place ? NULL : outs.types, arrived, ins.counts,
             ins.bytes, ins.types, comm);
    }
    if (to_one_block)
        collected_by_all(in, once);
    else if (kind)
        collected_blocks(in, out_counts, (long long)INT * layout.ints);
    for (int i = 0; kind && i < in->others; i++)
        expect(block_of(arrived, &layout, &ins, i), &layout, in_counts[i],
               data_key(key, other, i, to_one_block ? NO_TARGET : in->rank), "a block of all");
    drop(&layout);
    free(out);
    free(arrived);
}

/* Between neighbours; the data of a pair is the same in both places of a ring of two. */
static void neighbours(const struct communicator *in, struct dice *dice)
{
    struct layout layout = draw_layout(dice);
    int kind = roll(dice, OLD_MPICH ? 4 : 5), count = roll(dice, 3) ? roll(dice, 60) : 0;
    bool later = roll(dice, 2), large = roll(dice, 2), null = roll(dice, 2);
    uint64_t key = mix(dice->state);
    MPI_Request request;
    MPI_Comm comm = in->handle;
    int out_counts[MOST_RANKS], in_counts[MOST_RANKS];
    MPI_Aint out_bytes[MOST_RANKS], in_bytes[MOST_RANKS];
    bool various = kind == 1 || kind >= 3, to_one_block = kind < 2;
    long long leaving = 0;
#ifdef OPEN_MPI
    null = false;
#endif
    for (int i = 0; i < in->outs; i++) {
        int target = to_one_block ? NO_TARGET : in->out[i];
        out_counts[i] = various ? count_between(key, 0, in->rank, target, false) : count;
        if (in->out[i] == MPI_PROC_NULL)
            continue;
        leaving += (long long)INT * out_counts[i] * layout.ints;
        sent_of(NEIGHBOURS, in->world[in->out[i]], (long long)INT * out_counts[i] * layout.ints);
    }
    for (int i = 0; i < in->ins; i++)
        in_counts[i] =
            various ? count_between(key, 0, in->in[i], to_one_block ? NO_TARGET : in->rank, false)
                    : count;
    MPI_Datatype empty = null ? MPI_DATATYPE_NULL : layout.type;
    struct blocks outs = lay_out(&layout, in->outs, out_counts, empty);
    struct blocks ins = lay_out(&layout, in->ins, in_counts, empty);
    for (int i = 0; i < MOST_RANKS; i++) {
        out_bytes[i] = outs.bytes[i];
        in_bytes[i] = ins.bytes[i];
    }
    int mine = kind == 1 ? count_between(key, 0, in->rank, NO_TARGET, false) : count;
    int *out = room(&layout, to_one_block ? mine : outs.total), *arrived = room(&layout, ins.total);
    if (to_one_block)
        fill(out, &layout, mine, data_key(key, 0, in->rank, NO_TARGET));
    for (int i = 0; !to_one_block && i < in->outs; i++)
        fill(block_of(out, &layout, &outs, i), &layout, out_counts[i],
             data_key(key, 0, in->rank, in->out[i]));
    switch (kind) {
    case 0:
        ALL_FOUR(Neighbor_allgather, Ineighbor_allgather, leaving, out, mine, layout.type, arrived,
                 count, layout.type, comm);
        break;
    case 1:
        BOTH(Neighbor_allgatherv, Ineighbor_allgatherv, leaving, out, mine, layout.type, arrived,
             ins.counts, ins.shifts, layout.type, comm);
        break;
    case 2:
        ALL_FOUR(Neighbor_alltoall, Ineighbor_alltoall, leaving, out, count, layout.type, arrived,
                 count, layout.type, comm);
        break;
    case 3:
        BOTH(Neighbor_alltoallv, Ineighbor_alltoallv, leaving, out, outs.counts, outs.shifts,
             layout.type, arrived, ins.counts, ins.shifts, layout.type, comm);
        break;
    default:
        BOTH(Neighbor_alltoallw, Ineighbor_alltoallw, leaving, out, outs.counts, out_bytes,
             outs.types, arrived, ins.counts, in_bytes, ins.types, comm);
    }
    for (int i = 0; i < in->ins; i++)
        if (in->in[i] != MPI_PROC_NULL)
            expect(block_of(arrived, &layout, &ins, i), &layout, in_counts[i],
                   data_key(key, 0, in->in[i], to_one_block ? NO_TARGET : in->rank),
                   "a neighbour's block");
    drop(&layout);
    free(out);
    free(arrived);
}

/* One-sided: each rank has a place of its own in every window. */

enum { EACH = 8 };

static void one_sided(const struct communicator *in, struct dice *dice)
{
    int way = roll(dice, 3), epoch = roll(dice, 4), puts = roll(dice, 7), word = 1, old = 0;
    int target = roll(dice, 6) ? (in->rank + 1 + roll(dice, 2)) % in->size : MPI_PROC_NULL;
    bool large = roll(dice, 2);
    int count = in->size * EACH, got[EACH] = { 0 }, mine[EACH], *base = NULL;
    long long bytes = target == MPI_PROC_NULL ? 0 : EACH * INT;
    MPI_Aint shift_to = (MPI_Aint)in->rank * EACH;
    uint64_t key = mix(dice->state);
    struct layout one = plain();
    MPI_Win window;
    MPI_Request request;
    MPI_Group group, to, from;
    int *own = calloc((size_t)count, INT);
    if (way == 0) {
        EITHER(large, Win_create, 0, own, (MPI_Aint)count * INT, INT, MPI_INFO_NULL, in->handle,
               &window);
        base = own;
    } else if (way == 1) {
        EITHER(large, Win_allocate, 0, (MPI_Aint)count * INT, INT, MPI_INFO_NULL, in->handle, &base,
               &window);
    } else {
        EITHER(large, Win_allocate_shared, 0, (MPI_Aint)count * INT, INT, MPI_INFO_NULL, in->handle,
               &base, &window);
    }
    memset(base, 0, (size_t)count * INT);
    CALL(Barrier, 0, in->handle);
    fill(mine, &one, EACH, key_of(key, in->rank, 0));
    /* Whoever puts into this rank's window: those at the same distance below. */
    if (epoch == 0) {
        CALL(Win_fence, 0, 0, window);
    } else if (epoch == 1 && target != MPI_PROC_NULL) {
        CALL(Win_lock, 0, MPI_LOCK_SHARED, target, 0, window);
    } else if (epoch >= 2) {
        CALL(Win_lock_all, 0, 0, window);
    }
    bool passive = epoch == 1 && target != MPI_PROC_NULL, open = epoch != 1 || passive;
    if (open) {
        bool sends = puts != 1 && puts != 6 && target != MPI_PROC_NULL;
        switch (puts) {
        case 0:
            EITHER(large, Put, bytes, mine, EACH, MPI_INT, target, shift_to, EACH, MPI_INT, window);
            break;
        case 1:
            EITHER(large, Get, bytes, got, EACH, MPI_INT, target, shift_to, EACH, MPI_INT, window);
            break;
        case 2:
            EITHER(large, Accumulate, bytes, mine, EACH, MPI_INT, target, shift_to, EACH, MPI_INT,
                   MPI_SUM, window);
            break;
        case 3:
            EITHER(large, Get_accumulate, bytes, mine, EACH, MPI_INT, got, EACH, MPI_INT, target,
                   shift_to, EACH, MPI_INT, MPI_REPLACE, window);
            break;
        case 4:
            bytes = bytes ? INT : 0;
            CALL(Fetch_and_op, bytes, mine, got, MPI_INT, target, shift_to, MPI_SUM, window);
            break;
        case 5:
            bytes = bytes ? INT : 0;
            CALL(Compare_and_swap, bytes, mine, &old, got, MPI_INT, target, shift_to, window);
            break;
        default:
            EITHER(large, Get_accumulate, 0, NULL, 0, MPI_INT, got, EACH, MPI_INT, target, shift_to,
                   EACH, MPI_INT, MPI_NO_OP, window);
        }
        if (sends)
            sent_of(ONE_SIDED, in->world[target], bytes);
        if (epoch >= 2 && target != MPI_PROC_NULL && word) {
            if (epoch == 2)
                CALL(Win_flush, 0, target, window);
            else
                CALL(Win_flush_all, 0, window);
            /* The same once more, with a request. */
            if (puts == 0) {
                EITHER(large, Rput, bytes, mine, EACH, MPI_INT, target, shift_to, EACH, MPI_INT,
                       window, &request);
                sent_of(ONE_SIDED, in->world[target], bytes);
                complete(dice, 1, &request);
            } else if (puts == 1) {
                EITHER(large, Rget, bytes, got, EACH, MPI_INT, target, shift_to, EACH, MPI_INT,
                       window, &request);
                complete(dice, 1, &request);
            }
        }
    }
    if (epoch == 0)
        CALL(Win_fence, 0, 0, window);
    else if (passive)
        CALL(Win_unlock, 0, target, window);
    else if (epoch >= 2)
        CALL(Win_unlock_all, 0, window);
    CALL(Barrier, 0, in->handle);
    for (int i = 0; i < EACH; i++)
        counts->sum += (unsigned)got[i];
    /* Posts to those below, starts to those above. */
    MPI_Comm_group(in->handle, &group);
    int above = (in->rank + 1) % in->size, below = (in->rank + in->size - 1) % in->size;
    MPI_Group_incl(group, 1, &above, &to);
    MPI_Group_incl(group, 1, &below, &from);
    if (way != 2) {
        CALL(Win_post, 0, from, 0, window);
        CALL(Win_start, 0, to, 0, window);
        CALL(Put, EACH * INT, mine, EACH, MPI_INT, above, shift_to, EACH, MPI_INT, window);
        sent_of(ONE_SIDED, in->world[above], EACH * INT);
        CALL(Win_complete, 0, window);
        CALL(Win_wait, 0, window);
        expect(base + below * EACH, &one, EACH, key_of(key, below, 0), "a put");
    }
    MPI_Group_free(&group);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    CALL(Win_free, 0, &window);
    free(own);
}

/* Communicators that come and go */

static void release(struct communicator *communicator)
{
    if (communicator->handle != MPI_COMM_NULL)
        CALL(Comm_free, 0, &communicator->handle);
}

static MPI_Comm make_cart(const struct communicator *from, struct dice *dice)
{
    int extents[2] = { from->size, 1 }, periods[2], dimensions = 1 + roll(dice, 2);
    periods[0] = roll(dice, 2);
    periods[1] = roll(dice, 2);
    if (dimensions == 2 && from->size > 1) {
        extents[0] = from->size / 2;
        extents[1] = 2;
    }
    MPI_Comm made;
    CALL(Cart_create, 0, from->handle, dimensions, extents, periods, 0, &made);
    return made;
}

/* A line, each with those beside it. */
static MPI_Comm make_graph(const struct communicator *from)
{
    int index[MOST_RANKS], edges[2 * MOST_RANKS], count = 0;
    for (int i = 0; i < from->size; i++) {
        if (i > 0)
            edges[count++] = i - 1;
        if (i + 1 < from->size)
            edges[count++] = i + 1;
        index[i] = count;
    }
    MPI_Comm made;
    CALL(Graph_create, 0, from->handle, from->size, index, edges, 0, &made);
    return made;
}

/* Who is a neighbour of whom is drawn. */
static MPI_Comm make_dist_graph(const struct communicator *from, struct dice *dice)
{
    int in[MOST_RANKS], out[MOST_RANKS], ins = 0, outs = 0, thirds = roll(dice, 4);
    bool adjacent = roll(dice, 2);
    uint64_t key = mix(dice->state);
    MPI_Comm made;
    for (int i = 0; i < from->size; i++) {
        if ((int)(key_of(key, from->rank, i) % 3) < thirds)
            out[outs++] = i;
        if ((int)(key_of(key, i, from->rank) % 3) < thirds)
            in[ins++] = i;
    }
    if (adjacent)
        CALL(Dist_graph_create_adjacent, 0, from->handle, ins, in, MPI_UNWEIGHTED, outs, out,
             MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
    else
        CALL(Dist_graph_create, 0, from->handle, 1, &from->rank, &outs, out, MPI_UNWEIGHTED,
             MPI_INFO_NULL, 0, &made);
    return made;
}

static MPI_Comm make_inter(const struct communicator *from, struct dice *dice, int tag)
{
    int cut = 1 + roll(dice, from->size - 1);
    bool low = from->rank < cut;
    MPI_Comm half, made;
    CALL(Comm_split, 0, from->handle, low, 0, &half);
    CALL(Intercomm_create, 0, half, 0, from->handle, low ? cut : 0, tag, &made);
    CALL(Comm_free, 0, &half);
    return made;
}

static MPI_Comm make_of_group(const struct communicator *from, struct dice *dice, int tag)
{
    int first = roll(dice, from->size), last = first + roll(dice, from->size - first);
    int range[1][3] = { { last, first, -1 } };
    bool by_group = roll(dice, 2);
    MPI_Group group, some;
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_group(from->handle, &group);
    MPI_Group_range_incl(group, 1, range, &some);
    if (!by_group)
        CALL(Comm_create, 0, from->handle, some, &made);
    else if (from->rank >= first && from->rank <= last)
        CALL(Comm_create_group, 0, from->handle, some, tag, &made);
    MPI_Group_free(&group);
    MPI_Group_free(&some);
    return made;
}

static MPI_Comm make(const struct communicator *from, struct dice *dice, int tag)
{
    MPI_Comm made = MPI_COMM_NULL;
    int kind = roll(dice, 12), remaining[2] = { roll(dice, 2), 1 };
    int colour = (int)(key_of(dice->state, from->rank, 1) % 3);
    if (from->inter && kind < 6) {
        CALL(Intercomm_merge, 0, from->handle, from->side, &made);
    } else if (from->inter || kind == 0) {
        CALL(Comm_dup, 0, from->handle, &made);
    } else if (kind == 1) {
        CALL(Comm_dup_with_info, 0, from->handle, MPI_INFO_NULL, &made);
        /* Not one that was used for much: MPICH 4.0 waits for ever where a call in it has failed. */
        CALL(Comm_disconnect, 0, &made);
        CALL(Comm_dup_with_info, 0, from->handle, MPI_INFO_NULL, &made);
    } else if (kind < 4) {
        CALL(Comm_split, 0, from->handle, colour == 2 ? MPI_UNDEFINED : colour, -from->rank, &made);
    } else if (kind == 4) {
        CALL(Comm_split_type, 0, from->handle, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
    } else if (kind == 5 && from->topology == MPI_UNDEFINED) { /* or Open MPI 4.1 keeps it */
        made = make_of_group(from, dice, tag);
    } else if (kind == 6 && from->topology == MPI_CART && from->outs == 4) {
        CALL(Cart_sub, 0, from->handle, remaining, &made);
    } else if (kind < 8) {
        made = make_cart(from, dice);
    } else if (kind == 8) {
        made = make_graph(from);
    } else if (kind == 9 && from->topology == MPI_UNDEFINED) { /* or Open MPI 5.0 crashes */
        made = make_dist_graph(from, dice);
    } else if (from->size > 1) {
        made = make_inter(from, dice, tag);
    } else if (from->topology != MPI_UNDEFINED) {
        CALL(Comm_dup, 0, from->handle, &made);
    } else { /* one that the witness does not see being made; Open MPI 5.0 forgets topologies in it */
        MPI_Request request;
        CALL(Comm_idup, 0, from->handle, &made, &request);
        CALL(Wait, 0, &request, MPI_STATUS_IGNORE);
    }
    if (made != MPI_COMM_NULL && kind % 3 == 0)
        MPI_Comm_set_name(made, "soak \"\\ \x01 \xff");
    return made;
}

/* Operations, alone and in threads */

static void communicate(const struct communicator *in, struct dice *dice, int tag)
{
    int kind = roll(dice, 16);
    if (!in->inter && in->topology != MPI_UNDEFINED && kind % 2)
        neighbours(in, dice);
    else if (kind < 5)
        exchange(in, dice, tag);
    else if (kind < 7)
        to_all(in, dice);
    else if (kind == 7)
        reduce_all(in, dice);
    else if (kind < 10 || in->inter)
        rooted(in, dice);
    else if (kind == 10)
        gather_any(in, dice, tag);
    else if (kind == 11)
        stream(in, dice, tag);
    else if (kind == 12)
        shift(in, dice, tag);
    else if (kind == 13)
        repeat(in, dice, tag);
    else if (kind == 14)
        cancel(in, dice, tag);
    else
        err(in, dice, tag);
}

enum { MOST_THREADS = 3, OPERATIONS_OF_A_THREAD = 4 };

struct work {
    struct communicator in;
    struct dice dice;
    struct counts counts;
};

static void *work(void *argument)
{
    struct work *work = argument;
    counts = &work->counts;
    for (int i = 0; i < OPERATIONS_OF_A_THREAD; i++)
        communicate(&work->in, &(struct dice){ key_of(work->dice.state, i, 4) }, i * TAGS);
    return NULL;
}

static void merge(const struct counts *from)
{
    for (int i = 0; i < MOST_CALLS && from->calls[i].name; i++)
        called_times(from->calls[i].name, from->calls[i].count, from->calls[i].bytes);
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < MOST_RANKS; i++) {
            counts->partners[kind][i].messages += from->partners[kind][i].messages;
            counts->partners[kind][i].bytes += from->partners[kind][i].bytes;
            for (int bin = 0; bin < BINS; bin++)
                counts->partners[kind][i].sizes[bin] += from->partners[kind][i].sizes[bin];
        }
    counts->sum += from->sum;
}

/* Each in a communicator of its own. */
static void threads(const struct communicator *in, struct dice *dice)
{
    static struct work works[MOST_THREADS];
    pthread_t started[MOST_THREADS];
    int count = 2 + roll(dice, MOST_THREADS - 1);
    memset(works, 0, sizeof works);
    for (int i = 0; i < count; i++) {
        MPI_Comm made;
        CALL(Comm_dup, 0, in->handle, &made);
        describe(&works[i].in, made);
        works[i].dice.state = key_of(dice->state, i, 3);
    }
    for (int i = 0; i < count; i++)
        check(pthread_create(&started[i], NULL, work, &works[i]) == 0, "no thread");
    for (int i = 0; i < count; i++) {
        pthread_join(started[i], NULL);
        merge(&works[i].counts);
        CALL(Comm_free, 0, &works[i].in.handle);
    }
}

static void operate(struct dice dice, int tag)
{
    int kind = roll(&dice, 24), slot = roll(&dice, 3) ? roll(&dice, SLOTS) : 0;
    const struct communicator *in = &slots[slot];
    if (kind < 5) {
        int into = 2 + roll(&dice, SLOTS - 2);
        if (into == slot)
            return;
        release(&slots[into]);
        describe(&slots[into], in->handle == MPI_COMM_NULL ? MPI_COMM_NULL : make(in, &dice, tag));
    } else if (in->handle == MPI_COMM_NULL) {
        return;
    } else if (kind == 5 && !in->inter && in->size > 1) {
        one_sided(in, &dice);
    } else if (kind == 6 && provided == MPI_THREAD_MULTIPLE) {
        threads(in, &dice);
    } else {
        communicate(in, &dice, tag);
    }
}

static void run_program(int seed, int operations)
{
    void *buffer = malloc(ATTACHED);
    struct dice dice = { mix((uint64_t)seed) };
    int size;
    MPI_Buffer_attach(buffer, ATTACHED);
    describe(&slots[0], MPI_COMM_WORLD);
    describe(&slots[1], MPI_COMM_SELF);
    for (int i = 2; i < SLOTS; i++)
        describe(&slots[i], MPI_COMM_NULL);
    seed_now = seed;
    for (operation_now = 0; operation_now < operations; operation_now++)
        operate((struct dice){ key_of(dice.state, operation_now, 9) }, operation_now % 1000 * TAGS);
    for (int i = 2; i < SLOTS; i++)
        release(&slots[i]);
    CALL(Barrier, 0, MPI_COMM_WORLD);
    CALL(Buffer_detach, 0, &buffer, &size);
    free(buffer);
    while (kept_count)
        free(kept[--kept_count]);
}

/* What this rank did, in the words of the report. */
static void write_counts(void)
{
    char path[64];
    snprintf(path, sizeof path, "soak-%d.json", world_rank);
    FILE *file = fopen(path, "w");
    check(file, "no file");
    fprintf(file, "{\"calls\": {");
    for (int i = 0; i < MOST_CALLS && all.calls[i].name; i++)
        fprintf(file, "%s\"%s\": [%lld, %lld]", i ? ", " : "", all.calls[i].name,
                all.calls[i].count, all.calls[i].bytes);
    fprintf(file, "}, \"partners\": [");
    for (int cell = 0, any = 0; cell < KINDS * world_size; cell++) {
        int kind = cell / world_size, i = cell % world_size;
        if (!all.partners[kind][i].messages)
            continue;
        fprintf(file,
                "%s{\"kind\": \"%s\", \"rank\": %d, \"messages\": %lld, \"bytes\": %lld, "
                "\"sizes\": {",
                any++ ? ", " : "", kinds[kind], i, all.partners[kind][i].messages,
                all.partners[kind][i].bytes);
        for (int bin = 0, more = 0; bin < BINS; bin++)
            if (all.partners[kind][i].sizes[bin])
                fprintf(file, "%s\"%d\": %lld", more++ ? ", " : "", bin ? 1 << (bin - 1) : 0,
                        all.partners[kind][i].sizes[bin]);
        fprintf(file, "}}");
    }
    fprintf(file, "]}\n");
    check(fclose(file) == 0, "no file");
}

int main(int argc, char **argv)
{
    check(argc == 4, "soak FIRST PROGRAMS OPERATIONS");
    int first = atoi(argv[1]), programs = atoi(argv[2]), operations = atoi(argv[3]);
    if (first % 2 == 0)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    check(world_size <= MOST_RANKS, "too many ranks");
    for (int i = 0; i < programs; i++) {
        run_program(first + 2 * i, operations);
        printf("rank %d: program %d: %016llx\n", world_rank, first + 2 * i,
               (unsigned long long)all.sum);
        fflush(stdout);
        all.sum = 0;
    }
    write_counts();
    MPI_Finalize();
    return 0;
}
