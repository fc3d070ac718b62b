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
 * machines have phases. */
#ifndef ASSAY_SAMPLE_H
#define ASSAY_SAMPLE_H

#include <mpi.h>

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

struct sample_result {
    struct stats time; /* seconds per operation */
    int samples;
    long iterations;        /* operations per sample */
    const char *stopped_by; /* "ci" or "budget" */
    double budget;          /* of the plan */
};

/* The --focus option of a program that measures many sizes, of which few are made figures of. */
/* clang-format off */
#define SAMPLE_FOCUS_OPTION(sizes)                                                                \
    { .name = "focus", .kind = OPTION_NUMBERS, .value = &(sizes), .argument = "LIST", .low = 0,   \
      .high = (size_t)1 << 30,                                                                    \
      .help = "sizes in bytes that have the whole budget, where all others have a quarter of "    \
              "it (without it all have the whole)" }
/* clang-format on */

/* The plan for a size: of one that is not in focus the table is to tell the course alone. */
struct sample_plan sample_plan_for(struct sample_plan plan, const struct option_numbers *focus,
                                   size_t size);

/* Runs `iterations` operations on this rank and returns the seconds they took here, or 0 on a
 * rank whose clock does not count: a sample is the greatest of all ranks. It brings the ranks in
 * step before it starts the clock, and checks payloads after it has stopped it. */
typedef double sample_batch(void *context, long iterations);

/* Collective over `comm`. The result is valid on rank 0 of `comm` only. */
struct sample_result sample_run(struct sample_plan plan, MPI_Comm comm, sample_batch *batch,
                                void *context);

/* Writes "time" (an object), "samples", "iterations_per_sample", "stopped_by", "budget". */
void sample_json(struct json *json, const struct sample_result *result);

#endif
