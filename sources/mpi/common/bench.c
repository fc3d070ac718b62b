#include "bench.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abort_job.h"
#include "report.h"

struct bench bench;

static void find_hosts(void)
{
    char own[MPI_MAX_PROCESSOR_NAME] = "";
    int length;
    MPI_Get_processor_name(own, &length);

    bench.hosts = calloc((size_t)bench.ranks, sizeof *bench.hosts);
    bench.host_of = calloc((size_t)bench.ranks, sizeof *bench.host_of);
    if (!bench.hosts || !bench.host_of)
        bench_abort(EXIT_BROKEN, "no memory for the names of %d hosts", bench.ranks);
    MPI_Allgather(own, sizeof own, MPI_CHAR, bench.hosts, sizeof own, MPI_CHAR, MPI_COMM_WORLD);

    for (int rank = 0; rank < bench.ranks; rank++) {
        int host = 0;
        while (host < bench.host_count && strcmp(bench.hosts[host], bench.hosts[rank]) != 0)
            host++;
        if (host == bench.host_count)
            memmove(bench.hosts[bench.host_count++], bench.hosts[rank], sizeof own);
        bench.host_of[rank] = host;
    }
}

_Noreturn static void leave(int code)
{
    fflush(NULL);
    free(bench.hosts);
    free(bench.host_of);
    MPI_Finalize();
    exit(code);
}

static void open_json(const char *path)
{
    int problem = 0;
    if (path && bench.rank == 0) {
        bench.json = json_open(path);
        problem = bench.json ? 0 : errno;
    }
    MPI_Bcast(&problem, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (problem)
        bench_refuse("cannot write %s: %s; give --json a path in a folder that exists and "
                     "is writable",
                     path, strerror(problem));
}

void bench_start(int *argc, char ***argv, const struct bench_about *about,
                 const struct option_spec *options)
{
    bench.about = about;
    bench.options = options;

    char problem[512];
    const char *json_path;
    enum option_outcome outcome =
        options_parse(*argc, *argv, options, &json_path, problem, sizeof problem);

    int level;
    if (about->thread_multiple && *about->thread_multiple)
        MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
    else if (about->thread_funneled)
        MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level);
    else
        MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.ranks);

    if (outcome == OPTIONS_HELP) {
        if (bench.rank == 0)
            report_help();
        leave(EXIT_SUCCESS);
    }
    if (outcome == OPTIONS_VERSION) {
        if (bench.rank == 0)
            printf("%s (Assay) %s\n", about->program, report_version());
        leave(EXIT_SUCCESS);
    }
    if (outcome == OPTIONS_WRONG)
        bench_refuse("%s; see %s --help", problem, about->program);
    if (bench.ranks < about->min_ranks)
        bench_refuse("needs at least %d ranks and has %d; start it with mpirun -n %d, and with "
                     "the mpirun of the MPI it was built with: under another MPI's launcher "
                     "every process is a rank 0 of 1",
                     about->min_ranks, bench.ranks, about->min_ranks);

    find_hosts();
    open_json(json_path);
    report_head();
    MPI_Query_thread(&level);
    if (about->thread_multiple && *about->thread_multiple && level != MPI_THREAD_MULTIPLE)
        bench_refuse("this MPI does not give MPI_THREAD_MULTIPLE; use one that was built with it");
}

int bench_end(void)
{
    const char *missing = json_not_finite(bench.json);
    if (missing)
        bench_abort(EXIT_BROKEN,
                    "\"%s\" came out as no number, which is no measurement; nothing "
                    "is written",
                    missing);
    json_boolean(bench.json, "complete", true);
    if (bench.json && !json_close(bench.json))
        bench_abort(EXIT_BROKEN, "cannot complete the JSON file: %s", strerror(errno));
    free(bench.hosts);
    free(bench.host_of);
    fflush(stdout);
    MPI_Finalize();
    return EXIT_SUCCESS;
}

_Noreturn void bench_refuse(const char *format, ...)
{
    if (bench.rank == 0) {
        char sentence[1024];
        va_list values;
        va_start(values, format);
        vsnprintf(sentence, sizeof sentence, format, values);
        va_end(values);
        fflush(stdout);
        /* In one piece: Open MPI's launcher may deliver the first of several as standard output. */
        fprintf(stderr, "%s: %s\n", bench.about->program, sentence);
    }
    json_discard(bench.json);
    leave(EXIT_WRONG_USE);
}

_Noreturn void bench_abort(int code, const char *format, ...)
{
    char sentence[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(sentence, sizeof sentence, format, values);
    va_end(values);
    fflush(stdout);
    /* In one piece, as several ranks may find the same thing wrong at once. */
    fprintf(stderr, "%s: rank %d: %s\n", bench.about->program, bench.rank, sentence);
    json_discard(bench.json);
    abort_job(MPI_COMM_WORLD, code);
}
