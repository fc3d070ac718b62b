/* The cheapest clock that all cores of a host agree on. */
#ifndef ASSAY_TICKS_H
#define ASSAY_TICKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* The time-stamp counter, where Linux itself keeps time with it: then it runs at one rate, and alike
 * on all cores. Elsewhere CLOCK_MONOTONIC, in ns. */
extern bool ticks_are_tsc;

static inline int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t ticks(void)
{
#ifdef __x86_64__
    if (ticks_are_tsc)
        return (int64_t)__builtin_ia32_rdtsc();
#endif
    return monotonic_ns();
}

/* Before the first tick; and again later, which makes the rate the more exact. */
void ticks_start(void);
void ticks_calibrate(void);

/* A moment on this host's CLOCK_MONOTONIC, in ns. Before ticks_calibrate: since ticks_start only to
 * within a permille. */
int64_t ticks_to_ns(int64_t ticks);
/* A length of time. */
double ticks_to_seconds(int64_t ticks);

#endif
