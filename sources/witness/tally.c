#include "tally.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "traffic.h"

enum { PACE_NS = 4000, WAITED_NS = 100000, WINDOW = 1024, SAMPLE_EVERY = 64, UNSURE_PERCENT = 2 };

_Thread_local struct thread *this_thread;
struct thread *threads;
atomic_bool one_thread = true;

static pthread_mutex_t joining = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key; /* its destructor runs when a thread ends */
static bool has_key;
static int joined;
/* What threads did that have ended; times in ticks. */
static struct total ended[CALLS];
static struct routes ended_routes;
/* Ticks: at the first call; between two calls of a burst, at most; until a call must have been seen
 * by the ticker; and that a call takes at least for which data may have been on the way. */
static int64_t started, pace, longest_unseen, waited;

static void leave(void *record);

static void start(void)
{
    started = ticks();
    pace = (int64_t)(1e-9 * PACE_NS / ticks_to_seconds(1));
    longest_unseen = (int64_t)(1e-9 * 2 * TICKER_NS / ticks_to_seconds(1));
    waited = (int64_t)(1e-9 * WAITED_NS / ticks_to_seconds(1));
    has_key = pthread_key_create(&key, leave) == 0;
}

/* Records are never given back: a signal handler goes through them. The next thread takes one that
 * an ended thread has left. */
static struct thread *new_record(void)
{
    struct thread *thread = threads;
    while (thread && thread->used)
        thread = thread->next;
    if (thread)
        return thread;
    thread = calloc(1, sizeof *thread);
    if (thread) {
        thread->inside = CALLS;
        thread->last_type = MPI_DATATYPE_NULL;
        thread->next = threads;
        threads = thread;
    }
    return thread;
}

struct thread *thread_join(void)
{
    if (!witness.active) {
        bind_mpi();
        return NULL;
    }
    pthread_mutex_lock(&joining);
    if (!started)
        start();
    struct thread *thread = new_record();
    if (thread) {
        thread->used = true;
        thread->random = 2463534242u;
        for (int call = 0; !witness.profile && call < CALLS; call++)
            thread->tallies[call].skip = UINT32_MAX; /* never timed */
        if (joined++)
            atomic_store(&one_thread, false);
        if (has_key)
            pthread_setspecific(key, thread);
    }
    pthread_mutex_unlock(&joining);
    return this_thread = thread;
}

/* Xorshift: samples at equal distances would always meet the same call of a periodic program. */
static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static int64_t ticks_of_ticker(uint32_t passed)
{
    return (int64_t)(1e-9 * TICKER_NS * passed / ticks_to_seconds(1));
}

/* Goes by the average of a window of calls, as there are slow ones in every burst. */
static void look_for_burst(const struct thread *thread, struct tally *tally, int64_t now)
{
    if (tally->in_window++ == 0) {
        tally->window_began = now;
        return;
    }
    if (tally->in_window <= WINDOW)
        return;
    tally->in_window = 0;
    bool sure = thread->unsure * 100 <= (now - started) * UNSURE_PERCENT;
    if (!sure || now - tally->window_began > pace * WINDOW || !ticker_start())
        return;
    tally->sampled = true;
    tally->sampled_began = now;
    tally->sampled_time = tally->time;
}

/* The calls since the last sample are taken to have been as long as this one. */
static int64_t time_of_untimed(const struct tally *tally, int64_t took, int64_t since)
{
    int64_t others = took * tally->untimed;
    return others < since ? others : since;
}

/* In a pause they get the share that they have had in the burst. */
static int64_t time_in_pause(const struct tally *tally, int64_t pause)
{
    int64_t elapsed = tally->last_end - tally->sampled_began;
    if (elapsed <= 0)
        return 0;
    double share = (double)(tally->time - tally->sampled_time) / (double)elapsed;
    return (int64_t)((double)pause * (share < 1 ? share : 1));
}

/* `since`: the timed call before it, without what is known to be the program's. */
static void time_tally(struct timing *timing, int64_t since)
{
    struct tally *tally = &timing->thread->tallies[timing->call];
    int64_t took = timing->end - timing->begin;
    /* An attribute's callback may call MPI from within a call: those count by themselves. */
    int64_t own = took - (timing->thread->within - timing->within);
    timing->thread->within = timing->within + took;
    if (tally->sampled && timing->computed + since + took > pace * (tally->untimed + 1)) {
        /* Beyond that it was the program's. */
        int64_t pause = since < longest_unseen ? since : longest_unseen;
        tally->time += time_in_pause(tally, pause);
        timing->thread->unsure += pause;
        tally->sampled = false;
    } else {
        tally->time += time_of_untimed(tally, took, since);
        if (!tally->sampled)
            look_for_burst(timing->thread, tally, timing->end);
    }
    tally->time += own;
    tally->last_end = timing->end;
    tally->timed++;
    tally->untimed = 0;
    if (tally->sampled) {
        tally->skip = SAMPLE_EVERY / 2 + next_random(&timing->thread->random) % SAMPLE_EVERY;
        tally->untimed = tally->skip;
    }
}

int64_t tally_pause(const struct thread *thread)
{
    if (thread->left)
        return ticks() - thread->left;
    return thread->ticker ? ticks_of_ticker(ticker_now() - thread->ticker) : 0;
}

int64_t tally_paused(struct thread *thread, struct tally *tally)
{
    tally->untimed -= tally->skip;
    tally->skip = 0;
    thread->due++;
    return thread->inside == CALLS ? tally_pause(thread) : 0;
}

