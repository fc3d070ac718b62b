/* How often to measure: the adaptive controller.
 *
 * A sample is the time of a batch of operations, long enough for the clock (0.5 ms where one
 * operation takes less). Batches run until the 95% confidence interval of the median
 * of all samples is narrow enough or the time budget is spent. Rank 0 of the communicator decides
 * and broadcasts its decision between batches, outside what is timed.
 *
 * The budget is wall time of everything at the point: warm-up, batches, payload checks and
 * control. It can be overrun only to find how long a batch has to be, and to collect the
 * STATS_FEWEST samples of which an interval can be given; a tenth of it is always used, because
 * the interval takes samples as independent, and samples taken within a millisecond are not:
 * machines have phases. So a program with several points measures them in bouts: all of them in
 * turn, and that again, so that each meets all of the program's time. */
#ifndef ASSAY_SAMPLE_H
#define ASSAY_SAMPLE_H

#include <mpi.h>
#include <stdbool.h>

#include "json.h"
#include "options.h"
#include "stats.h"

struct sample_plan {
    double ci;     /* stop when (ci_high - ci_low) / 2 <= ci * median */
    double budget; /* seconds per point */
};

/* The --ci and --budget options of every program, for its options table. */
#define SAMPLE_DEFAULTS { .ci = 0.02, .budget = 0.1 }
/* clang-format off */
#define SAMPLE_OPTIONS(plan)                                                                      \
    { .name = "ci", .kind = OPTION_NUMBER, .value = &(plan).ci, .argument = "FRACTION",           \
      .low = 1e-6, .high = 1,                                                                     \
      .help = "stop a point when the 95% interval of the median is this narrow (half its "        \
              "width, relative to the median)" },                                                 \
    { .name = "budget", .kind = OPTION_NUMBER, .value = &(plan).budget, .argument = "SECONDS",    \
      .low = 1e-3, .high = 3600, .help = "... or after this time per point" }
/* clang-format on */

/* Times that a program goes through its points; a power of two. */
enum { SAMPLE_ROUNDS = 4 };

/* Behind each operation of a batch, within its time: operations are counted between the instants that
 * they are timed between, and one that is outside of them is missed. */
extern long sample_operations;
static inline void sample_operation(void)
{
    sample_operations++;
}

/* A barrier before a time begins: the program is ended where it is within one. */
void sample_barrier(MPI_Comm comm);

/* The clock of all programs, how many operations had been made, and such barriers. */
struct sample_mark {
    double seconds;
    long made, barriers;
};
struct sample_mark sample_mark(void);

/* With MPI's clock, read just before and just after. */
struct sample_instant {
    double before;
    struct sample_mark mark;
    double after;
};
/* The start of a time that sample_since ends. */
struct sample_instant sample_now(void);

/* For a batch: the seconds since then. What a batch returns is held against MPI's clock by
 * lib/assay/programs/benchmarks.py: a time that was scaled, or divided by something else, is not what
 * passed. */
double sample_since(struct sample_instant start);

/* For a batch that times its operations one by one, of which a second clock would take its part. */
struct sample_parts {
    struct sample_instant start;
    struct sample_mark last;
    double seconds, between; /* of the operations, and of all else */
    long made;
};
struct sample_parts sample_parts_start(void);
void sample_parts_add(struct sample_parts *parts, struct sample_mark before);
double sample_parts_end(struct sample_parts *parts);

/* All batches of a point, warm-up included, on rank 0: how many, and of how many operations; seconds
 * that they returned here and on the slowest rank, and within which bounds those are that were timed
 * here by MPI's clock. */
struct sample_clocks {
    double own, slowest, least, most;
    double batches, operations; /* lib/assay/programs/calls.py holds calls of MPI against them */
};

/* Of work that others are held against, which a longer time makes look better: the same work is timed
 * once more right behind it, by other code. The two times are alike, however busy the machine is. */
struct sample_twins {
    long pairs, longer;
};

/* Whether the next time is to have a twin: of the first ones each, as few are no evidence. */
bool sample_twins_are_due(const struct sample_twins *twins, long turn);

