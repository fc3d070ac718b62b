#include "sample.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "bench.h"
#include "clock.h"

/* Long enough that what ends a batch (the barrier, the check, the decision) does not show in the
 * next one: after a pause TCP answers the first messages in another rhythm. With 0.1 ms the time
 * of 512 bytes over loopback was 30% too long, and that of 1 MiB 10% too short. */
static const double BATCH_SECONDS = 500e-6;

enum {
    WARM_UPS = 2,       /* batches thrown away at least */
    FEWEST_FOR_CI = 11, /* samples below which the interval is not believed */
    MOST = 4096,        /* samples kept */
};

/* What rank 0 knows while it samples. */
struct sampling {
    struct sample_plan plan;
    double start;
    double longest; /* seconds that a batch took, with what is not timed in it */
    int batches;
    int look; /* the number of samples from which to look at the interval again */
    double *seconds;
    struct sample_result result;
};

/* A little more than enough, in steps of at most ten times: the first batches mislead. `whole` is
 * what the batch took with what is not timed in it, such as the barriers before each call: where
 * ranks wait for a core those are a thousand times longer, and the fewest batches have to fit into
 * the budget. */
static long longer_batch(const struct sampling *sampling, double seconds, double whole)
{
    double factor = seconds > 0 ? 1.2 * BATCH_SECONDS / seconds : 10;
    double affordable = sampling->plan.budget / (WARM_UPS + STATS_FEWEST) / whole;
    return (long)((double)sampling->result.iterations * fmin(fmin(factor, affordable), 10)) + 1;
}

static bool narrow_enough(struct sampling *sampling)
{
    struct sample_result *result = &sampling->result;
    if (result->samples < sampling->look)
        return false;
    sampling->look = result->samples + 1 + result->samples / 8;
    result->time = stats_of(sampling->seconds, result->samples);
    double half_width = (result->time.ci_high - result->time.ci_low) / 2;
    return half_width <= sampling->plan.ci * result->time.median;
}

/* Takes in a batch that was measured with result.iterations and began at `before`. Returns whether
 * another one is needed. A batch that turns out too short for the clock makes the next ones longer
 * and the samples so far void: a first batch often pays for a connection, or is interrupted, and
 * looks longer than the rest. In the first half of the budget only, of which the longest batch
 * does not count: an interruption may have taken all of it. */
static bool take(struct sampling *sampling, double before, double seconds)
{
    struct sample_result *result = &sampling->result;
    double now = clock_seconds(), used = now - sampling->start, budget = sampling->plan.budget;
    double whole = now - before;

    sampling->longest = fmax(sampling->longest, whole);
    if (seconds < BATCH_SECONDS / 2 && used - sampling->longest < budget / 2) {
        result->iterations = longer_batch(sampling, seconds, whole);
        result->samples = 0;
        sampling->look = FEWEST_FOR_CI;
        return true;
    }
    if (++sampling->batches <= WARM_UPS)
        return true;

    sampling->seconds[result->samples++] = seconds / (double)result->iterations;
    if (used > budget / 10 && narrow_enough(sampling)) {
        result->stopped_by = "ci";
        return false;
    }
    bool spent = used + whole > budget || result->samples == MOST;
    if (spent && result->samples >= STATS_FEWEST) {
        result->time = stats_of(sampling->seconds, result->samples);
        result->stopped_by = "budget";
        return false;
    }
    return true;
}

struct sample_plan sample_plan_for(struct sample_plan plan, const struct option_numbers *focus,
                                   size_t size)
{
    for (int i = 0; i < focus->count; i++)
        if (focus->values[i] == (double)size)
            return plan;
    if (focus->count)
        plan.budget /= 4;
    return plan;
}

struct sample_result sample_run(struct sample_plan plan, MPI_Comm comm, sample_batch *batch,
                                void *context)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    struct sampling sampling = {
        .plan = plan,
        .start = clock_seconds(),
        .look = FEWEST_FOR_CI,
        .seconds = malloc(MOST * sizeof(double)),
        .result = { .iterations = 1, .budget = plan.budget },
    };
    if (!sampling.seconds)
        bench_abort(EXIT_BROKEN, "no memory for %d samples", MOST);

    for (long iterations = 1; iterations > 0;) {
        double before = clock_seconds(), own = batch(context, iterations), slowest = 0;
        MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
        if (rank == 0)
            iterations = take(&sampling, before, slowest) ? sampling.result.iterations : 0;
        MPI_Bcast(&iterations, 1, MPI_LONG, 0, comm);
    }
    free(sampling.seconds);
    return sampling.result;
}

void sample_json(struct json *json, const struct sample_result *result)
{
    json_object(json, "time");
    json_number(json, "min", result->time.min);
    json_number(json, "median", result->time.median);
    json_number(json, "p95", result->time.p95);
    json_number(json, "ci_low", result->time.ci_low);
    json_number(json, "ci_high", result->time.ci_high);
    json_end(json);
    json_integer(json, "samples", result->samples);
    json_integer(json, "iterations_per_sample", result->iterations);
    json_string(json, "stopped_by", result->stopped_by);
    json_number(json, "budget", result->budget);
}
