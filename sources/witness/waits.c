#define _GNU_SOURCE 1
#include "waits.h"

#include <sched.h>
#include <stdlib.h>

#include "clocks.h"
#include "messages.h"
#include "ticks.h"
#include "witness.h"

enum { CHUNK = 512, TAG = 303 };

#define UNKNOWN INT64_MIN

/* Sums of what was analysed: as it was found, and with each wait counting for those that it stands
 * for, which gives the shares. */
struct analysis {
    double analysed[CALLS];
    struct waits weighted[CALLS];
};

static double seconds(int64_t ns)
{
    return 1e-9 * (double)ns;
}

/* ---- Collectives ---- */

static void judge_instance(const struct instance *instance, int64_t latest,
                           struct analysis *analysis)
{
    int64_t begin = clocks_global(instance->begin), end = clocks_global(instance->end);
    int64_t waited = 0;
    if (instance->arrival != ROOT_WAITS_FOR_ALL || instance->root)
        waited = latest - begin;
    if (waited < 0)
        waited = 0;
    if (waited > end - begin)
        waited = end - begin;
    double weight = instance_stands_for(instance->sequence);
    analysis->analysed[instance->call] += seconds(end - begin);
    analysis->weighted[instance->call].analysed += weight * seconds(end - begin);
    analysis->weighted[instance->call].imbalance += weight * seconds(waited);
}

static bool all_have_as_many(const struct instances *log, MPI_Comm comm)
{
    int64_t kept = log->broken ? -1 : (int64_t)log->count;
    int64_t bounds[2] = { kept, -kept };
    return PMPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_INT64_T, MPI_MAX, comm) == MPI_SUCCESS &&
           bounds[0] == -bounds[1] && kept >= 0;
}

static void analyse_collectives(const struct instances *log, MPI_Comm comm,
                                struct analysis *analysis)
{
    if (!all_have_as_many(log, comm))
        return;
    int64_t latest[CHUNK];
    for (uint32_t first = 0; first < log->count; first += CHUNK) {
        const struct instance *instances = log->kept + first;
        int count = log->count - first < CHUNK ? (int)(log->count - first) : CHUNK;
        for (int i = 0; i < count; i++) {
            bool awaited = instances[i].arrival != ALL_WAIT_FOR_ROOT || instances[i].root;
            latest[i] = awaited ? clocks_global(instances[i].begin) : UNKNOWN;
        }
        if (PMPI_Allreduce(MPI_IN_PLACE, latest, count, MPI_INT64_T, MPI_MAX, comm) != MPI_SUCCESS)
            return;
        for (int i = 0; i < count; i++)
            if (latest[i] != UNKNOWN)
                judge_instance(&instances[i], latest[i], analysis);
    }
}

/* A communicator that the program has freed is made again. Its members alone take part, so the tag
 * keeps apart those that are made at the same time. */
static bool make_again(const struct members *members, MPI_Comm *again)
{
    /* MPICH 4 needs a communicator to have been asked for its group before, or it crashes. */
    MPI_Group all;
    if (PMPI_Comm_group(witness.comm, &all) != MPI_SUCCESS)
        return false;
    int tag = (int)(members->id & 0x7fff);
    bool made = PMPI_Comm_create_group(witness.comm, members->group, tag, again) == MPI_SUCCESS;
    PMPI_Group_free(&all);
    return made;
}

static void analyse_communicator(const struct members *members, struct analysis *analysis)
{
    MPI_Comm again;
    if (!members->log)
        return;
    if (members->comm != MPI_COMM_NULL) {
        analyse_collectives(members->log, members->comm, analysis);
    } else if (make_again(members, &again)) {
        analyse_collectives(members->log, again, analysis);
        PMPI_Comm_free(&again);
    }
}

/* ---- Messages ---- */

/* This rank's messages, sorted, with times of clocks_global: what it tells its partners, and what it
 * looks up what they tell in. */
struct exchange {
    struct message *messages;
    int64_t *other_side; /* when the other rank came, or UNKNOWN */
    MPI_Request *sends;
    int count, send_count;
};

