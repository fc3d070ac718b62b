/* Counts and times of MPI calls, for each thread.
 *
 *     struct timing timing = call_begin(CALL_Send);
 *     int code = PMPI_Send(...);
 *     call_end(&timing);
 *
 * Two readings of the clock cost about 20 ns, which is much beside a message of 100 ns. So calls of
 * one kind that come in a burst, more than 250,000 a second, are timed by random samples, one of about
 * 64, until a sample shows a slower pace. All calls are counted. A call left untimed that waits for
 * 10 ms or more is seen by a ticker. What a shorter pause at the end of a burst was, a call that
 * waited or the program, cannot be told: it is shared out as the burst was; and there are no samples
 * while such pauses make up more than 2% of the time.
 *
 * The program's time before a call is sampled with the call: the calls since its predecessor of the
 * same kind that could be the one before it are stamped when they return. A pause of 10 ms or more in
 * the program ends the burst at the call behind it. */
#ifndef ASSAY_TALLY_H
#define ASSAY_TALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls.h"
#include "routes.h"
#include "sites.h"
#include "ticker.h"
#include "ticks.h"
#include "witness.h"

struct tally {
    uint64_t count, timed;
    uint64_t bytes;   /* that have to leave the rank; of receives and gets: posted */
    int64_t time;     /* ticks, of the timed calls and those they stand for */
    int64_t last_end; /* ticks, of the newest timed call */
    uint32_t skip;    /* calls still to be left untimed */
    uint32_t untimed; /* calls since the newest timed one, once skip is down */
    uint32_t in_window;
    int64_t window_began; /* ticks */
    bool sampled;         /* in a burst */
    int64_t sampled_began, sampled_time; /* ticks: since when, and `time` then */
};

struct thread {
    bool used; /* by a thread that lives */
    struct tally tallies[CALLS];
    struct routes routes;
    struct sites sites;
    enum call inside; /* CALLS: in the program */
    int64_t entered;  /* ticks, of the call that it is inside; 0 where that is not timed */
    int64_t left;     /* ticks, when the last call returned; 0 where that is not known */
    uint32_t ticker;  /* then */
    int due; /* kinds in a burst whose next call is timed: until then returns are stamped */
    uint32_t random;
    int64_t unsure; /* ticks, of pauses at the end of bursts */
    int64_t within; /* ticks, of timed calls, each once: also those from within another call */
    /* The datatype used last, and how many had been freed by then. */
    MPI_Datatype last_type;
    int64_t last_type_size;
    unsigned types_freed;
    struct thread *next;
};

struct timing {
    struct thread *thread; /* NULL: nothing is recorded */
    struct site *site; /* NULL without memory */
    struct communicator *communicator; /* what was known of the call's one before it; or NULL */
    int64_t begin, end; /* ticks; begin is 0 where the call is not timed */
    int64_t computed; /* ticks, before it in the program */
    int64_t within; /* the thread's at the begin: what is added are calls from within this one */
    enum call call;
    uint32_t ticker; /* at the begin */
    unsigned types_freed; /* at the begin */
};

/* Goes up before and after a datatype is freed: then a handle may come to mean another one. */
extern atomic_uint types_freed;

/* Those of all threads that called MPI, and some that ended threads have left. */
extern struct thread *threads;
/* Only one has: then the order of its calls is the order of the rank's messages. */
extern atomic_bool one_thread;

/* The calling thread's; made at its first call. NULL while the witness is not active, and without
 * memory. */
struct thread *thread_join(void);
extern _Thread_local struct thread *this_thread __attribute__((tls_model("initial-exec")));

/* Ticks since the thread's last return from MPI, as well as they are known. */
int64_t tally_pause(const struct thread *thread);
/* A call in a burst, behind a pause in the program: it will be timed. Ticks of the pause. */
int64_t tally_paused(struct thread *thread, struct tally *tally);
void tally_timed(struct timing *timing);
/* An untimed call during which the ticker ticked. */
void tally_ticked(const struct timing *timing, uint32_t ticks_passed);

