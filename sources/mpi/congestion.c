/* congestion: small messages of some ranks, alone and beside large ones of all others.
 *
 * The method is that of GPCNeT (Chunduri and others, SC19): victims measure, aggressors fill the
 * network. Here each host has ranks of both, where it has more than one, so that they share its link.
 * What is measured stands in the help text below.
 *
 * Victims measure alone and beside the aggressors in turn, and that again in each round: what is
 * compared was measured one right after the other, between the same partners. While victims are alone
 * the aggressors sleep. They start before the victims measure, and end when these tell them to.
 *
 * Each operation is timed by itself, and counted in a histogram: of a percentile few messages decide,
 * and the times of all would not fit into the memory of one rank.
 *
 * Payload: each message of a victim and each sum is checked; an answer follows from its question.
 * Messages of aggressors have a word that changes with each; the last ones of a turn are checked whole. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "clock.h"
#include "memory.h"
#include "patience.h"
#include "payload.h"
#include "rest.h"
#include "sample.h"

static const struct bench_about about = {
    .program = "congestion",
    .purpose = "small messages of some ranks, alone and beside large ones of all others",
    .text =
        "Victims, a fifth of the ranks of each host or more, and at least two:\n"
        "  latency    a ping-pong of 8 bytes of each with a random partner, on another host where\n"
        "             there are several; all pairs at once. Time: half a round trip.\n"
        "  allreduce  a sum of 8 bytes of all of them. Time: on each of them.\n"
        "Aggressors, all others:\n"
        "  incast     all send to one.\n"
        "  alltoall   blocks of 16 MiB together on each rank, of --size at most.\n"
        "  shift      each sends to one on another host, and receives from a third.\n"
        "Victims measure alone, then beside the aggressors, and that four times. Impact is the time\n"
        "beside over that alone, at the median and at the 99th percentile of all operations.\n",
    .examples = "  mpirun -n 4 congestion\n"
                "  mpirun -n 64 congestion --aggressor incast --json result.json\n",
    .min_ranks = 4,
};

enum victim { LATENCY, ALLREDUCE, VICTIMS };
static const char *const victim_names[] = { "latency", "allreduce", NULL };

enum aggressor { INCAST, ALLTOALL, SHIFT, AGGRESSORS };
static const char *const aggressor_names[] = { "incast", "alltoall", "shift", NULL };

enum state { ALONE, BESIDE, STATES };
static const char *const state_names[] = { "alone", "beside" };

enum {
    SMALL = 8,   /* bytes of what victims send */
    WORD = 8,    /* of the word that begins a large message */
    TAG = 1,
    ROUNDS = 4,
    BATCH = 8,   /* operations, after which victims agree whether to go on */
    WARM_UPS = 4, /* operations before them */
    FEWEST = 64, /* operations of a victim in a round: four of these have a 99th percentile */
    SLOTS = 16,  /* messages that the target of an incast receives at once */
    EXCHANGED = 16 << 20, /* bytes of an alltoall on a rank */
};

/* Of a round, whatever FEWEST says: a network that loses messages has shown it by then. */
static const double LONGEST_SECONDS = 2;

static unsigned chosen_victims = (1u << VICTIMS) - 1, chosen_aggressors = (1u << AGGRESSORS) - 1;
static size_t size = 256 << 10;
static double budget = 0.2;
static long patience = PATIENCE_SECONDS;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "victim", .kind = OPTION_CHOICES, .value = &chosen_victims, .argument = "LIST",
      .choices = victim_names, .help = "what is measured" },
    { .name = "aggressor", .kind = OPTION_CHOICES, .value = &chosen_aggressors, .argument = "LIST",
      .choices = aggressor_names, .help = "what it is measured beside" },
    { .name = "size", .kind = OPTION_SIZE, .value = &size, .argument = "BYTES", .low = 64,
      .high = 1 << 26, .help = "of a message of an aggressor" },
    { .name = "budget", .kind = OPTION_NUMBER, .value = &budget, .argument = "SECONDS",
      .low = 1e-3, .high = 3600, .help = "of each time, alone or beside, in all rounds" },
    PATIENCE_OPTION(patience),
    { .name = NULL },
};
/* clang-format on */