/* What a sample stands for was, on the average, called from where it was, behind as much computation. */
void tally_timed(struct timing *timing)
{
    timing->end = ticks();
    struct tally *tally = &timing->thread->tallies[timing->call];
    int64_t before = tally->time, untimed = tally->untimed;
    int64_t computed = timing->computed;
    int64_t since = timing->begin - tally->last_end - computed;
    since = since > 0 ? since : 0;
    if (tally->sampled)
        timing->thread->due--;
    time_tally(timing, since);
    if (timing->site) {
        int64_t others = computed * untimed;
        timing->site->time += tally->time - before;
        timing->site->computed += computed + (others < since ? others : since);
        timing->site->timed++;
    }
    timing->thread->left = timing->end;
    if (timing->end - timing->begin > waited) {
        traffic_look();
        timing->thread->left = ticks(); /* the program has computed nothing meanwhile */
    }
}

void tally_ticked(const struct timing *timing, uint32_t ticks_passed)
{
    /* One may come at any moment; two are a tick apart. */
    struct tally *tally = &timing->thread->tallies[timing->call];
    if (ticks_passed < 2 || !tally->sampled)
        return;
    if (tally->skip == 0)
        timing->thread->due--;
    int64_t passed = ticks_of_ticker(ticks_passed);
    tally->time += passed;
    if (timing->site)
        timing->site->time += passed;
    tally->last_end = ticks();
    tally->untimed = 0;
    tally->skip = 0;
    tally->sampled = false;
}

/* The calls after the last sample are like those before it. */
static double scale_of(const struct tally *tally)
{
    uint32_t after = tally->sampled ? tally->untimed - tally->skip : 0;
    if (after && tally->count > after)
        return (double)tally->count / (double)(tally->count - after);
    return 1;
}

static void add(const struct tally *tally, struct total *total)
{
    total->count += tally->count;
    total->timed += tally->timed;
    total->bytes += tally->bytes;
    total->time += scale_of(tally) * (double)tally->time;
}

static void move_to_ended(struct thread *thread)
{
    double scales[CALLS];
    for (int call = 0; call < CALLS; call++) {
        scales[call] = scale_of(&thread->tallies[call]);
        add(&thread->tallies[call], &ended[call]);
        thread->tallies[call] = (struct tally){ 0 };
    }
    sites_move(&thread->sites, scales);
    routes_move(&thread->routes, &ended_routes);
    thread->unsure = 0;
    thread->left = 0;
    thread->due = 0;
    thread->last_type = MPI_DATATYPE_NULL;
    thread->inside = CALLS;
}

/* A thread ends. It may still call MPI, in what else it does at its end: then it joins again. */
static void leave(void *record)
{
    struct thread *thread = record;
    this_thread = NULL;
    pthread_mutex_lock(&joining);
    if (witness.active)
        move_to_ended(thread);
    thread->used = false;
    pthread_mutex_unlock(&joining);
}

const struct routes *tally_routes(void)
{
    pthread_mutex_lock(&joining);
    for (struct thread *thread = threads; thread; thread = thread->next)
        move_to_ended(thread);
    pthread_mutex_unlock(&joining);
    return &ended_routes;
}

void tally_add_sent(enum kind kind, bool bytes, unsigned long long *sums)
{
    pthread_mutex_lock(&joining);
    routes_add_sent(&ended_routes, kind, bytes, sums);
    for (const struct thread *thread = threads; thread; thread = thread->next)
        routes_add_sent(&thread->routes, kind, bytes, sums);
    pthread_mutex_unlock(&joining);
}

void tally_totals(struct total totals[CALLS])
{
    for (int call = 0; call < CALLS; call++) {
        struct total total = ended[call];
        for (struct thread *thread = threads; thread; thread = thread->next)
            add(&thread->tallies[call], &total);
        total.time *= ticks_to_seconds(1);
        totals[call] = total;
    }
}

/* For the program, which finds it by dlsym: what its rank has called since MPI_Init, by the name of a
 * call, or with NULL of all calls together. Values: how often, seconds, and bytes that left the rank.
 * False of an unknown name, and while nothing is recorded. */
__attribute__((visibility("default"))) int assay_witness_read(const char *name, double values[3]);

int assay_witness_read(const char *name, double values[3])
{
    struct total totals[CALLS];
    bool found = false;
    if (!witness.active)
        return false;
    pthread_mutex_lock(&joining);
    tally_totals(totals);
    pthread_mutex_unlock(&joining);
    values[0] = values[1] = values[2] = 0;
    for (int call = 0; call < CALLS; call++) {
        if (name && strcmp(name, call_name((enum call)call)) != 0)
            continue;
        found = true;
        values[0] += (double)totals[call].count;
        values[1] += totals[call].time;
        values[2] += (double)totals[call].bytes;
    }
    return found;
}

double tally_time(const struct total totals[CALLS])
{
    double time = 0;
    for (int call = 0; call < CALLS; call++)
        time += totals[call].time;
    return time;
}

int tally_threads(void)
{
    return joined;
}

size_t tally_bytes(void)
{
    size_t bytes = sizeof ended + routes_bytes(&ended_routes);
    for (struct thread *thread = threads; thread; thread = thread->next)
        bytes += sizeof *thread + routes_bytes(&thread->routes) + sites_bytes(&thread->sites);
    return bytes;
}

const char *call_name(enum call call)
{
    static const char *const names[CALLS] = {
#define NAME_OF(name) [CALL_##name] = "MPI_" #name,
        FOR_EACH_CALL(NAME_OF)
#undef NAME_OF
    };
    return names[call];
}
