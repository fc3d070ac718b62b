#define _GNU_SOURCE 1
#include "waits.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "clocks.h"
#include "communicators.h"
#include "map.h"
#include "messages.h"
#include "ticks.h"
#include "witness.h"

enum { CHUNK = 512, TAG = 303, TIMES_TAG };

#define UNKNOWN INT64_MIN

/* Sums of what was analysed: as it was found, and with each wait counting for those that it stands
 * for, which gives the shares. */
struct analysis {
    double analysed[CALLS];
    struct waits weighted[CALLS];
    struct site_waits *sites; /* weighted as well; NULL for none */
    struct map waited_for;    /* by site and rank: struct waited_for */
};

struct waited_for {
    uint16_t site;
    int rank;
    double time;
};

static double seconds(int64_t ns)
{
    return 1e-9 * (double)ns;
}

/* `sums`: of one wait at a site, for a rank of MPI_COMM_WORLD. */
static void add_to_site(struct analysis *analysis, uint16_t site, double weight,
                        const struct waits *sums, int rank)
{
    if (!analysis->sites)
        return;
    struct waits *to = &analysis->sites[site].waits;
    to->analysed += weight * sums->analysed;
    to->late_sender += weight * sums->late_sender;
    to->late_receiver += weight * sums->late_receiver;
    to->imbalance += weight * sums->imbalance;
    double time = weight * (sums->late_sender + sums->late_receiver + sums->imbalance);
    if (time <= 0 || rank < 0 || rank == witness.rank)
        return;
    uint64_t key = (uint64_t)(uint32_t)rank << 16 | site;
    struct waited_for *known = map_get(&analysis->waited_for, key);
    if (!known) {
        if (!(known = malloc(sizeof *known)))
            return;
        *known = (struct waited_for){ .site = site, .rank = rank };
        if (!map_put(&analysis->waited_for, key, known)) {
            free(known);
            return;
        }
    }
    known->time += time;
}

/* Whom each site waited for longest. */
static void find_whom(struct analysis *analysis)
{
    for (size_t i = 0; i < analysis->waited_for.room; i++) {
        struct waited_for *one = analysis->waited_for.entries[i].value;
        struct site_waits *site = one ? &analysis->sites[one->site] : NULL;
        if (site && (one->time > site->longest ||
                     (one->time == site->longest && one->rank < site->for_rank))) {
            site->longest = one->time;
            site->for_rank = one->rank;
        }
        free(one);
    }
    free(analysis->waited_for.entries);
}

/* ---- Collectives ---- */

static void judge_instance(const struct instance *instance, int64_t latest, int last,
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
    struct waits one = { .analysed = seconds(end - begin), .imbalance = seconds(waited) };
    add_to_site(analysis, instance->site, weight, &one, last);
}

/* Whose log could be compared with those of the other members, as each of these says it. */
struct claim {
    uint64_t id;
    uint64_t instances, kept_and_size; /* `kept` in the upper half */
};
enum { CLAIM_WORDS = sizeof(struct claim) / sizeof(uint64_t), CLAIMS_MOST = 1 << 22 };

static struct claim claim_of(const struct communicator *communicator)
{
    const struct instances *log = communicator->log;
    return (struct claim){ communicator->id, log->next,
                           (uint64_t)log->count << 32 | (uint32_t)communicator->size };
}

/* All claims at rank 0, one rank's after the other's. */
struct claims {
    struct claim *claims;
    uint32_t *order; /* of their indices, by id */
    char *agreed;
    int *counts, *words, *first, *first_word; /* of each rank */
    int total;
};

static bool allocate_claims(struct claims *all)
{
    size_t ranks = (size_t)witness.ranks;
    *all = (struct claims){ .counts = calloc(4 * ranks, sizeof *all->counts) };
    if (!all->counts)
        return false;
    all->words = all->counts + ranks;
    all->first = all->words + ranks;
    all->first_word = all->first + ranks;
    return true;
}

static bool place_claims(struct claims *all)
{
    for (int rank = 0; rank < witness.ranks; rank++) {
        all->first[rank] = all->total;
        all->words[rank] = all->counts[rank] * CLAIM_WORDS;
        all->first_word[rank] = all->total * CLAIM_WORDS;
        all->total += all->counts[rank];
    }
    size_t room = (size_t)all->total + 1;
    all->claims = malloc(room * sizeof *all->claims);
    all->order = malloc(room * sizeof *all->order);
    all->agreed = calloc(room, 1);
    return all->claims && all->order && all->agreed;
}

static void free_claims(struct claims *all)
{
    free(all->claims);
    free(all->order);
    free(all->agreed);
    free(all->counts);
}

static int by_claimed_id(const void *left, const void *right, void *context)
{
    const struct claim *claims = context;
    uint64_t a = claims[*(const uint32_t *)left].id, b = claims[*(const uint32_t *)right].id;
    return (a > b) - (a < b);
}

