/* matching: many senders to one rank, and messages that wait in line.
 *
 * An MPI holds each message that arrives against the receives that are posted, and each receive that
 * is posted against the messages that have arrived. Receives from MPI_ANY_SOURCE take another way
 * there, and long lines make it slow. What is measured stands in the help text below.
 *
 * Payload: each message has a pattern of its sender and its number. MPI keeps messages of a sender
 * in order, so the n-th receive that a sender answers must hold its n-th message. All messages that
 * still lie in a buffer are checked whole after each burst, outside the time, and from each sender as
 * many as it sent must have come. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "memory.h"
#include "pair.h"
#include "patience.h"
#include "payload.h"
#include "ping_pong.h"
#include "sample.h"

static const struct bench_about about = {
    .program = "matching",
    .purpose = "many senders to one rank, by name and from any source, and messages in long lines",
    .text =
        "incast: rank 0 receives a burst of messages from all other ranks at once, either from\n"
        "each by name or from MPI_ANY_SOURCE. A burst has 64 small messages or 16 large ones, and\n"
        "at least one of each sender; as many receives are posted at a time. A barrier, which is\n"
        "not timed, precedes each burst. Time: of a burst on rank 0 over its messages.\n"
        "Between rank 0 and the last rank:\n"
        "  ping-pong    half a round trip, with nothing in line.\n"
        "  posted       that of the small message, while on both sides so many receives that it\n"
        "               does not match were posted before.\n"
        "  unexpected   while on both sides so many messages have arrived before that nobody\n"
        "               has asked for yet.\n"
        "A burst or a ping-pong that does not come to an end within --patience ends the job, and\n"
        "is named.\n",
    .examples = "  mpirun -n 16 matching\n"
                "  mpirun -n 2 matching --source named --lines 16,256,4096 --json matching.json\n",
    .min_ranks = 2,
};

enum source { NAMED, ANY, SOURCES };
static const char *const source_names[] = { "named", "any", NULL };
enum line { POSTED, UNEXPECTED, LINES };
static const char *const line_names[] = { "posted", "unexpected" };

enum { MOST_WAITING = 1 << 16 };

static size_t small = 8, large = (size_t)256 << 10;
static unsigned sources = (1u << SOURCES) - 1;
static struct option_numbers waiting = { .values = { 16, 256, 1024 }, .count = 3 };
static long patience = PATIENCE_SECONDS;
static struct sample_plan plan = SAMPLE_DEFAULTS;

/* clang-format off */
static const struct option_spec options[] = {
    { .name = "small", .kind = OPTION_SIZE, .value = &small, .argument = "BYTES", .low = 8,
      .high = (size_t)1 << 30, .help = "a message that MPIs send at once (eagerly)" },
    { .name = "large", .kind = OPTION_SIZE, .value = &large, .argument = "BYTES", .low = 8,
      .high = (size_t)1 << 30, .help = "a message that waits for its receiver (rendezvous)" },
    { .name = "source", .kind = OPTION_CHOICES, .value = &sources, .argument = "LIST",
      .choices = source_names, .help = "how rank 0 names the senders" },
    { .name = "lines", .kind = OPTION_NUMBERS, .value = &waiting, .argument = "LIST", .low = 1,
      .high = MOST_WAITING, .help = "lengths of the lines of receives and messages that wait" },
    PATIENCE_OPTION(patience),
    SAMPLE_OPTIONS(plan),
    { .name = NULL },
};
/* clang-format on */

/* Incast --------------------------------------------------------------------------------------- */

enum { TAG = 1, WAITING_TAG = 2, WORD = 8 };

struct incast {
    enum source source;
    size_t size;
    long message; /* number of the first one of a sender */
    int slots;    /* receives that are posted at a time */
    int burst;    /* messages of each sender */
    struct sample *sample;
};

/* Of rank 0: what came into each slot, and how many from each sender. */
static MPI_Request *requests;
static MPI_Status *statuses;
static int *numbers, *received;