/* Times by their logarithms, from a nanosecond on: a step is 2%. */
enum { BINS_PER_OCTAVE = 32, BINS = 40 * BINS_PER_OCTAVE };
static const double SHORTEST = 1e-9;

struct tally {
    int64_t counts[BINS];
    double seconds; /* of all operations */
    struct sample_clocks clocks;
};

struct load {
    /* Of rounds, from the end of the first one until the victims had measured. */
    struct sample_clocks clocks;
    double all; /* rounds, with the first and the last one of each time */
};

struct point {
    enum victim victim;
    enum aggressor aggressor;
    struct tally tallies[STATES];
    struct load load;
};

/* The ranks of one role, in the order of MPI_COMM_WORLD. */
struct cast {
    MPI_Comm comm;
    int count, rank;
    int *members; /* their ranks in MPI_COMM_WORLD */
    int *order;   /* of a round: by hosts, which are in random order, as are the ranks of each */
    int place;    /* of this rank in it */
};

static bool *is_victim; /* of each rank */
static int victim_count;
static int first_aggressor; /* in MPI_COMM_WORLD */

static int aggressor_count(void)
{
    return bench.ranks - victim_count;
}

/* Roles ---------------------------------------------------------------------------------------- */

/* The place of each rank on its host; among all where each host has one. free() it. */
static int *places_on_hosts(void)
{
    int *places = memory_allocate((size_t)bench.ranks * sizeof *places);
    int *seen = memory_allocate((size_t)bench.host_count * sizeof *seen);
    for (int rank = 0; rank < bench.ranks; rank++)
        places[rank] = bench.host_count == bench.ranks ? rank : seen[bench.host_of[rank]]++;
    free(seen);
    return places;
}

/* Every fifth rank of a host is a victim, or more of them where those would be less than two. */
static void cast_roles(void)
{
    int *places = places_on_hosts();
    is_victim = memory_allocate((size_t)bench.ranks * sizeof *is_victim);
    for (int every = 5; every > 1 && victim_count < 2; every--) {
        victim_count = 0;
        for (int rank = 0; rank < bench.ranks; rank++) {
            is_victim[rank] = places[rank] % every == 0;
            victim_count += is_victim[rank];
        }
    }
    free(places);
    if (victim_count < 2 || aggressor_count() < 2)
        bench_refuse(
            "needs two victims and two aggressors; start it with as many ranks on each host");
    while (is_victim[first_aggressor])
        first_aggressor++;
}

static struct cast cast_make(void)
{
    bool mine = is_victim[bench.rank];
    struct cast cast = { .count = mine ? victim_count : aggressor_count() };
    MPI_Comm_split(MPI_COMM_WORLD, mine, bench.rank, &cast.comm);
    MPI_Comm_rank(cast.comm, &cast.rank);
    cast.members = memory_allocate((size_t)cast.count * sizeof *cast.members);
    cast.order = memory_allocate((size_t)cast.count * sizeof *cast.order);
    for (int rank = 0, i = 0; rank < bench.ranks; rank++)
        if (is_victim[rank] == mine)
            cast.members[i++] = rank;
    return cast;
}

static void cast_free(struct cast *cast)
{
    MPI_Comm_free(&cast->comm);
    free(cast->members);
    free(cast->order);
}

/* The same on every rank. */
static uint32_t random_of(int round, int number)
{
    uint64_t x = ((uint64_t)(unsigned)round << 32 | (unsigned)number) + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(x >> 32);
}

struct drawn {
    uint32_t of_host, of_rank;
    int host, member;
};

