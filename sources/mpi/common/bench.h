/* The frame of a benchmark program: start, the ways to stop, end.
 *
 *     bench_start(&argc, &argv, &about, options);    MPI_Init, options, header, JSON head
 *     json_array(bench.json, "results");
 *     ... measure, print table rows, write JSON objects ...
 *     json_end(bench.json);
 *     return bench_end();                            JSON completed and renamed, MPI_Finalize
 */
#ifndef ASSAY_BENCH_H
#define ASSAY_BENCH_H

#include <mpi.h>

#include "json.h"
#include "options.h"

/* Exit codes, the same in every program. */
enum {
    EXIT_WRONG_USE = 2,     /* options, number of ranks, memory: nothing was measured */
    EXIT_WRONG_PAYLOAD = 3, /* data arrived wrong */
    EXIT_BROKEN = 4,        /* the system refused something on the way */
};

struct bench_about {
    const char *program;
    const char *purpose;  /* one line, no full stop */
    const char *text;     /* what times and bandwidths mean; NULL-able; ends with a newline */
    const char *examples; /* command lines, one per line, each ends with a newline */
    int min_ranks;
    bool thread_funneled; /* it has threads that call no MPI: ask for MPI_THREAD_FUNNELED */
    const bool *thread_multiple; /* an option's value: ask for MPI_THREAD_MULTIPLE; NULL-able */
};

struct bench {
    const struct bench_about *about;
    const struct option_spec *options;
    int rank, ranks;
    char (*hosts)[MPI_MAX_PROCESSOR_NAME]; /* distinct, in the order of their first ranks */
    int host_count;
    int *host_of;      /* host_of[rank]: index into hosts */
    struct json *json; /* NULL on all ranks but 0, and without --json: the writer takes NULL */
};

extern struct bench bench;

/* Collective. Reads the options, initialises MPI (exits after --help and --version), gathers
 * hosts, refuses too few ranks, opens --json's file, prints the header. */
void bench_start(int *argc, char ***argv, const struct bench_about *about,
                 const struct option_spec *options);

/* Collective. Completes the JSON file, finalises MPI; returns main's value. */
int bench_end(void);

/* Collective: all ranks call it for the same reason. Rank 0 says "program: sentence"; all ranks
 * leave with EXIT_WRONG_USE through MPI_Finalize. */
_Noreturn void bench_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From any single rank: says "program: rank R: sentence", removes the incomplete JSON file where
 * this rank has it, and takes the job down with that exit code through MPI_Abort. */
_Noreturn void bench_abort(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