/* Collective: seconds of the work and of its twin, of which those of the slowest rank count. */
void sample_twins_add(MPI_Comm comm, struct sample_twins *twins, double first, double second);

/* Aborts the job where more of the times were longer than their twins by a fifth than chance makes. */
void sample_twins_require(const struct sample_twins *twins, const char *work);

/* Collective: the greatest of the ranks' seconds, of each of `count` things. Aborts the job where
 * that of this rank is greater, or less than the least of them. */
enum { SAMPLE_MOST_THINGS = 6 };
void sample_slowest(MPI_Comm comm, const double *own, double *slowest, int count);

/* Around a batch, where sample_bout does not run it: `add` aborts the job if another number of
 * operations was timed than `iterations`, and adds what the batch returned here and on the slowest
 * rank, and what MPI's clock told meanwhile. */
void sample_clocks_start(void);
void sample_clocks_add(struct sample_clocks *clocks, long iterations, double own, double slowest);

/* Writes its members into an object that is open. */
void sample_clocks_json(struct json *json, const struct sample_clocks *clocks);

struct sample_result {
    struct stats time; /* seconds per operation */
    double kept;       /* seconds of all samples: a reader holds it against their mean */
    struct sample_clocks clocks;
    double bouts[SAMPLE_ROUNDS]; /* the best of each bout, as in struct stats */
    int samples;
    int set_aside;          /* batches that are none of them: warm-up, or too short */
    long iterations;        /* operations per sample */
    const char *stopped_by; /* "ci" or "budget": the last bout */
    double budget;          /* of the plan */
    int bout_count;
};

/* The --focus option of a program that measures many sizes, of which few are made figures of. */
/* clang-format off */
#define SAMPLE_FOCUS_OPTION(sizes)                                                                \
    { .name = "focus", .kind = OPTION_NUMBERS, .value = &(sizes), .argument = "LIST", .low = 0,   \
      .high = (size_t)1 << 30,                                                                    \
      .help = "sizes in bytes that have the whole budget, where all others have an eighth of "    \
              "it (without it all have the whole)" }
/* clang-format on */

/* The plan for a size: of one that is not in focus the table is to tell the course alone. */
struct sample_plan sample_plan_for(struct sample_plan plan, const struct option_numbers *focus,
                                   size_t size);

/* Runs `iterations` operations on this rank and returns the seconds they took here, or 0 on a
 * rank whose clock does not count: a sample is the greatest of all ranks. It brings the ranks in
 * step before it starts the clock, and checks payloads after it has stopped it. */
typedef double sample_batch(void *context, long iterations);

/* What is known of a point between its bouts. */
struct sample;

/* Local. The point will have a bout in each round, or in every other one or the first alone where
 * its budget is too short to be divided by more; `most` bouts, a power of two, at most. */
struct sample *sample_start(struct sample_plan plan, int most);

/* Whether it has a bout in this round, from 0. */
bool sample_is_due(const struct sample *sample, int round);

/* Collective over `comm`: the next bout. */
void sample_bout(struct sample *sample, MPI_Comm comm, sample_batch *batch, void *context);

/* On rank 0 of its `comm` only: the best seconds of its last bout, as in struct stats. */
double sample_last_best(const struct sample *sample);

/* After the last bout; frees the sample. The result is valid on rank 0 of `comm` only. */
struct sample_result sample_end(struct sample *sample);

/* Collective over `comm`: all of it in one bout. */
struct sample_result sample_run(struct sample_plan plan, MPI_Comm comm, sample_batch *batch,
                                void *context);

/* Ends a row of a table: the best and the median time in us, the program's own columns, "+- %",
 * "samples" and "stopped by". */
void sample_print(const struct sample_result *result, const char *own, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes "time" (an object), "kept", "bouts" where there were several, "samples", "iterations_per_sample",
 * "stopped_by", "budget", and "clocks" where batches were timed by MPI's too. */
void sample_json(struct json *json, const struct sample_result *result);

#endif
