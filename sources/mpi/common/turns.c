#include "turns.h"

#include <stdlib.h>

#include "bench.h"

/* All batches so far, those of the warm-up too. */
struct turns {
    MPI_Comm comm;
    int things;
    turns_batch *batch;
    void *context;
    int count, room;
    double (*seconds)[TURNS_MOST];
    struct sample_clocks clocks; /* of all things together */
};

static double one_turn(void *context, long iterations)
{
    struct turns *turns = context;
    if (turns->count == turns->room) {
        turns->room = 2 * turns->room + 64;
        turns->seconds = realloc(turns->seconds, (size_t)turns->room * sizeof *turns->seconds);
        if (!turns->seconds)
            bench_abort(EXIT_BROKEN, "no memory for %d samples", turns->room);
    }
    double *seconds = turns->seconds[turns->count++], own[TURNS_MOST], whole = 0, whole_own = 0;
    turns->batch(turns->context, iterations, own);
    sample_slowest(turns->comm, own, seconds, turns->things);
    for (int i = 0; i < turns->things; i++) {
        whole += seconds[i];
        whole_own += own[i];
    }
    sample_clocks_add(&turns->clocks, turns->things * iterations, whole_own, whole);
    sample_clocks_start(); /* whoever called holds them against no other time */
    return whole;
}

void turns_run(struct sample_plan plan, MPI_Comm comm, int things, turns_batch *batch,
               void *context, struct sample_result *results)
{
    struct turns turns = { .comm = comm, .things = things, .batch = batch, .context = context };
    struct sample_result whole = sample_run(plan, comm, one_turn, &turns);
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0) {
        /* The samples are the last batches; those before were the warm-up. */
        int first = turns.count - whole.samples;
        double *values = malloc((size_t)whole.samples * sizeof *values);
        if (!values)
            bench_abort(EXIT_BROKEN, "no memory for %d samples", whole.samples);
        for (int i = 0; i < things; i++) {
            results[i] = whole;
            results[i].clocks = i == 0 ? turns.clocks : (struct sample_clocks){ 0 };
            results[i].kept = 0;
            for (int s = 0; s < whole.samples; s++) {
                values[s] = turns.seconds[first + s][i] / (double)whole.iterations;
                results[i].kept += turns.seconds[first + s][i];
            }
            results[i].time = stats_of(values, whole.samples);
        }
        free(values);
    }
    free(turns.seconds);
}
