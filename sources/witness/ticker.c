#include "ticker.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "ticks.h"

_Atomic uint32_t ticker;

static atomic_bool running;

static void set(void)
{
    uint32_t now = (uint32_t)(monotonic_ns() / TICKER_NS);
    atomic_store_explicit(&ticker, now, memory_order_relaxed);
}

static void *tick(void *nothing)
{
    struct timespec pause = { .tv_nsec = TICKER_NS };
    while (atomic_load(&running)) {
        nanosleep(&pause, NULL);
        set();
    }
    return nothing;
}

bool ticker_start(void)
{
    if (atomic_exchange(&running, true))
        return true;
    set();
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* Signals are for the program's threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    bool made = pthread_create(&thread, &attributes, tick, NULL) == 0;
    if (made)
        pthread_setname_np(thread, "assay-ticker");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!made)
        atomic_store(&running, false);
    return made;
}

void ticker_stop(void)
{
    atomic_store(&running, false);
}