static int compare_drawn(const void *a, const void *b)
{
    const struct drawn *x = a, *y = b;
    if (x->of_host != y->of_host)
        return x->of_host < y->of_host ? -1 : 1;
    if (x->host != y->host)
        return x->host - y->host;
    if (x->of_rank != y->of_rank)
        return x->of_rank < y->of_rank ? -1 : 1;
    return x->member - y->member;
}

static void draw_order(struct cast *cast, int round)
{
    struct drawn *drawn = memory_allocate((size_t)cast->count * sizeof *drawn);
    for (int i = 0; i < cast->count; i++) {
        int host = bench.host_of[cast->members[i]];
        drawn[i] = (struct drawn){ .of_host = random_of(round, -1 - host),
                                   .of_rank = random_of(round, i),
                                   .host = host,
                                   .member = i };
    }
    qsort(drawn, (size_t)cast->count, sizeof *drawn, compare_drawn);
    for (int i = 0; i < cast->count; i++) {
        cast->order[i] = drawn[i].member;
        if (drawn[i].member == cast->rank)
            cast->place = i;
    }
    free(drawn);
}

/* Half of the order away: on another host, unless one has more than half of them. */
static int across(const struct cast *cast, int direction)
{
    int half = cast->count / 2;
    return cast->order[(cast->place + cast->count + direction * half) % cast->count];
}

/* Victims -------------------------------------------------------------------------------------- */

static void count_time(struct tally *tally, double seconds)
{
    int bin = seconds > SHORTEST ? (int)(BINS_PER_OCTAVE * log2(seconds / SHORTEST)) : 0;
    tally->counts[bin < BINS ? bin : BINS - 1]++;
    tally->seconds += seconds;
}

/* So many operations, on this rank; counted in no tally if it is NULL. */
typedef void victim_batch(const struct cast *cast, struct tally *tally, int count);

static long batch_number; /* so that no two have the same messages */

/* A question, to which the answer is its complement. */
static uint64_t word_of(int asker, int number)
{
    uint64_t word;
    payload_fill(&word, SMALL, asker, batch_number * BATCH + number);
    return word;
}

static void require(uint64_t found, uint64_t expected, int sender)
{
    if (found != expected)
        bench_abort(EXIT_WRONG_PAYLOAD,
                    "a message of 8 bytes from rank %d arrived wrong: expected %016llx, found "
                    "%016llx; from host %s",
                    sender, (unsigned long long)expected, (unsigned long long)found,
                    bench.hosts[bench.host_of[sender]]);
}

static void answer(const struct cast *cast, int partner, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t word = 0;
        MPI_Recv(&word, SMALL, MPI_BYTE, partner, TAG, cast->comm, MPI_STATUS_IGNORE);
        word = ~word;
        MPI_Send(&word, SMALL, MPI_BYTE, partner, TAG, cast->comm);
        require(~word, word_of(cast->members[partner], i), cast->members[partner]);
    }
}

static void ask(const struct cast *cast, int partner, int count, struct tally *tally)
{
    sample_clocks_start();
    struct sample_parts parts = sample_parts_start();
    for (int i = 0; i < count; i++) {
        uint64_t sent = word_of(bench.rank, i), received = 0;
        struct sample_mark before = sample_mark();
        MPI_Send(&sent, SMALL, MPI_BYTE, partner, TAG, cast->comm);
        MPI_Recv(&received, SMALL, MPI_BYTE, partner, TAG, cast->comm, MPI_STATUS_IGNORE);
        sample_operation();
        sample_parts_add(&parts, before);
        require(received, ~sent, cast->members[partner]);
        if (tally)
            count_time(tally, (parts.last.seconds - before.seconds) / 2);
    }
    double seconds = sample_parts_end(&parts) / 2;
    if (tally)
        sample_clocks_add(&tally->clocks, count, seconds, seconds);
}

static void latency_batch(const struct cast *cast, struct tally *tally, int count)
{
    int half = cast->count / 2;
    if (cast->place < half)
        ask(cast, cast->order[cast->place + half], count, tally);
    else if (cast->place < 2 * half) /* of an odd number the last one has no partner */
        answer(cast, cast->order[cast->place - half], count);
}