static int by_peer_and_number(const void *left, const void *right)
{
    const struct message *a = left, *b = right;
    if (a->peer != b->peer)
        return a->peer < b->peer ? -1 : 1;
    if (a->side != b->side)
        return a->side < b->side ? -1 : 1;
    if (a->channel != b->channel)
        return a->channel < b->channel ? -1 : 1;
    return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

/* Messages from `first` on that go in one piece: those of one partner, as many as a piece holds. */
static int piece_length(const struct exchange *exchange, int first)
{
    int length = 1;
    while (length < CHUNK && first + length < exchange->count &&
           exchange->messages[first + length].peer == exchange->messages[first].peer)
        length++;
    return length;
}

static void release(struct exchange *exchange)
{
    free(exchange->messages);
    free(exchange->other_side);
    free(exchange->sends);
}

/* Without memory there is nothing to exchange. */
static struct exchange prepare(const struct messages *log)
{
    struct exchange exchange = {
        .messages = malloc((log->count + 1) * sizeof *exchange.messages),
        .other_side = malloc((log->count + 1) * sizeof *exchange.other_side),
    };
    if (!exchange.messages || !exchange.other_side)
        return exchange;
    exchange.count = (int)log->count;
    for (int i = 0; i < exchange.count; i++) {
        exchange.messages[i] = log->messages[i];
        exchange.messages[i].time = clocks_global(log->messages[i].time);
        exchange.other_side[i] = UNKNOWN;
    }
    if (exchange.count)
        qsort(exchange.messages, log->count, sizeof *exchange.messages, by_peer_and_number);
    int pieces = 0;
    for (int first = 0; first < exchange.count; first += piece_length(&exchange, first))
        pieces++;
    exchange.sends = malloc(((size_t)pieces + 1) * sizeof *exchange.sends);
    if (!exchange.sends)
        exchange.count = 0;
    return exchange;
}

/* They are only sent once they have been received. */
static void send_all(struct exchange *exchange)
{
    for (int first = 0; first < exchange->count;) {
        int length = piece_length(exchange, first);
        const struct message *piece = &exchange->messages[first];
        if (PMPI_Issend(piece, length * (int)sizeof *piece, MPI_BYTE, piece->peer, TAG,
                        witness.comm, &exchange->sends[exchange->send_count]) == MPI_SUCCESS)
            exchange->send_count++;
        first += length;
    }
}

/* What another rank says of a message tells this rank's record of it. Its own records may be
 * several: a probe, and the receive. */
static void note(struct exchange *exchange, const struct message *told, int peer)
{
    struct message own = *told;
    own.peer = peer;
    own.side = !told->side;
    int low = 0, high = exchange->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (by_peer_and_number(&exchange->messages[middle], &own) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (int i = low; i < exchange->count; i++) {
        if (by_peer_and_number(&exchange->messages[i], &own) != 0)
            break;
        if (exchange->messages[i].tag == told->tag && exchange->other_side[i] < told->time)
            exchange->other_side[i] = told->time;
    }
}

/* Takes one piece, if one has arrived. */
static bool receive_piece(struct exchange *exchange)
{
    struct message told[CHUNK];
    MPI_Status status;
    int arrived = 0, bytes = 0;
    if (PMPI_Iprobe(MPI_ANY_SOURCE, TAG, witness.comm, &arrived, &status) != MPI_SUCCESS ||
        !arrived)
        return false;
    if (PMPI_Recv(told, sizeof told, MPI_BYTE, status.MPI_SOURCE, TAG, witness.comm, &status) !=
        MPI_SUCCESS)
        return false;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    for (int i = 0; i < bytes / (int)sizeof *told; i++)
        note(exchange, &told[i], status.MPI_SOURCE);
    return true;
}

/* The barrier ends when the pieces of all ranks have been received. */
static void tell_each_other(struct exchange *exchange)
{
    MPI_Request barrier = MPI_REQUEST_NULL;
    bool all_sent = false;
    send_all(exchange);
    for (;;) {
        bool received = receive_piece(exchange);
        int done = 0;
        if (!all_sent) {
            if (PMPI_Testall(exchange->send_count, exchange->sends, &done, MPI_STATUSES_IGNORE) !=
                MPI_SUCCESS)
                return;
            if (done && PMPI_Ibarrier(witness.comm, &barrier) != MPI_SUCCESS)
                return;
            all_sent = done;
        } else if (PMPI_Test(&barrier, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done) {
            return;
        }
        if (!received)
            sched_yield();
    }
}

/* What is known of a wait, by the side of the other rank. */
struct judgement {
    int64_t until[2]; /* the latest of that side, or UNKNOWN */
    bool incomplete;
};

static void judge_messages(const struct exchange *exchange, const struct messages *log,
                           struct judgement *judgements)
{
    for (int i = 0; i < exchange->count; i++) {
        const struct message *message = &exchange->messages[i];
        int64_t came = exchange->other_side[i];
        if (message->wait == NO_WAIT)
            continue;
        struct judgement *judgement = &judgements[message->wait];
        int64_t *until = &judgement->until[!message->side];
        int64_t end = clocks_global(log->waits[message->wait].end);
        if (came == UNKNOWN)
            judgement->incomplete = true;
        /* What has been received was sent before, whatever the clocks say. */
        if (came > end && message->side == RECEIVER)
            came = end;
        if (came <= end && came > *until)
            *until = came;
    }
}

static void judge_wait(const struct wait *wait, const struct judgement *judgement,
                       struct waits *sums)
{
    if (judgement->incomplete)
        return;
    const int64_t *until = judgement->until;
    int64_t begin = clocks_global(wait->begin);
    sums->analysed += seconds(clocks_global(wait->end) - begin);
    if (until[SENDER] > begin && until[SENDER] >= until[RECEIVER])
        sums->late_sender += seconds(until[SENDER] - begin);
    else if (until[RECEIVER] > begin)
        sums->late_receiver += seconds(until[RECEIVER] - begin);
}

/* What was analysed of a part of the run stands for all of its waits. */
static void add_part(const struct waits *sums, const int64_t *waited, struct analysis *analysis)
{
    for (int call = 0; call < CALLS; call++) {
        if (sums[call].analysed <= 0)
            continue;
        double whole = ticks_to_seconds(waited[call]), weight = whole / sums[call].analysed;
        analysis->analysed[call] += sums[call].analysed;
        analysis->weighted[call].analysed += whole;
        analysis->weighted[call].late_sender += weight * sums[call].late_sender;
        analysis->weighted[call].late_receiver += weight * sums[call].late_receiver;
    }
}

static void judge_all(const struct exchange *exchange, const struct messages *log,
                      struct judgement *judgements, struct analysis *analysis)
{
    for (uint32_t i = 0; i < log->wait_count; i++)
        judgements[i] = (struct judgement){ { UNKNOWN, UNKNOWN }, false };
    judge_messages(exchange, log, judgements);
    for (int part = 0; part < PARTS; part++) {
        struct waits sums[CALLS] = { 0 };
        for (uint32_t i = 0; i < log->wait_count; i++)
            if (log->waits[i].part == part)
                judge_wait(&log->waits[i], &judgements[i], &sums[log->waits[i].call]);
        add_part(sums, log->waited[part], analysis);
    }
}

static void analyse_messages(struct analysis *analysis)
{
    const struct messages *log = messages_logged();
    struct exchange exchange = prepare(log);
    tell_each_other(&exchange);
    struct judgement *judgements = malloc((log->wait_count + 1) * sizeof *judgements);
    if (exchange.count && judgements)
        judge_all(&exchange, log, judgements, analysis);
    free(judgements);
    release(&exchange);
}

void waits_analyse(const struct members *communicators, int count, struct waits result[CALLS])
{
    struct analysis analysis = { 0 };
    for (int i = 0; i < count; i++)
        analyse_communicator(&communicators[i], &analysis);
    analyse_messages(&analysis);
    for (int call = 0; call < CALLS; call++) {
        const struct waits *weighted = &analysis.weighted[call];
        double scale = weighted->analysed > 0 ? analysis.analysed[call] / weighted->analysed : 0;
        result[call] = (struct waits){
            .analysed = analysis.analysed[call],
            .late_sender = scale * weighted->late_sender,
            .late_receiver = scale * weighted->late_receiver,
            .imbalance = scale * weighted->imbalance,
        };
    }
}
