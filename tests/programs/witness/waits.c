/* Feeds the logs of messages and collectives as the wrappers of MPI calls do, analyses them, and
 * writes what each rank found to OUT.<rank>.
 *
 *     waits OUT script FILE            calls at given times: see play
 *     waits OUT messages COUNT PERIOD WIDTH   rank 0 sends to all others; ns
 *     waits OUT collectives COUNT      one after the other, of which some are late
 *     waits OUT program                real calls of MPI, and naps
 *     waits OUT clocks                 what the ranks' clocks say of one moment
 *
 * Hosts are made up: WAITS_HOST is the number of this rank's. AHEAD (s) and DRIFT (a factor) change
 * its clock. NO_MEMORY=log or =analysis: there is none for the one or the other. Where times are
 * given, a tick is a nanosecond. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clocks.h"
#include "communicators.h"
#include "instances.h"
#include "json.h"
#include "map.h"
#include "messages.h"
#include "ticks.h"
#include "waits.h"
#include "witness.h"

enum { MOST_NAMES = 64, MOST_COMMUNICATORS = 16, REPEATS = 20, NAP_NS = 3000000 };

struct witness witness;

static struct communicator communicators[MOST_COMMUNICATORS];
static int communicator_count;
static struct json *out;

/* The linker has the witness call these. */
static bool no_memory;
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return no_memory ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return no_memory ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return no_memory ? NULL : __real_realloc(memory, bytes);
}

static void set_no_memory(const char *when)
{
    const char *lacking = getenv("NO_MEMORY");
    no_memory = lacking && strcmp(lacking, when) == 0;
}

int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    static int64_t first;
    int code = __real_clock_gettime(id, now);
    const char *ahead = getenv("AHEAD"), *drift = getenv("DRIFT");
    int64_t ns = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec;
    if (!first)
        first = ns;
    ns += (int64_t)((drift ? atof(drift) : 0) * (double)(ns - first));
    ns += (int64_t)(1e9 * (ahead ? atof(ahead) : 0));
    *now = (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
    return code;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "waits: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static enum call call_named(const char *name)
{
    static const char *const names[CALLS] = {
#define NAME_OF(name) #name,
        FOR_EACH_CALL(NAME_OF)
#undef NAME_OF
    };
    for (int call = 0; call < CALLS; call++)
        if (strcmp(names[call], name) == 0)
            return (enum call)call;
    fail(name);
}

/* ---- Given times ---- */

static int64_t ns(const char *microseconds)
{
    return (int64_t)(1e3 * atof(microseconds) + 0.5);
}

/* "split ID COLOURS": with a colour for each rank, such as 0,1,- where - is for none. The new
 * communicators have the ids ID + colour, and are gone when they are analysed. */
static void play_split(char **words)
{
    char *colour = words[2];
    for (int rank = 0; rank < witness.rank; rank++)
        colour += strcspn(colour, ",") + 1;
    bool in = *colour != '-';
    struct communicator *communicator = &communicators[communicator_count];
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, in ? atoi(colour) : MPI_UNDEFINED, 0, &comm);
    if (!in)
        return;
    communicator->id = (uint64_t)(atoi(words[1]) + atoi(colour));
    MPI_Comm_rank(comm, &communicator->rank);
    MPI_Comm_size(comm, &communicator->size);
    MPI_Comm_group(comm, &communicator->group);
    MPI_Comm_free(&comm);
    communicator_count++;
}

/* "post NAME sender|receiver CHANNEL SEQUENCE TAG PEER TIME" */
static uint64_t play_post(char **words)
{
    enum side side = strcmp(words[2], "sender") == 0 ? SENDER : RECEIVER;
    return message_posted(side, (uint64_t)atoi(words[3]), (uint32_t)atoi(words[4]), atoi(words[5]),
                          atoi(words[6]), ns(words[7]));
}

