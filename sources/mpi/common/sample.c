#include "sample.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "clock.h"

/* Long enough that what ends a batch (the barrier, the check, the decision) does not show in the
 * next one: after a pause TCP answers the first messages in another rhythm. With 0.1 ms the time
 * of 512 bytes over loopback was 30% too long, and that of 1 MiB 10% too short. */
static const double BATCH_SECONDS = 500e-6;

/* In less, a bout would be little but warm-up. */
static const double BOUT_SECONDS = 2.5e-3;

enum {
    WARM_UPS = 2,       /* batches thrown away at first */
    FEWEST_FOR_CI = 11, /* samples below which the interval is not believed */
    MOST = 4096,        /* samples kept */
};

/* What rank 0 knows of a point; the other ranks keep the iterations alone. */
struct sample {
    struct sample_plan plan;
    int bouts;       /* that there will be */
    int bout;        /* the present one, from 0 */
    double start;    /* of the present bout */
    double earlier;  /* seconds that the bouts before took */
    double longest;  /* seconds that a batch took, with what is not timed in it */
    int batches;     /* of the present bout */
    int first;       /* sample of the present bout */
    int look;        /* the number of samples from which to look at the interval again */
    double *seconds; /* of each sample, in their order */
    double *sorted;  /* room for as many */
    struct sample_result result;
};

long sample_operations;
static long barriers;

/* What was timed since the batch began. */
static struct {
    bool has_count;
    long made, starts, ends;
    double least, most;
} told;

struct sample_mark sample_mark(void)
{
    return (struct sample_mark){ clock_seconds(), sample_operations, barriers };
}

void sample_barrier(MPI_Comm comm)
{
    MPI_Barrier(comm);
    barriers++;
}

static void require_no_barrier(struct sample_mark start, struct sample_mark end)
{
    if (end.barriers != start.barriers)
        bench_abort(EXIT_BROKEN, "the barrier before a time was within it");
}

static struct sample_instant now(void)
{
    double before = MPI_Wtime();
    struct sample_mark mark = sample_mark();
    return (struct sample_instant){ before, mark, MPI_Wtime() };
}

struct sample_instant sample_now(void)
{
    told.starts++;
    return now();
}

/* From one instant to another but for so many seconds, which one clock alone has told. */
static void tell(struct sample_instant start, struct sample_instant end, double but, long made)
{
    static const double APART = 1e-3;      /* by which one of two clocks may be the faster */
    double tick = MPI_Wtick() + APART * but; /* of some MPIs a microsecond */
    told.has_count = true;
    told.ends++;
    told.made += made;
    told.least += end.before - start.after - tick - but;
    told.most += end.after - start.before + tick - but;
}

double sample_since(struct sample_instant start)
{
    struct sample_instant end = now();
    require_no_barrier(start.mark, end.mark);
    tell(start, end, 0, end.mark.made - start.mark.made);
    return end.mark.seconds - start.mark.seconds;
}

struct sample_parts sample_parts_start(void)
{
    struct sample_instant start = sample_now();
    return (struct sample_parts){ .start = start, .last = start.mark };
}

void sample_parts_add(struct sample_parts *parts, struct sample_mark before)
{
    struct sample_mark after = sample_mark();
    require_no_barrier(before, after);
    parts->between += before.seconds - parts->last.seconds;
    parts->seconds += after.seconds - before.seconds;
    parts->made += after.made - before.made;
    parts->last = after;
}

double sample_parts_end(struct sample_parts *parts)
{
    struct sample_instant end = now();
    double between = parts->between + end.mark.seconds - parts->last.seconds;
    tell(parts->start, end, between, parts->made);
    return parts->seconds;
}

/* A little more than enough, in steps of at most ten times: the first batches mislead. `whole` is
 * what the batch took with what is not timed in it, such as the barriers before each call: where
 * ranks wait for a core those are a thousand times longer, and the fewest batches have to fit into
 * the budget. */
static long longer_batch(const struct sample *sample, double seconds, double whole)
{
    double factor = seconds > 0 ? 1.2 * BATCH_SECONDS / seconds : 10;
    double affordable = sample->plan.budget / (WARM_UPS + STATS_FEWEST) / whole;
    return (long)((double)sample->result.iterations * fmin(fmin(factor, affordable), 10)) + 1;
}

static struct stats summary(const struct sample *sample, int first)
{
    int count = sample->result.samples - first;
    memcpy(sample->sorted, sample->seconds + first, (size_t)count * sizeof *sample->seconds);
    return stats_of(sample->sorted, count);
}

static bool narrow_enough(struct sample *sample)
{
    int samples = sample->result.samples;
    if (samples < sample->look)
        return false;
    sample->look = samples + 1 + samples / 8;
    struct stats time = summary(sample, 0);
    return (time.ci_high - time.ci_low) / 2 <= sample->plan.ci * time.median;
}

/* Samples that there have to be at the end of the present bout: its share of the fewest. */
static int fewest(const struct sample *sample)
{
    return ((sample->bout + 1) * STATS_FEWEST + sample->bouts - 1) / sample->bouts;
}