static struct incast incast_of(enum source source, size_t size, long message)
{
    int slots = size <= 4096 ? 64 : 16, senders = bench.ranks - 1;
    return (struct incast){
        .source = source,
        .size = size,
        .message = message,
        .slots = slots,
        .burst = slots > senders ? slots / senders : 1,
    };
}

static int messages_of(const struct incast *incast)
{
    return incast->burst * (bench.ranks - 1);
}

static void send_burst(const struct incast *incast, char *memory)
{
    for (int i = 0; i < incast->burst; i++)
        MPI_Isend(memory + (size_t)i * incast->size, (int)incast->size, MPI_BYTE, 0, TAG,
                  MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(incast->burst, requests, MPI_STATUSES_IGNORE);
}

static void post(const struct incast *incast, char *memory, int i)
{
    int slot = i % incast->slots;
    int source = incast->source == ANY ? MPI_ANY_SOURCE : 1 + i % (bench.ranks - 1);
    MPI_Irecv(memory + (size_t)slot * incast->size, (int)incast->size, MPI_BYTE, source, TAG,
              MPI_COMM_WORLD, &requests[slot]);
}

/* Receives are waited for in the order in which they were posted: so messages of a sender come in
 * the order in which it sent them. */
static void take(const struct incast *incast, int i)
{
    int slot = i % incast->slots;
    MPI_Wait(&requests[slot], &statuses[slot]);
    int source = statuses[slot].MPI_SOURCE;
    if (source < 1 || source >= bench.ranks)
        bench_abort(EXIT_WRONG_PAYLOAD, "a message came from rank %d, which does not send", source);
    numbers[slot] = received[source]++;
}

static void receive_burst(const struct incast *incast, char *memory)
{
    int messages = messages_of(incast);
    for (int i = 0; i < messages; i++) {
        if (i >= incast->slots)
            take(incast, i - incast->slots);
        post(incast, memory, i);
    }
    for (int i = messages > incast->slots ? messages - incast->slots : 0; i < messages; i++)
        take(incast, i);
}

/* Then makes all ready for the next burst. */
static void check_burst(const struct incast *incast, char *memory)
{
    for (int sender = 1; sender < bench.ranks; sender++) {
        if (received[sender] != incast->burst)
            bench_abort(EXIT_WRONG_PAYLOAD, "%d messages came from rank %d, which sent %d",
                        received[sender], sender, incast->burst);
        received[sender] = 0;
    }
    int messages = messages_of(incast);
    for (int slot = 0; slot < incast->slots && slot < messages; slot++) {
        char *message = memory + (size_t)slot * incast->size;
        int bytes;
        MPI_Get_count(&statuses[slot], MPI_BYTE, &bytes);
        if (bytes != (int)incast->size)
            bench_abort(EXIT_WRONG_PAYLOAD, "a message from rank %d has %d bytes instead of %zu",
                        statuses[slot].MPI_SOURCE, bytes, incast->size);
        payload_check(message, incast->size, statuses[slot].MPI_SOURCE,
                      incast->message + numbers[slot]);
        payload_spoil(message, incast->size, statuses[slot].MPI_SOURCE,
                      incast->message + numbers[slot]);
    }
}

/* That the receives of a burst are what they are said to be, before any is timed: rank 0 posts the first
 * one, sends itself a message, and only then lets rank 1 send one. By name the receive leaves the
 * message of rank 0 to another. From any source it takes it, and rank 1 may send when it has: of two
 * senders either message may arrive first. A receive by another name would wait for ever. */
static void check_source(const struct incast *incast, char *memory)
{
    char own[WORD] = { 0 }, other[WORD];
    if (bench.rank == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, WAITING_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(own, WORD, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    }
    if (bench.rank != 0)
        return;
    MPI_Request sent;
    post(incast, memory, 0);
    MPI_Isend(own, WORD, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &sent);
    if (incast->source == ANY)
        MPI_Wait(&requests[0], &statuses[0]);
    MPI_Send(NULL, 0, MPI_BYTE, 1, WAITING_TAG, MPI_COMM_WORLD);
    if (incast->source != ANY)
        MPI_Wait(&requests[0], &statuses[0]);
    int source = statuses[0].MPI_SOURCE;
    if (source != (incast->source == ANY ? 0 : 1))
        bench_abort(EXIT_WRONG_PAYLOAD, "a receive from %s took the message of rank %d",
                    incast->source == ANY ? "any source" : "rank 1", source);
    MPI_Recv(other, WORD, MPI_BYTE, 1 - source, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

struct bursts {
    const struct incast *incast;
    char *memory;
};

static double incast_batch(void *context, long iterations)
{
    const struct bursts *bursts = context;
    if (bench.rank != 0) {
        for (long i = 0; i < iterations; i++) {
            sample_barrier(MPI_COMM_WORLD);
            send_burst(bursts->incast, bursts->memory);
        }
        return 0;
    }
    struct sample_parts parts = sample_parts_start();
    for (long i = 0; i < iterations; i++) {
        sample_barrier(MPI_COMM_WORLD);
        struct sample_mark start = sample_mark();
        receive_burst(bursts->incast, bursts->memory);
        sample_operation();
        sample_parts_add(&parts, start);
        check_burst(bursts->incast, bursts->memory);
    }
    return sample_parts_end(&parts) / messages_of(bursts->incast);
}

static void measure_incast(struct incast *incast, char *memory)
{
    patience_start((double)patience + plan.budget, "incast from %s of %zu bytes",
                   incast->source == ANY ? "MPI_ANY_SOURCE" : "named ranks", incast->size);
    for (int i = 0; bench.rank != 0 && i < incast->burst; i++)
        payload_fill(memory + (size_t)i * incast->size, incast->size, bench.rank,
                     incast->message + i);
    check_source(incast, memory);
    struct bursts bursts = { incast, memory };
    sample_bout(incast->sample, MPI_COMM_WORLD, incast_batch, &bursts);
    patience_end();
}

/* Ping-pongs, past those that wait in line ------------------------------------------------------ */

struct ping {
    enum line line;
    int waiting; /* receives or messages in line on each side; 0 for none */
    size_t size;
    struct sample *sample;
};

/* Of one of the pair. */
struct player {
    MPI_Comm pair;
    const struct ping *ping;
    int other, other_world;
    struct memory_pool send, receive;
    char *line_sent, *line_received;
    MPI_Request *sent, *asked;
};

static void ask_for_line(const struct player *player)
{
    for (int i = 0; i < player->ping->waiting; i++)
        MPI_Irecv(player->line_received + (size_t)i * WORD, WORD, MPI_BYTE, player->other,
                  WAITING_TAG, player->pair, &player->asked[i]);
}

static void send_line(const struct player *player)
{
    for (int i = 0; i < player->ping->waiting; i++)
        MPI_Isend(player->line_sent + (size_t)i * WORD, WORD, MPI_BYTE, player->other, WAITING_TAG,
                  player->pair, &player->sent[i]);
}

/* What waited during a ping-pong: receives or messages, as it says. */
static void check_line(const struct player *player)
{
    bool is_posted = player->ping->line == POSTED;
    for (int i = 0; i < player->ping->waiting; i++)
        if ((player->asked[i] != MPI_REQUEST_NULL) != is_posted ||
            (player->sent[i] != MPI_REQUEST_NULL) == is_posted)
            bench_abort(EXIT_BROKEN, "%s %d of %d was not in line during the ping-pong",
                        is_posted ? "receive" : "message", i + 1, player->ping->waiting);
}

static void end_line(const struct player *player)
{
    int count = player->ping->waiting;
    MPI_Waitall(count, player->asked, MPI_STATUSES_IGNORE);
    MPI_Waitall(count, player->sent, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++) {
        payload_check(player->line_received + (size_t)i * WORD, WORD, player->other_world, i);
        payload_spoil(player->line_received + (size_t)i * WORD, WORD, player->other_world, i);
    }
}

static double ping_batch(void *context, long iterations)
{
    struct player *player = context;
    const struct ping *ping = player->ping;
    bool is_posted = ping->line == POSTED;
    if (is_posted)
        ask_for_line(player);
    else
        send_line(player);
    double seconds =
        ping_pong(player->pair, (int)ping->size, &player->send, &player->receive, iterations);
    check_line(player);
    if (is_posted)
        send_line(player);
    else
        ask_for_line(player);
    end_line(player);
    char *received_last = memory_pool_slot(&player->receive);
    payload_check(received_last, ping->size, player->other_world, (long)ping->size);
    payload_spoil(received_last, ping->size, player->other_world, (long)ping->size);
    return seconds;
}

static void measure_ping(struct player *player, struct ping *ping)
{
    pair_step((double)patience + plan.budget);
    patience_start((double)patience + plan.budget, "a ping-pong of %zu bytes behind %d %s",
                   ping->size, ping->waiting, ping->line == POSTED ? "receives" : "messages");
    player->ping = ping;
    memory_pool_divide(&player->send, ping->size, 1);
    memory_pool_divide(&player->receive, ping->size, 1);
    payload_fill(memory_pool_slot(&player->send), ping->size, bench.rank, (long)ping->size);
    payload_spoil(memory_pool_slot(&player->receive), ping->size, player->other_world,
                  (long)ping->size);
    sample_bout(ping->sample, player->pair, ping_batch, player);
    patience_end();
}

static size_t longest_line(void)
{
    size_t most = 0;
    for (int i = 0; i < waiting.count; i++)
        if ((size_t)waiting.values[i] > most)
            most = (size_t)waiting.values[i];
    return most;
}

static void measure_pings(struct ping *pings, int count, int round)
{
    MPI_Comm pair = pair_enter();
    if (pair == MPI_COMM_NULL)
        return;
    size_t most = longest_line(), size = small > large ? small : large;
    size_t pool = memory_pool_bytes(size, 1, true);
    struct player player = {
        .pair = pair,
        .other = bench.rank == 0 ? 1 : 0,
        .other_world = bench.ranks - 1 - bench.rank,
        .send = memory_pool_make(pool, true),
        .receive = memory_pool_make(pool, true),
        .line_sent = memory_allocate(most * WORD),
        .line_received = memory_allocate(most * WORD),
        .sent = memory_allocate(most * sizeof(MPI_Request)),
        .asked = memory_allocate(most * sizeof(MPI_Request)),
    };
    for (size_t i = 0; i < most; i++) {
        payload_fill(player.line_sent + i * WORD, WORD, bench.rank, (long)i);
        player.sent[i] = player.asked[i] = MPI_REQUEST_NULL;
    }
    for (int i = 0; i < count; i++)
        if (sample_is_due(pings[i].sample, round))
            measure_ping(&player, &pings[i]);
    memory_pool_free(&player.send);
    memory_pool_free(&player.receive);
    free(player.line_sent);
    free(player.line_received);
    free(player.sent);
    free(player.asked);
    pair_leave(&pair);
}

/* Points and their report ---------------------------------------------------------------------- */

enum { MOST_INCASTS = 2 * SOURCES, MOST_PINGS = 2 + LINES * OPTION_MOST_NUMBERS };

static struct incast incasts[MOST_INCASTS];
static struct ping pings[MOST_PINGS];
static int incast_count, ping_count;

static void add_ping(enum line line, int count, size_t size)
{
    pings[ping_count++] = (struct ping){
        .line = line, .waiting = count, .size = size, .sample = sample_start(plan, SAMPLE_ROUNDS)
    };
}

static void list_points(void)
{
    add_ping(POSTED, 0, small);
    add_ping(POSTED, 0, large);
    for (int line = 0; line < LINES; line++)
        for (int i = 0; i < waiting.count; i++)
            add_ping(line, (int)waiting.values[i], small);
    for (int source = 0; source < SOURCES; source++) {
        if (!(sources & 1u << source))
            continue;
        for (int i = 0; i < 2; i++) {
            incasts[incast_count] = incast_of(source, i == 0 ? small : large, 1024L * incast_count);
            incasts[incast_count++].sample = sample_start(plan, SAMPLE_ROUNDS);
        }
    }
}

static void report(const char *measure, const char *how, size_t size, int count,
                   const struct sample_result *result)
{
    const struct stats *time = &result->time;
    printf("%-11s %-6s %8d %10zu %12.3f %12.3f %8.2f %8d  %s\n", measure, how, count, size,
           time->best * 1e6, time->median * 1e6, stats_uncertainty(time) * 100, result->samples,
           result->stopped_by);
}

static void report_incast(const struct incast *incast)
{
    struct sample_result result = sample_end(incast->sample);
    if (bench.rank != 0)
        return;
    report("incast", source_names[incast->source], incast->size, bench.ranks - 1, &result);
    json_object(bench.json, NULL);
    json_string(bench.json, "measure", "incast");
    json_string(bench.json, "source", source_names[incast->source]);
    json_integer(bench.json, "size", (long long)incast->size);
    json_integer(bench.json, "senders", bench.ranks - 1);
    json_integer(bench.json, "messages", messages_of(incast));
    sample_json(bench.json, &result);
    json_end(bench.json);
}

static void report_ping(const struct ping *ping)
{
    struct sample_result result = sample_end(ping->sample);
    if (bench.rank != 0)
        return;
    const char *measure = ping->waiting ? line_names[ping->line] : "ping-pong";
    report(measure, "", ping->size, ping->waiting, &result);
    json_object(bench.json, NULL);
    json_string(bench.json, "measure", measure);
    json_integer(bench.json, "size", (long long)ping->size);
    json_integer(bench.json, "waiting", ping->waiting);
    sample_json(bench.json, &result);
    json_end(bench.json);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, &about, options);
    list_points();
    size_t bytes = 0;
    int most = 1;
    for (int i = 0; i < incast_count; i++) {
        int slots = bench.rank == 0 ? incasts[i].slots : incasts[i].burst;
        size_t need = (size_t)slots * incasts[i].size;
        bytes = need > bytes ? need : bytes;
        most = slots > most ? slots : most;
    }
    memory_require(bytes + 2 * (small > large ? small : large),
                   "use a smaller --large or fewer ranks per host");
    char *memory = memory_allocate(bytes);
    requests = memory_allocate((size_t)most * sizeof *requests);
    statuses = memory_allocate((size_t)most * sizeof *statuses);
    numbers = memory_allocate((size_t)most * sizeof *numbers);
    received = memory_allocate((size_t)bench.ranks * sizeof *received);

    if (bench.rank == 0)
        printf("\n%-11s %-6s %8s %10s %12s %12s %8s %8s  %s\n", "measure", "source", "in line",
               "bytes", "best us", "median us", "+- %", "samples", "stopped by");
    for (int round = 0; round < SAMPLE_ROUNDS; round++) {
        measure_pings(pings, ping_count, round);
        for (int i = 0; i < incast_count; i++)
            if (sample_is_due(incasts[i].sample, round))
                measure_incast(&incasts[i], memory);
    }
    json_array(bench.json, "results");
    for (int i = 0; i < ping_count; i++)
        report_ping(&pings[i]);
    for (int i = 0; i < incast_count; i++)
        report_incast(&incasts[i]);
    json_end(bench.json);
    free(memory);
    free(requests);
    free(statuses);
    free(numbers);
    free(received);
    return bench_end();
}