/* "collective ID CALL ARRIVAL ROOT BEGIN END" */
static void play_collective(char **words)
{
    struct communicator *communicator = communicators;
    while (communicator->id != (uint64_t)atoi(words[1]))
        if (++communicator == communicators + communicator_count)
            fail("no such communicator");
    instance_add(&communicator->log, call_named(words[2]), 0, (enum arrival)atoi(words[3]),
                 atoi(words[4]) != 0, ns(words[5]), ns(words[6]));
}

/* A line is for one rank, "RANK VERB ...", or for all, "* VERB ...". Times are in us. */
static void play(const char *path)
{
    static char names[MOST_NAMES][32];
    static uint64_t serials[MOST_NAMES];
    int name_count = 0;
    char line[1024];
    FILE *file = fopen(path, "r");
    if (!file)
        fail(path);
    while (fgets(line, sizeof line, file)) {
        char *words[MOST_NAMES] = { strtok(line, " \n") };
        int count = 0;
        while (words[count] && count < MOST_NAMES - 1)
            words[++count] = strtok(NULL, " \n");
        if (!count || (words[0][0] != '*' && atoi(words[0]) != witness.rank))
            continue;
        char **verb = words + 1;
        if (strcmp(verb[0], "split") == 0) {
            play_split(verb);
        } else if (strcmp(verb[0], "collective") == 0) {
            play_collective(verb);
        } else if (strcmp(verb[0], "post") == 0) {
            snprintf(names[name_count], sizeof names[0], "%s", verb[1]);
            serials[name_count++] = play_post(verb);
        } else { /* "wait CALL BEGIN END NAME...", where the name - is no message */
            uint64_t waited[MOST_NAMES] = { NO_MESSAGE };
            for (int i = 5; i < count; i++)
                for (int name = 0; name < name_count; name++)
                    if (strcmp(names[name], words[i]) == 0)
                        waited[i - 5] = serials[name];
            messages_waited(call_named(verb[1]), 0, ns(verb[2]), ns(verb[3]), waited, count - 5);
        }
    }
    fclose(file);
}

/* Pseudo-random between 0 and 1, the same on all ranks. */
static double chance(uint64_t of)
{
    return (double)(map_hash(of + 1) >> 11) / 9007199254740992.0;
}

/* Rank 0 sends `width` messages to each of the others in turn, which have posted receives and wait
 * for them: very long at first. Then a third of them is late, more and more so. */
static void many_messages(int64_t count, int64_t period, int width)
{
    double waited = 0, whole = 0;
    uint64_t serials[MOST_NAMES];
    int others = witness.ranks - 1;
    int64_t first = count * period / 20;
    for (int64_t i = 0; i < count; i++) {
        int receiver = 1 + (int)(i % others);
        int64_t posted = i * period + (i < others ? 0 : first), begin = posted + period / 4;
        int64_t late = chance((uint64_t)i) < 1.0 / 3 ? period * i / count / 2 : -period / 8;
        if (i < others)
            late = first;
        int64_t end = (late > 0 ? begin + late : begin) + period / 8;
        uint64_t channel = map_hash((uint64_t)receiver);
        if (witness.rank != 0 && witness.rank != receiver)
            continue;
        for (int k = 0; k < width; k++) {
            bool sends = witness.rank == 0;
            int64_t time = sends ? begin + late - width + 1 + k : posted;
            serials[k] = message_posted(sends ? SENDER : RECEIVER, channel + (uint64_t)k,
                                        (uint32_t)i, 7, sends ? receiver : 0, time);
        }
        if (witness.rank == 0)
            continue;
        messages_waited(CALL_Waitall, 0, begin, end, serials, width);
        waited += late > 0 ? 1e-9 * (double)late : 0;
        whole += 1e-9 * (double)(end - begin);
    }
    json_number(out, "waited", waited);
    json_number(out, "whole", whole);
}