/* A part of the wrapper, whose caller it looks at: so are those that call it. */
#define PART_OF_WRAPPER static inline __attribute__((always_inline))

/* For calls with a communicator: what is known of it. */
PART_OF_WRAPPER struct timing call_begin_with(enum call call, struct communicator *communicator)
{
    struct timing timing = {
        .thread = this_thread,
        .communicator = communicator,
        .call = call,
        .types_freed = atomic_load_explicit(&types_freed, memory_order_relaxed),
    };
    if (!timing.thread && !(timing.thread = thread_join()))
        return timing;
    struct tally *tally = &timing.thread->tallies[call];
    tally->count++;
    timing.site = site_here(&timing.thread->sites, call);
    if (timing.site)
        timing.site->count++;
    timing.ticker = ticker_now();
    if (tally->skip && timing.ticker - timing.thread->ticker >= 2 && timing.thread->ticker)
        timing.computed = tally_paused(timing.thread, tally);
    if (tally->skip) {
        if (--tally->skip == 0)
            timing.thread->due++;
    } else {
        timing.begin = ticks();
        timing.within = timing.thread->within;
        if (timing.thread->left && timing.thread->inside == CALLS)
            timing.computed = timing.begin - timing.thread->left;
    }
    timing.thread->inside = call;
    timing.thread->entered = timing.begin;
    return timing;
}

PART_OF_WRAPPER struct timing call_begin(enum call call)
{
    return call_begin_with(call, NULL);
}

/* What a call that is not counted needs. */
static inline struct timing begin_uncounted(MPI_Comm comm)
{
    struct thread *thread = this_thread ? this_thread : thread_join();
    return (struct timing){
        .thread = thread,
        .types_freed = atomic_load_explicit(&types_freed, memory_order_relaxed),
        .communicator = thread ? routes_communicator(&thread->routes, comm) : NULL,
    };
}

/* For calls with a communicator. */
PART_OF_WRAPPER struct timing call_begin_in(enum call call, MPI_Comm comm)
{
    return call_begin_with(call, begin_uncounted(comm).communicator);
}

/* The same for calls of which every one is timed, however often they come. */
PART_OF_WRAPPER struct timing call_begin_timed(enum call call, MPI_Comm comm)
{
    if (this_thread)
        this_thread->tallies[call].in_window = 0;
    return call_begin_in(call, comm);
}

static inline void call_end(struct timing *timing)
{
    if (!timing->thread)
        return;
    struct thread *thread = timing->thread;
    thread->ticker = ticker_now();
    if (timing->begin) {
        tally_timed(timing);
    } else {
        if (thread->ticker != timing->ticker)
            tally_ticked(timing, thread->ticker - timing->ticker);
        thread->left = thread->due ? ticks() : 0;
    }
    thread->inside = CALLS;
}

/* MPI_Finalize: what was computed before it. The call itself counts as none. */
PART_OF_WRAPPER void call_last(enum call call)
{
    struct thread *thread = this_thread ? this_thread : thread_join();
    struct site *site = thread ? site_here(&thread->sites, call) : NULL;
    if (site) {
        site->count++;
        site->computed += tally_pause(thread);
    }
}

static inline void add_bytes(const struct timing *timing, int64_t bytes)
{
    timing->thread->tallies[timing->call].bytes += (uint64_t)bytes;
    if (timing->site)
        timing->site->bytes += (uint64_t)bytes;
}

/* What all threads of the rank did. Times in seconds. */
struct total {
    uint64_t count, timed, bytes;
    double time;
};
void tally_totals(struct total totals[CALLS]);
/* Of all calls together. */
double tally_time(const struct total totals[CALLS]);
int tally_threads(void);
/* What all threads have sent so far: see routes_add_sent. */
void tally_add_sent(enum kind kind, bool bytes, unsigned long long *sums);
/* In the end: those of all threads together. */
const struct routes *tally_routes(void);
size_t tally_bytes(void);

#endif