static void allreduce_batch(const struct cast *cast, struct tally *tally, int count)
{
    double others = (double)cast->count * (cast->count - 1) / 2;
    sample_clocks_start();
    struct sample_parts parts = sample_parts_start();
    for (int i = 0; i < count; i++) {
        double turn = (double)(batch_number * BATCH + i), own = cast->rank + turn, sum = -1;
        struct sample_mark before = sample_mark();
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, cast->comm);
        sample_operation();
        sample_parts_add(&parts, before);
        if (sum != others + cast->count * turn)
            bench_abort(EXIT_WRONG_PAYLOAD, "an allreduce of %d ranks gave %.17g instead of %.17g",
                        cast->count, sum, others + cast->count * turn);
        if (tally)
            count_time(tally, parts.last.seconds - before.seconds);
    }
    double seconds = sample_parts_end(&parts);
    if (tally)
        sample_clocks_add(&tally->clocks, count, seconds, seconds);
}

static victim_batch *const victim_batches[] = { latency_batch, allreduce_batch };

/* The share of a round. */
static void measure(const struct cast *cast, struct point *point, enum state state)
{
    victim_batch *batch = victim_batches[point->victim];
    batch_number++;
    batch(cast, NULL, WARM_UPS); /* partners find their connections */
    MPI_Barrier(cast->comm);
    double start = clock_seconds();
    int goes_on = 1;
    for (int made = BATCH; goes_on; made += BATCH) {
        batch_number++;
        batch(cast, &point->tallies[state], BATCH);
        double used = clock_seconds() - start;
        goes_on = used < budget / ROUNDS || (made < FEWEST && used < LONGEST_SECONDS);
        MPI_Allreduce(MPI_IN_PLACE, &goes_on, 1, MPI_INT, MPI_MAX, cast->comm);
    }
}