/* Batches that the present bout throws away. Later bouts have less to warm up: messages find their
 * connections, and a batch that takes a quarter of the bout is long enough to warm up by itself. */
static int warm_ups(const struct sample *sample, double whole)
{
    if (sample->bout == 0)
        return WARM_UPS;
    return 4 * whole < sample->plan.budget / sample->bouts ? 1 : 0;
}

/* Takes in a batch that was measured with result.iterations and began at `before`. Returns whether
 * the bout needs another one. A batch that turns out too short for the clock makes the next ones
 * longer and the samples so far void: a first batch often pays for a connection, or is interrupted,
 * and looks longer than the rest. In the first half of the budget only, of which the longest batch
 * does not count: an interruption may have taken all of it. */
static bool take(struct sample *sample, double before, double seconds)
{
    struct sample_result *result = &sample->result;
    double now = clock_seconds(), used = now - sample->start, whole = now - before;
    double budget = sample->plan.budget / sample->bouts;

    sample->longest = fmax(sample->longest, whole);
    if (seconds < BATCH_SECONDS / 2 &&
        sample->earlier + used - sample->longest < sample->plan.budget / 2) {
        result->iterations = longer_batch(sample, seconds, whole);
        result->set_aside += result->samples + 1;
        result->samples = sample->first = 0;
        result->kept = 0;
        memset(result->bouts, 0, sizeof result->bouts);
        sample->look = FEWEST_FOR_CI;
        return true;
    }
    if (++sample->batches <= warm_ups(sample, whole)) {
        result->set_aside++;
        return true;
    }

    result->kept += seconds;
    sample->seconds[result->samples++] = seconds / (double)result->iterations;
    if (used > budget / 10 && narrow_enough(sample)) {
        result->stopped_by = "ci";
        return false;
    }
    bool spent = used + whole > budget || result->samples - sample->first == MOST / sample->bouts;
    if (spent && result->samples >= fewest(sample)) {
        result->stopped_by = "budget";
        return false;
    }
    return true;
}

/* Each of the first turns has a twin, then each eighth. */
enum { FEWEST_TWINS = 10, TURNS_PER_TWIN = 8 };

bool sample_twins_are_due(const struct sample_twins *twins, long turn)
{
    return twins->pairs < FEWEST_TWINS || turn % TURNS_PER_TWIN == 0;
}

void sample_twins_add(MPI_Comm comm, struct sample_twins *twins, double first, double second)
{
    static const double MARGIN = 0.2, READING = 1e-6; /* what reading the clocks takes */
    double own[] = { first, second }, slowest[2];
    sample_slowest(comm, own, slowest, 2);
    twins->pairs++;
    twins->longer += slowest[0] > slowest[1] * (1 + MARGIN) + READING;
}

void sample_twins_require(const struct sample_twins *twins, const char *work)
{
    /* Were it a matter of chance, half of them would be longer at most, and fewer by a fifth: so many once
     * in a thousand jobs at the very most. Of less than ten pairs not even all are enough. */
    double half = (double)twins->pairs / 2, deviation = sqrt((double)twins->pairs) / 2;
    if ((double)twins->longer > half + 3 * deviation)
        bench_abort(EXIT_BROKEN, "%s took longer %ld times of %ld than the same once more", work,
                    twins->longer, twins->pairs);
}

/* In one reduction with their negatives, of which the greatest is the least: by any other operation
 * the two would not enclose what is reduced. */
void sample_slowest(MPI_Comm comm, const double *own, double *slowest, int count)
{
    double ends[2 * SAMPLE_MOST_THINGS];
    for (int i = 0; i < count; i++) {
        ends[i] = own[i];
        ends[count + i] = -own[i];
    }
    MPI_Allreduce(MPI_IN_PLACE, ends, 2 * count, MPI_DOUBLE, MPI_MAX, comm);
    for (int i = 0; i < count; i++) {
        if (!(-ends[count + i] <= own[i] && own[i] <= ends[i]))
            bench_abort(EXIT_BROKEN, "%g s are not between %g s and %g s of all ranks", own[i],
                        -ends[count + i], ends[i]);
        slowest[i] = ends[i];
    }
}

void sample_clocks_start(void)
{
    told.has_count = false;
    told.made = told.starts = told.ends = 0;
    told.least = told.most = 0;
}

void sample_clocks_add(struct sample_clocks *clocks, long iterations, double own, double slowest)
{
    if (told.has_count && told.made != iterations)
        bench_abort(EXIT_BROKEN, "%ld operations were timed of %ld", told.made, iterations);
    if (told.starts != told.ends)
        bench_abort(EXIT_BROKEN, "the clock was started %ld times and stopped %ld times",
                    told.starts, told.ends);
    clocks->batches++;
    clocks->operations += (double)iterations;
    if (!(told.most > 0))
        return;
    clocks->own += own;
    clocks->slowest += slowest;
    clocks->least += told.least;
    clocks->most += told.most;
}