/* All ranks call `count` allreduces; the last rank comes late, and very late to the first. */
static void many_collectives(int64_t count)
{
    double waited = 0, whole = 0;
    int64_t time = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t late = i == 0       ? 5 * NAP_NS
                       : i % 4 == 3 ? 10000 * i / count
                                    : (int64_t)(1000 * chance((uint64_t)i));
        int64_t begin = witness.rank == witness.ranks - 1 ? time + late : time;
        instance_add(&communicators[0].log, CALL_Allreduce, 0, ALL_WAIT_FOR_ALL, false, begin,
                     time + late + 2000);
        waited += 1e-9 * (double)(time + late - begin);
        whole += 1e-9 * (double)(time + late + 2000 - begin);
        time += late + 12000;
    }
    json_number(out, "waited", waited);
    json_number(out, "whole", whole);
}

/* ---- Real times ---- */

static void nap(bool here)
{
    if (here)
        nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}

/* A call of both ranks, each at its own time. */
struct call_times {
    int64_t begin, end; /* ticks */
    int64_t real_begin, real_end;
};

static int64_t real_ns(void)
{
    struct timespec now;
    __real_clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void begin_call(struct call_times *times)
{
    nap(witness.rank == 0);
    times->begin = ticks();
    times->real_begin = real_ns();
}

/* Ranks tell each other when they began: so both know what the analysis should find. */
static void end_call(struct call_times *times, double *waited)
{
    times->end = ticks();
    times->real_end = real_ns();
    int64_t other;
    int peer = 1 - witness.rank;
    MPI_Sendrecv(&times->real_begin, 1, MPI_INT64_T, peer, 3, &other, 1, MPI_INT64_T, peer, 3,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (other > times->real_begin && other <= times->real_end)
        *waited += 1e-9 * (double)(other - times->real_begin);
}

/* Rank 0 comes late to all of it; rank 1 waits, unless the machine is busy. */
static void real_calls(void)
{
    bool late = witness.rank == 0;
    int peer = 1 - witness.rank, word = 0;
    double waited[3] = { 0 };
    struct call_times times;
    for (uint32_t i = 0; i < REPEATS; i++) {
        begin_call(&times);
        uint64_t serial = message_posted(late ? SENDER : RECEIVER, 10, i, 1, peer, times.begin);
        if (late)
            MPI_Send(&word, 1, MPI_INT, peer, 1, MPI_COMM_WORLD);
        else
            MPI_Recv(&word, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        end_call(&times, &waited[0]);
        messages_waited(late ? CALL_Send : CALL_Recv, 0, times.begin, times.end, &serial, 1);

        begin_call(&times);
        serial = message_posted(late ? RECEIVER : SENDER, 11, i, 1, peer, times.begin);
        if (late)
            MPI_Recv(&word, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Ssend(&word, 1, MPI_INT, peer, 1, MPI_COMM_WORLD);
        end_call(&times, &waited[1]);
        messages_waited(late ? CALL_Recv : CALL_Ssend, 0, times.begin, times.end, &serial, 1);

        begin_call(&times);
        MPI_Barrier(MPI_COMM_WORLD);
        end_call(&times, &waited[2]);
        instance_add(&communicators[0].log, CALL_Barrier, 0, ALL_WAIT_FOR_ALL, false, times.begin,
                     times.end);
    }
    json_object(out, "waited");
    json_number(out, late ? "MPI_Send" : "MPI_Recv", waited[0]);
    json_number(out, late ? "MPI_Recv" : "MPI_Ssend", waited[1]);
    json_number(out, "MPI_Barrier", waited[2]);
    json_end(out);
}

/* Moments of rank 0 before and after one of rank 1, in the middle between two measurements. */
static void compare_clocks(void)
{
    int64_t moments[3] = { 0 };
    for (int i = 0; i < 10; i++)
        nap(true);
    for (int i = 0; i < REPEATS; i++) {
        if (witness.rank == 0) {
            moments[0] = ticks();
            MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            moments[2] = ticks();
        } else if (witness.rank == 1) {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            moments[1] = ticks();
            MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        }
    }
    for (int i = 0; i < 10; i++)
        nap(true);
    ticks_calibrate();
    clocks_measure_end();
    for (int i = 0; i < 3; i++)
        if (moments[i])
            json_integer(out,
                         i == 0   ? "before"
                         : i == 1 ? "between"
                                  : "after",
                         clocks_global(moments[i]));
}

/* ---- What the analysis asks of communicators ---- */

static int by_id(const void *left, const void *right)
{
    const struct communicator *const *a = left, *const *b = right;
    return ((*a)->id > (*b)->id) - ((*a)->id < (*b)->id);
}

struct communicator **communicators_logged(int *count)
{
    struct communicator **found = calloc(MOST_COMMUNICATORS, sizeof(struct communicator *));
    *count = 0;
    for (int i = 0; found && i < communicator_count; i++)
        if (communicators[i].log)
            found[(*count)++] = &communicators[i];
    if (found)
        qsort(found, (size_t)*count, sizeof *found, by_id);
    return found;
}

int *communicator_members(const struct communicator *communicator)
{
    int size = communicator->size, *members = calloc((size_t)size, sizeof *members);
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int rank = 0; members && rank < size; rank++)
        MPI_Group_translate_ranks(communicator->group, 1, &rank, world, &members[rank]);
    MPI_Group_free(&world);
    return members;
}

/* ---- */

static void write_waits(void)
{
    static const char *const names[CALLS] = {
#define NAME_OF(name) "MPI_" #name,
        FOR_EACH_CALL(NAME_OF)
#undef NAME_OF
    };
    struct waits result[CALLS];
    set_no_memory("analysis");
    waits_analyse(result, NULL);
    no_memory = false;
    json_object(out, "waits");
    for (int call = 0; call < CALLS; call++) {
        if (result[call].analysed == 0)
            continue;
        json_object(out, names[call]);
        json_number(out, "analysed", result[call].analysed);
        json_number(out, "late_sender", result[call].late_sender);
        json_number(out, "late_receiver", result[call].late_receiver);
        json_number(out, "imbalance", result[call].imbalance);
        json_end(out);
    }
    json_end(out);
    json_integer(out, "messages_bytes", (long long)messages_bytes());
    json_integer(out, "instances_bytes", (long long)instances_bytes(communicators[0].log));
}

static void start(const char *path)
{
    char name[4096];
    const char *host = getenv("WAITS_HOST");
    MPI_Init(NULL, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &witness.comm);
    MPI_Comm_rank(witness.comm, &witness.rank);
    MPI_Comm_size(witness.comm, &witness.ranks);
    MPI_Comm_split(witness.comm, host ? atoi(host) : 0, 0, &witness.host_comm);
    MPI_Comm_rank(witness.host_comm, &witness.host_rank);
    MPI_Comm_dup(witness.comm, &witness.waits_comm);
    communicators[0] =
        (struct communicator){ .id = 1, .rank = witness.rank, .size = witness.ranks };
    MPI_Comm_group(witness.comm, &communicators[0].group);
    communicator_count = 1;
    snprintf(name, sizeof name, "%s.%d", path, witness.rank);
    out = json_open(name);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    start(argv[1]);
    bool real = strcmp(argv[2], "program") == 0 || strcmp(argv[2], "clocks") == 0;
    if (real) {
        ticks_start();
        clocks_measure_start();
    }
    set_no_memory("log");
    if (strcmp(argv[2], "script") == 0)
        play(argv[3]);
    else if (strcmp(argv[2], "messages") == 0)
        many_messages(atoll(argv[3]), atoll(argv[4]), atoi(argv[5]));
    else if (strcmp(argv[2], "collectives") == 0)
        many_collectives(atoll(argv[3]));
    else if (strcmp(argv[2], "program") == 0)
        real_calls();
    else
        compare_clocks();
    no_memory = false;
    if (strcmp(argv[2], "program") == 0) {
        ticks_calibrate();
        clocks_measure_end();
    }
    clocks_write_host(out);
    write_waits();
    for (int i = 0; i < communicator_count; i++)
        MPI_Group_free(&communicators[i].group);
    MPI_Comm_free(&witness.host_comm);
    MPI_Comm_free(&witness.waits_comm);
    MPI_Comm_free(&witness.comm);
    MPI_Finalize();
    return json_close(out) ? 0 : 1;
}