/* Of each communicator all members have to claim the same. */
static void judge_claims(struct claims *all)
{
    for (int i = 0; i < all->total; i++)
        all->order[i] = (uint32_t)i;
    qsort_r(all->order, (size_t)all->total, sizeof *all->order, by_claimed_id, all->claims);
    for (int first = 0, after; first < all->total; first = after) {
        const struct claim *one = &all->claims[all->order[first]];
        bool same = true;
        for (after = first; after < all->total; after++) {
            const struct claim *other = &all->claims[all->order[after]];
            if (other->id != one->id)
                break;
            same &= memcmp(one, other, sizeof *one) == 0;
        }
        same &= after - first == (int)(uint32_t)one->kept_and_size;
        for (int i = first; i < after; i++)
            all->agreed[all->order[i]] = same;
    }
}

/* No rank can know by itself whether the other members have a log: one may have met an error, or have
 * freed what others keep. So rank 0 is asked, in collectives that all ranks take part in, and says of
 * each claim whether all members made it. */
static void agree(const struct claim *claims, int count, char *agreed)
{
    struct claims all = { 0 };
    int can = witness.rank != 0 || allocate_claims(&all);
    PMPI_Bcast(&can, 1, MPI_INT, 0, witness.comm);
    if (can) {
        PMPI_Gather(&count, 1, MPI_INT, all.counts, 1, MPI_INT, 0, witness.comm);
        can = witness.rank != 0 || place_claims(&all);
        PMPI_Bcast(&can, 1, MPI_INT, 0, witness.comm);
    }
    if (can) {
        PMPI_Gatherv(claims, count * CLAIM_WORDS, MPI_UINT64_T, all.claims, all.words,
                     all.first_word, MPI_UINT64_T, 0, witness.comm);
        if (witness.rank == 0)
            judge_claims(&all);
        PMPI_Scatterv(all.agreed, all.counts, all.first, MPI_CHAR, agreed, count, MPI_CHAR, 0,
                      witness.comm);
    }
    free_claims(&all);
}

/* Once a rank has waited too long for another it says so, and does without. */
static bool given_up;

static bool is_late(int64_t since)
{
    enum { PATIENCE_SECONDS = 60 };
    if (monotonic_ns() - since > PATIENCE_SECONDS * 1000000000ll)
        given_up = true;
    return given_up;
}

static bool finish(MPI_Request *request)
{
    int64_t since = monotonic_ns();
    int done = 0;
    while (PMPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
        if (is_late(since))
            return false;
        sched_yield();
    }
    return done;
}

/* When a rank began its part, and which one it was. */
struct arrived {
    int64_t time, rank;
};

static bool send_times(const struct arrived *times, int count, int rank)
{
    MPI_Request request;
    return PMPI_Isend(times, 2 * count, MPI_INT64_T, rank, TIMES_TAG, witness.waits_comm,
                      &request) == MPI_SUCCESS &&
           finish(&request);
}

static bool receive_times(struct arrived *times, int count, int rank)
{
    MPI_Request request;
    return PMPI_Irecv(times, 2 * count, MPI_INT64_T, rank, TIMES_TAG, witness.waits_comm,
                      &request) == MPI_SUCCESS &&
           finish(&request);
}

/* The latest of all members, up a binomial tree and down again. `members`: by their rank in the
 * communicator, of which this is `own`. Buffers stay where they are: MPI may still write to them when
 * a rank has given up. */
static struct arrived latest[CHUNK], others[CHUNK];

static bool find_latest(const int *members, int size, int own, int count)
{
    int distance = 1;
    for (; distance < size && !(own & distance); distance <<= 1) {
        if (own + distance >= size)
            continue;
        if (!receive_times(others, count, members[own + distance]))
            return false;
        for (int i = 0; i < count; i++)
            if (others[i].time > latest[i].time)
                latest[i] = others[i];
    }
    if (own && !(send_times(latest, count, members[own - distance]) &&
                 receive_times(latest, count, members[own - distance])))
        return false;
    for (distance >>= 1; distance; distance >>= 1)
        if (own + distance < size && !send_times(latest, count, members[own + distance]))
            return false;
    return true;
}

static bool analyse_collectives(const struct communicator *communicator, const int *members,
                                struct analysis *analysis)
{
    const struct instances *log = communicator->log;
    for (uint32_t first = 0; first < log->count; first += CHUNK) {
        const struct instance *instances = log->kept + first;
        int count = log->count - first < CHUNK ? (int)(log->count - first) : CHUNK;
        for (int i = 0; i < count; i++) {
            bool awaited = instances[i].arrival != ALL_WAIT_FOR_ROOT || instances[i].root;
            latest[i].time = awaited ? clocks_global(instances[i].begin) : UNKNOWN;
            latest[i].rank = witness.rank;
        }
        if (!find_latest(members, communicator->size, communicator->rank, count))
            return false;
        for (int i = 0; i < count; i++)
            if (latest[i].time != UNKNOWN)
                judge_instance(&instances[i], latest[i].time, (int)latest[i].rank, analysis);
    }
    return true;
}

