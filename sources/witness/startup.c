#include "startup.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clocks.h"
#include "ticks.h"
#include "witness.h"

enum { SLOW_SECONDS = 1 };

static int64_t begun;       /* of main, on the steady clock */
static int64_t day_of_begin; /* by how much the clock of the day was ahead of that */
static int64_t entered;
static double init;
static char path[4096];

static int64_t day_ahead_of_steady(void)
{
    struct timespec day;
    clock_gettime(CLOCK_REALTIME, &day);
    return (int64_t)day.tv_sec * 1000000000 + day.tv_nsec - monotonic_ns();
}

/* Of the last program that this process became: main is called next. */
__attribute__((constructor)) static void note_begin(void)
{
    begun = monotonic_ns();
    day_of_begin = day_ahead_of_steady();
}

void startup_enter_init(void)
{
    entered = monotonic_ns();
}

void startup_leave_init(void)
{
    init = 1e-9 * (double)(monotonic_ns() - entered);
}

void startup_clear(const char *report)
{
    if (snprintf(path, sizeof path, "%s.finalized", report) >= (int)sizeof path)
        path[0] = '\0';
    if (witness.rank == 0)
        unlink(path);
}

void startup_write(struct json *json)
{
    const char *told = getenv("ASSAY_WITNESS_LAUNCHED");
    int64_t launched = told ? strtoll(told, NULL, 10) : 0, day = day_ahead_of_steady();
    if (launched > 0) /* by rank 0's clock of today, which may have been set meanwhile */
        launched += day - day_of_begin;
    PMPI_Bcast(&launched, 1, MPI_INT64_T, 0, witness.comm);
    double taken = 1e-9 * (double)(begun + day - launched) - clocks_day_ahead();
    json_object(json, "startup");
    if (launched > 0 && taken >= 0)
        json_number(json, "main", taken);
    json_number(json, "init", init);
    json_end(json);
}

void startup_enter_finalize(void)
{
    entered = monotonic_ns();
}

void startup_leave_finalize(void)
{
    long long us = (monotonic_ns() - entered) / 1000, million = 1000000;
    bool is_slow = witness.host_rank == 0 && us >= SLOW_SECONDS * million;
    if (!path[0] || (witness.rank != 0 && !is_slow))
        return;
    char line[96]; /* whatever the locale of the program has for a point */
    int length = snprintf(line, sizeof line, "{\"rank\": %d, \"finalize\": %lld.%06lld}\n",
                          witness.rank, us / million, us % million);
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        return;
    ssize_t written = write(file, line, (size_t)length);
    close(file);
    if (written != length && witness.rank == 0) /* of a full disk nothing empty must stay */
        unlink(path);
}