struct sample_plan sample_plan_for(struct sample_plan plan, const struct option_numbers *focus,
                                   size_t size)
{
    for (int i = 0; i < focus->count; i++)
        if (focus->values[i] == (double)size)
            return plan;
    if (focus->count)
        plan.budget /= 8;
    return plan;
}

struct sample *sample_start(struct sample_plan plan, int most)
{
    int bouts = most;
    while (bouts > 1 && plan.budget / bouts < BOUT_SECONDS)
        bouts /= 2;
    struct sample *sample = malloc(sizeof *sample);
    double *room = malloc(2 * MOST * sizeof *room);
    if (!sample || !room)
        bench_abort(EXIT_BROKEN, "no memory for %d samples", MOST);
    *sample = (struct sample){
        .plan = plan,
        .bouts = bouts,
        .look = FEWEST_FOR_CI,
        .seconds = room,
        .sorted = room + MOST,
        .result = { .iterations = 1, .budget = plan.budget, .bout_count = bouts },
    };
    return sample;
}

bool sample_is_due(const struct sample *sample, int round)
{
    return round % (SAMPLE_ROUNDS / sample->bouts) == 0;
}

void sample_bout(struct sample *sample, MPI_Comm comm, sample_batch *batch, void *context)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    sample->start = clock_seconds();
    sample->batches = 0;
    sample->first = sample->result.samples;
    for (long iterations = sample->result.iterations; iterations > 0;) {
        sample_clocks_start();
        double before = clock_seconds(), own = batch(context, iterations), slowest;
        sample_slowest(comm, &own, &slowest, 1);
        sample_clocks_add(&sample->result.clocks, iterations, own, slowest);
        if (rank == 0)
            iterations = take(sample, before, slowest) ? sample->result.iterations : 0;
        MPI_Bcast(&iterations, 1, MPI_LONG, 0, comm);
        if (iterations > 0)
            sample->result.iterations = iterations;
    }
    sample->earlier += clock_seconds() - sample->start;
    if (rank == 0)
        sample->result.bouts[sample->bout] = summary(sample, sample->first).best;
    sample->bout++;
}

double sample_last_best(const struct sample *sample)
{
    return sample->result.bouts[sample->bout - 1];
}

struct sample_result sample_end(struct sample *sample)
{
    struct sample_result result = sample->result;
    if (result.samples > 0)
        result.time = summary(sample, 0);
    for (int i = 0; i < result.bout_count; i++)
        if (result.bouts[i] == 0) /* all samples of the bout were void */
            result.bouts[i] = result.time.best;
    free(sample->seconds);
    free(sample);
    return result;
}

struct sample_result sample_run(struct sample_plan plan, MPI_Comm comm, sample_batch *batch,
                                void *context)
{
    struct sample *sample = sample_start(plan, 1);
    sample_bout(sample, comm, batch, context);
    return sample_end(sample);
}

void sample_print(const struct sample_result *result, const char *own, ...)
{
    printf(" %12.3f %12.3f ", result->time.best * 1e6, result->time.median * 1e6);
    va_list values;
    va_start(values, own);
    vprintf(own, values);
    va_end(values);
    printf(" %8.2f %8d  %s\n", stats_uncertainty(&result->time) * 100, result->samples,
           result->stopped_by);
}

static void write_place(struct json *json, const char *key, struct stats_place place)
{
    json_array(json, key);
    json_integer(json, NULL, place.shorter);
    json_integer(json, NULL, place.within);
    json_end(json);
}

void sample_json(struct json *json, const struct sample_result *result)
{
    json_object(json, "time");
    json_number(json, "min", result->time.min);
    json_number(json, "best", result->time.best);
    json_number(json, "median", result->time.median);
    json_number(json, "p95", result->time.p95);
    json_number(json, "mean", result->time.mean);
    json_number(json, "ci_low", result->time.ci_low);
    json_number(json, "ci_high", result->time.ci_high);
    write_place(json, "best_place", result->time.best_place);
    write_place(json, "median_place", result->time.median_place);
    json_end(json);
    if (result->bout_count > 1) {
        json_array(json, "bouts");
        for (int i = 0; i < result->bout_count; i++)
            json_number(json, NULL, result->bouts[i]);
        json_end(json);
    }
    json_number(json, "kept", result->kept);
    json_integer(json, "samples", result->samples);
    json_integer(json, "set_aside", result->set_aside);
    json_integer(json, "iterations_per_sample", result->iterations);
    json_string(json, "stopped_by", result->stopped_by);
    json_number(json, "budget", result->budget);
    if (result->clocks.most > 0) {
        json_object(json, "clocks");
        sample_clocks_json(json, &result->clocks);
        json_end(json);
    }
}

void sample_clocks_json(struct json *json, const struct sample_clocks *clocks)
{
    json_number(json, "own", clocks->own);
    json_number(json, "slowest", clocks->slowest);
    json_number(json, "least", clocks->least);
    json_number(json, "most", clocks->most);
    json_integer(json, "batches", (long long)clocks->batches);
    json_integer(json, "operations", (long long)clocks->operations);
}