/* All ranks go through theirs by id, so that none waits for one that waits for it. */
static void analyse_agreed(struct communicator *const *communicators, const char *agreed, int count,
                           struct analysis *analysis)
{
    bool going = true;
    for (int i = 0; going && i < count; i++) {
        int *members = agreed[i] ? communicator_members(communicators[i]) : NULL;
        if (agreed[i])
            going = members && analyse_collectives(communicators[i], members, analysis);
        free(members);
    }
}

static void analyse_communicators(struct analysis *analysis)
{
    int logged = 0, count = 0, most = CLAIMS_MOST / witness.ranks + 1;
    struct communicator **communicators = communicators_logged(&logged);
    struct claim *claims = calloc((size_t)logged + 1, sizeof *claims);
    char *agreed = calloc((size_t)logged + 1, 1);
    for (int i = 0; claims && agreed && i < logged && count < most; i++) {
        if (communicators[i]->log->broken)
            continue;
        communicators[count] = communicators[i];
        claims[count++] = claim_of(communicators[i]);
    }
    agree(claims, count, agreed);
    if (count)
        analyse_agreed(communicators, agreed, count, analysis);
    free(communicators);
    free(claims);
    free(agreed);
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
    if (given_up) /* MPI may still read what was to be sent */
        return;
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
                        witness.waits_comm, &exchange->sends[exchange->send_count]) == MPI_SUCCESS)
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
    if (PMPI_Iprobe(MPI_ANY_SOURCE, TAG, witness.waits_comm, &arrived, &status) != MPI_SUCCESS ||
        !arrived)
        return false;
    if (PMPI_Recv(told, sizeof told, MPI_BYTE, status.MPI_SOURCE, TAG, witness.waits_comm,
                  &status) != MPI_SUCCESS)
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
    int64_t since = monotonic_ns();
    send_all(exchange);
    while (!is_late(since)) {
        bool received = receive_piece(exchange);
        int done = 0;
        if (!all_sent) {
            if (PMPI_Testall(exchange->send_count, exchange->sends, &done, MPI_STATUSES_IGNORE) !=
                MPI_SUCCESS)
                return;
            if (done && PMPI_Ibarrier(witness.waits_comm, &barrier) != MPI_SUCCESS)
                return;
            all_sent = done;
        } else if (PMPI_Test(&barrier, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done) {
            return;
        }
        if (received)
            since = monotonic_ns();
        else
            sched_yield();
    }
}

/* What is known of a wait, by the side of the other rank. */
struct judgement {
    int64_t until[2]; /* the latest of that side, or UNKNOWN */
    int peer[2];      /* whose that was */
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
        if (came <= end && came > *until) {
            *until = came;
            judgement->peer[!message->side] = message->peer;
        }
    }
}

/* Adds a wait to sums. Returns the rank that was waited for, or -1. */
static int judge_wait(const struct wait *wait, const struct judgement *judgement,
                      struct waits *sums)
{
    if (judgement->incomplete)
        return -1;
    const int64_t *until = judgement->until;
    int64_t begin = clocks_global(wait->begin);
    sums->analysed += seconds(clocks_global(wait->end) - begin);
    if (until[SENDER] > begin && until[SENDER] >= until[RECEIVER]) {
        sums->late_sender += seconds(until[SENDER] - begin);
        return judgement->peer[SENDER];
    }
    if (until[RECEIVER] > begin) {
        sums->late_receiver += seconds(until[RECEIVER] - begin);
        return judgement->peer[RECEIVER];
    }
    return -1;
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
        judgements[i] = (struct judgement){ .until = { UNKNOWN, UNKNOWN } };
    judge_messages(exchange, log, judgements);
    for (int part = 0; part < PARTS; part++) {
        struct waits sums[CALLS] = { 0 };
        for (uint32_t i = 0; i < log->wait_count; i++)
            if (log->waits[i].part == part)
                judge_wait(&log->waits[i], &judgements[i], &sums[log->waits[i].call]);
        add_part(sums, log->waited[part], analysis);
        for (uint32_t i = 0; i < log->wait_count; i++) {
            const struct wait *wait = &log->waits[i];
            struct waits one = { 0 };
            if (wait->part != part || sums[wait->call].analysed <= 0)
                continue;
            int rank = judge_wait(wait, &judgements[i], &one);
            double whole = ticks_to_seconds(log->waited[part][wait->call]);
            add_to_site(analysis, wait->site, whole / sums[wait->call].analysed, &one, rank);
        }
    }
}

static void analyse_messages(struct analysis *analysis)
{
    const struct messages *log = messages_logged();
    struct exchange exchange = prepare(log);
    tell_each_other(&exchange);
    struct judgement *judgements = malloc((log->wait_count + 1) * sizeof *judgements);
    if (exchange.count && judgements && !given_up)
        judge_all(&exchange, log, judgements, analysis);
    free(judgements);
    release(&exchange);
}

bool waits_analyse(struct waits result[CALLS], struct site_waits *sites)
{
    struct analysis analysis = { .sites = sites };
    analyse_communicators(&analysis);
    analyse_messages(&analysis);
    find_whom(&analysis);
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
    return !given_up;
}
