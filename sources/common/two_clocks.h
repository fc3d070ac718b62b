/* A time by OpenMP's clock, which is what programs report, and within which bounds it is by the
 * system's, read just before and just after it. A time that was scaled, or of which something is left
 * out, is not within them: lib/assay/programs/benchmarks.py looks. */
#ifndef ASSAY_TWO_CLOCKS_H
#define ASSAY_TWO_CLOCKS_H

#include <omp.h>
#include <time.h>

#include "json.h"

struct instant {
    double before, seconds, after;
    long made; /* operations of this thread until then, of those that are counted */
};

struct two_clocks {
    double seconds, least, most;
    double made; /* operations within the time: one outside of it is missed */
};

static _Thread_local long two_clocks_made;

/* Behind each operation that is timed. */
static inline void two_clocks_operation(void)
{
    two_clocks_made++;
}

static inline double two_clocks_system(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline struct instant two_clocks_now(void)
{
    double before = two_clocks_system(), seconds = omp_get_wtime();
    return (struct instant){ before, seconds, two_clocks_system(), two_clocks_made };
}

static inline struct two_clocks two_clocks_between(struct instant from, struct instant to)
{
    return (struct two_clocks){ to.seconds - from.seconds, to.before - from.after,
                                to.after - from.before, (double)(to.made - from.made) };
}

static inline void two_clocks_add(struct two_clocks *sum, struct two_clocks other)
{
    sum->seconds += other.seconds;
    sum->least += other.least;
    sum->most += other.most;
    sum->made += other.made;
}

/* Writes an object "clocks". */
static inline void two_clocks_json(struct json *json, struct two_clocks clocks)
{
    json_object(json, "clocks");
    json_number(json, "seconds", clocks.seconds);
    json_number(json, "least", clocks.least);
    json_number(json, "most", clocks.most);
    json_end(json);
}

#endif