static void be_victim(const struct cast *cast, struct point *point)
{
    measure(cast, point, ALONE);
    rest_until_all(MPI_COMM_WORLD);
    if (cast->rank == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, first_aggressor, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(cast->comm);
    measure(cast, point, BESIDE);
    if (cast->rank == 0)
        MPI_Send(NULL, 0, MPI_BYTE, first_aggressor, TAG, MPI_COMM_WORLD);
    rest_until_all(MPI_COMM_WORLD);
}

/* Aggressors ----------------------------------------------------------------------------------- */

/* What an aggressor sends and receives. */
struct arms {
    char *sent, *received; /* one behind the other */
    size_t message;  /* bytes */
    int messages;    /* that a rank sends to another in a round */
    int64_t word;    /* of the last round's */
    bool is_checked; /* whole, in this round */
    long lacking;    /* messages without their word */
};

static size_t message_of(enum aggressor kind)
{
    size_t block = EXCHANGED / (size_t)aggressor_count() / WORD * WORD;
    if (kind != ALLTOALL || block > size)
        return size;
    return block < 2 * WORD ? 2 * WORD : block;
}

/* Enough of them that what the ranks agree about between two rounds is little. */
static int messages_of(enum aggressor kind)
{
    enum { MANY = 16, SOME = 4 };
    if (kind == ALLTOALL)
        return 1;
    int senders = aggressor_count() - 1;
    return kind == SHIFT ? SOME : senders < MANY ? (MANY + senders - 1) / senders : 1;
}

static size_t bytes_sent(enum aggressor kind)
{
    return message_of(kind) * (size_t)(kind == ALLTOALL ? aggressor_count() : 1);
}

static size_t bytes_received(enum aggressor kind)
{
    return kind == INCAST ? SLOTS * message_of(kind) : bytes_sent(kind);
}

static void write_word(struct arms *arms, int block)
{
    memcpy(arms->sent + (size_t)block * arms->message, &arms->word, WORD);
}

/* Of what came from a rank into the given block, as its number tells. */
static void look_at(struct arms *arms, const struct cast *cast, int block, int source, int number)
{
    const char *message = arms->received + (size_t)block * arms->message;
    arms->lacking += memcmp(message, &arms->word, WORD) != 0;
    if (arms->is_checked)
        payload_check(message + WORD, arms->message - WORD, cast->members[source], number);
}

/* All others send to the first. */
static void incast(const struct cast *cast, struct arms *arms)
{
    int bytes = (int)arms->message, senders = cast->count - 1;
    if (cast->rank != 0) {
        for (int i = 0; i < arms->messages; i++) {
            arms->word++;
            write_word(arms, 0);
            MPI_Send(arms->sent, bytes, MPI_BYTE, 0, TAG, cast->comm);
        }
        return;
    }
    MPI_Request requests[SLOTS];
    int all = arms->messages * senders;
    int64_t first = arms->word + 1;
    for (int i = 0; i < all + SLOTS; i++) {
        int slot = i % SLOTS, before = i - SLOTS;
        if (before >= 0 && before < all) {
            MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
            arms->word = first + before / senders;
            look_at(arms, cast, slot, 1 + before % senders, 0);
        }
        if (i < all)
            MPI_Irecv(arms->received + (size_t)slot * arms->message, bytes, MPI_BYTE,
                      1 + i % senders, TAG, cast->comm, &requests[slot]);
    }
}

static void alltoall(const struct cast *cast, struct arms *arms)
{
    int bytes = (int)arms->message;
    arms->word++;
    for (int i = 0; i < cast->count; i++)
        write_word(arms, i);
    MPI_Alltoall(arms->sent, bytes, MPI_BYTE, arms->received, bytes, MPI_BYTE, cast->comm);
    for (int i = 0; i < cast->count; i++)
        look_at(arms, cast, i, i, cast->rank);
}

static void shift(const struct cast *cast, struct arms *arms)
{
    int bytes = (int)arms->message, to = across(cast, 1), from = across(cast, -1);
    for (int i = 0; i < arms->messages; i++) {
        arms->word++;
        write_word(arms, 0);
        MPI_Sendrecv(arms->sent, bytes, MPI_BYTE, to, TAG, arms->received, bytes, MPI_BYTE, from,
                     TAG, cast->comm, MPI_STATUS_IGNORE);
        look_at(arms, cast, 0, from, 0);
    }
}

typedef void aggressor_round(const struct cast *cast, struct arms *arms);
static aggressor_round *const aggressor_rounds[] = { incast, alltoall, shift };

static void fill(enum aggressor kind, struct arms *arms)
{
    arms->message = message_of(kind);
    arms->messages = messages_of(kind);
    arms->received = arms->sent + bytes_sent(kind);
    for (size_t at = 0, i = 0; at < bytes_sent(kind); at += arms->message, i++)
        payload_fill(arms->sent + at + WORD, arms->message - WORD, bench.rank, (long)i);
}

/* Rounds until the victims have measured. */
static void attack(const struct cast *cast, struct point *point, struct arms *arms)
{
    enum aggressor kind = point->aggressor;
    bool leads = cast->rank == 0;
    MPI_Request told = MPI_REQUEST_NULL;
    struct sample_instant start = { 0 };
    if (leads)
        MPI_Irecv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &told);
    arms->is_checked = false;
    for (long made = 0; !arms->is_checked; made++) {
        int has_ended = 0;
        if (leads && made > 0)
            MPI_Test(&told, &has_ended, MPI_STATUS_IGNORE);
        if (has_ended) {
            double seconds = sample_since(start);
            sample_clocks_add(&point->load.clocks, made - 1, seconds, seconds);
        }
        MPI_Bcast(&has_ended, 1, MPI_INT, 0, cast->comm);
        arms->is_checked = has_ended;
        if (has_ended)
            memset(arms->received, 0, bytes_received(kind));
        aggressor_rounds[kind](cast, arms);
        sample_operation();
        point->load.all++;
        if (leads && made == 0) {
            sample_clocks_start();
            start = sample_now();
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
    }
    payload_require_marks(arms->lacking, arms->message);
}

static void be_aggressor(const struct cast *cast, struct point *point, struct arms *arms)
{
    rest_until_all(MPI_COMM_WORLD);
    fill(point->aggressor, arms);
    attack(cast, point, arms);
    rest_until_all(MPI_COMM_WORLD);
}

/* Measuring and reporting ---------------------------------------------------------------------- */

static void measure_all(struct cast *cast, struct point *points, int count)
{
    size_t most = 0;
    for (int i = 0; i < count; i++) {
        enum aggressor kind = points[i].aggressor;
        size_t bytes = is_victim[bench.rank] ? 0 : bytes_sent(kind) + bytes_received(kind);
        most = bytes > most ? bytes : most;
    }
    memory_require(most, "use a smaller --size");
    struct arms arms = { .sent = memory_allocate(most) };
    double seconds = (double)patience + 2 * budget;
    for (int round = 0; round < ROUNDS; round++) {
        draw_order(cast, round);
        for (int i = 0; i < count; i++) {
            patience_start(seconds, "%s beside %s", victim_names[points[i].victim],
                           aggressor_names[points[i].aggressor]);
            if (is_victim[bench.rank])
                be_victim(cast, &points[i]);
            else
                be_aggressor(cast, &points[i], &arms);
        }
    }
    patience_end();
    free(arms.sent);
}

/* What all victims measured, on the first of them. */
static void add_up(const struct cast *cast, struct tally *tally)
{
    enum { CLOCKS = sizeof tally->clocks / sizeof(double) };
    struct tally own = *tally;
    MPI_Reduce(own.counts, tally->counts, BINS, MPI_INT64_T, MPI_SUM, 0, cast->comm);
    MPI_Reduce(&own.seconds, &tally->seconds, 1, MPI_DOUBLE, MPI_SUM, 0, cast->comm);
    MPI_Reduce(&own.clocks, &tally->clocks, CLOCKS, MPI_DOUBLE, MPI_SUM, 0, cast->comm);
}

/* What the first aggressor counted, on the first victim. */
static void tell_load(struct load *load)
{
    enum { PARTS = sizeof *load / sizeof(double) };
    if (bench.rank == first_aggressor)
        MPI_Send(load, PARTS, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
    else if (bench.rank == 0)
        MPI_Recv(load, PARTS, MPI_DOUBLE, first_aggressor, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* As if the times of a bin were spread over it evenly. */
static double percentile(const struct tally *tally, double share)
{
    double below = 0, wanted = share * tally->clocks.operations;
    int bin = 0;
    while (bin < BINS - 1 && below + (double)tally->counts[bin] < wanted)
        below += (double)tally->counts[bin++];
    double part = (wanted - below) / (double)tally->counts[bin];
    return SHORTEST * exp2((bin + part) / BINS_PER_OCTAVE);
}

static const struct {
    const char *name;
    double share;
} percentiles[] = { { "median", 0.5 }, { "p99", 0.99 } };
enum { PERCENTILES = sizeof percentiles / sizeof *percentiles };

static void write_tally(const char *name, const struct tally *tally, const double *times)
{
    json_object(bench.json, name);
    json_object(bench.json, "time");
    for (int i = 0; i < PERCENTILES; i++)
        json_number(bench.json, percentiles[i].name, times[i]);
    json_end(bench.json);
    json_number(bench.json, "seconds", tally->seconds);
    json_object(bench.json, "clocks");
    sample_clocks_json(bench.json, &tally->clocks);
    json_end(bench.json);
    json_array(bench.json, "histogram");
    for (int i = 0; i < BINS; i++)
        if (tally->counts[i]) {
            json_array(bench.json, NULL);
            json_integer(bench.json, NULL, i);
            json_integer(bench.json, NULL, (long long)tally->counts[i]);
            json_end(bench.json);
        }
    json_end(bench.json);
    json_end(bench.json);
}

static double bytes_of_round(enum aggressor kind)
{
    double all = aggressor_count(), sends = kind == INCAST ? all - 1 : all;
    double to = kind == ALLTOALL ? all - 1 : 1;
    return sends * to * messages_of(kind) * (double)message_of(kind);
}

static void report(const struct point *point)
{
    const struct load *load = &point->load;
    double times[STATES][PERCENTILES];
    for (int i = 0; i < STATES; i++)
        for (int j = 0; j < PERCENTILES; j++)
            times[i][j] = percentile(&point->tallies[i], percentiles[j].share);
    double bandwidth = load->clocks.operations * bytes_of_round(point->aggressor) /
                       load->clocks.own;
    printf("%-10s %-9s %11.3f %11.3f %11.3f %11.3f %8.2f %8.2f %9.0f %10.2f\n",
           victim_names[point->victim], aggressor_names[point->aggressor], times[ALONE][0] * 1e6,
           times[ALONE][1] * 1e6, times[BESIDE][0] * 1e6, times[BESIDE][1] * 1e6,
           times[BESIDE][0] / times[ALONE][0], times[BESIDE][1] / times[ALONE][1],
           point->tallies[BESIDE].clocks.operations, bandwidth * 1e-6);
    json_object(bench.json, NULL);
    json_string(bench.json, "victim", victim_names[point->victim]);
    json_string(bench.json, "aggressor", aggressor_names[point->aggressor]);
    for (int i = 0; i < STATES; i++)
        write_tally(state_names[i], &point->tallies[i], times[i]);
    json_object(bench.json, "impact");
    for (int j = 0; j < PERCENTILES; j++)
        json_number(bench.json, percentiles[j].name, times[BESIDE][j] / times[ALONE][j]);
    json_end(bench.json);
    json_object(bench.json, "load");
    json_integer(bench.json, "size", (long long)message_of(point->aggressor));
    json_integer(bench.json, "messages", messages_of(point->aggressor));
    json_object(bench.json, "clocks");
    sample_clocks_json(bench.json, &load->clocks);
    json_end(bench.json);
    json_integer(bench.json, "all_rounds", (long long)load->all);
    json_number(bench.json, "bandwidth", bandwidth);
    json_end(bench.json);
    json_end(bench.json);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    cast_roles();
    struct cast cast = cast_make();
    struct point *points = memory_allocate(VICTIMS * AGGRESSORS * sizeof *points);
    int count = 0;
    for (int victim = 0; victim < VICTIMS; victim++)
        for (int aggressor = 0; aggressor < AGGRESSORS; aggressor++)
            if (chosen_victims & 1u << victim && chosen_aggressors & 1u << aggressor) {
                points[count].victim = victim;
                points[count++].aggressor = aggressor;
            }
    measure_all(&cast, points, count);
    if (bench.rank == 0) {
        printf("\n%d victims and %d aggressors\n", victim_count, aggressor_count());
        printf("%-10s %-9s %11s %11s %11s %11s %8s %8s %9s %10s\n", "victim", "aggressor",
               "alone us", "99% us", "beside us", "99% us", "impact", "of 99%", "beside",
               "load MB/s");
    }
    json_array(bench.json, "victims");
    for (int rank = 0; rank < bench.ranks; rank++)
        if (is_victim[rank])
            json_integer(bench.json, NULL, rank);
    json_end(bench.json);
    json_array(bench.json, "results");
    for (int i = 0; i < count; i++) {
        for (int state = 0; is_victim[bench.rank] && state < STATES; state++)
            add_up(&cast, &points[i].tallies[state]);
        tell_load(&points[i].load);
        if (bench.rank == 0)
            report(&points[i]);
    }
    json_end(bench.json);
    cast_free(&cast);
    free(is_victim);
    free(points);
    return bench_end();
}
