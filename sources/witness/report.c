#include "report.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clocks.h"
#include "disturbed.h"
#include "json.h"
#include "libraries.h"
#include "machine.h"
#include "map.h"
#include "monitoring.h"
#include "placement.h"
#include "settings.h"
#include "startup.h"
#include "traffic.h"
#include "variables.h"

/* A rank's entry among the processes, and on the first rank of a host that of the host. */
static struct json *process, *host;

static void open_entries(void)
{
    process = json_memory();
    json_integer(process, "rank", witness.rank);
    json_string(process, "host", witness.host);
    placement_write(process);
    host = NULL;
    if (witness.host_rank == 0) {
        host = json_memory();
        json_string(host, "name", witness.host);
        placement_write_host(host);
    }
}

/* What all ranks should have in common -------------------------------------------------------- */

static char *mpi_text(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "", standard[16];
    int length, version, subversion;
    PMPI_Get_library_version(library, &length);
    library[strcspn(library, "\n")] = '\0';
    PMPI_Get_version(&version, &subversion);
    snprintf(standard, sizeof standard, "%d.%d", version, subversion);
    static const char *const levels[] = { "single", "funneled", "serialized", "multiple" };
    int level = witness.thread_level == MPI_THREAD_MULTIPLE     ? 3
                : witness.thread_level == MPI_THREAD_SERIALIZED ? 2
                : witness.thread_level == MPI_THREAD_FUNNELED   ? 1
                                                                : 0;
    Dl_info where;
    struct json *json = json_memory();
    json_string(json, "library", library);
    json_string(json, "standard", standard);
    json_string(json, "thread_level", levels[level]);
    bool found = dladdr((void *)(uintptr_t)PMPI_Initialized, &where) && where.dli_fname;
    json_string(json, "path", found ? where.dli_fname : "");
    return json_text(json);
}

struct identity {
    char *mpi; /* an object */
    struct libraries libraries;
};

static struct identity find_identity(void)
{
    return (struct identity){ mpi_text(), libraries_find() };
}

static void free_identity(struct identity *identity)
{
    free(identity->mpi);
    libraries_free(&identity->libraries);
}

/* Most ranks are like rank 0, which then need not be told what they have. */
static void write_differences(const struct identity *own)
{
    uint64_t mine[2] = { map_hash_text(own->mpi, 0), libraries_hash(&own->libraries) };
    uint64_t first[2] = { mine[0], mine[1] };
    PMPI_Bcast(first, 2, MPI_UINT64_T, 0, witness.comm);
    char *variables = variables_differing(), *settings = settings_differing();
    if (memcmp(mine, first, sizeof mine) == 0 && !variables && !settings)
        return;
    json_object(process, "differs");
    if (mine[0] != first[0] && own->mpi)
        json_raw(process, "mpi", own->mpi);
    if (variables)
        json_raw(process, "environment", variables);
    if (settings)
        json_raw(process, "settings", settings);
    if (mine[1] != first[1])
        libraries_write(process, &own->libraries);
    json_end(process);
    free(variables);
    free(settings);
}

/* The file --------------------------------------------------------------------------------------- */

static void write_command(struct json *json)
{
    char text[4096];
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = '\0';
    json_array(json, "command");
    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        json_string(json, NULL, text + at);
    json_end(json);
}

static void write_head(struct json *json, bool complete, const struct identity *identity)
{
    static char started[32];
    if (!started[0]) {
        time_t now = time(NULL);
        struct tm utc;
        strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    }
    json_integer(json, "schema", REPORT_SCHEMA);
    json_string(json, "witness", ASSAY_VERSION);
    json_boolean(json, "complete", complete);
    json_array(json, "sections");
    json_string(json, NULL, "placement");
    json_string(json, NULL, "fabric");
    if (witness.profile)
        json_string(json, NULL, "profile");
    if (witness.matrix)
        json_string(json, NULL, "matrix");
    json_end(json);
    write_command(json);
    json_string(json, "started", started);
    json_integer(json, "ranks", witness.ranks);
    json_raw(json, "mpi", identity->mpi ? identity->mpi : "{}");
    libraries_write(json, &identity->libraries);
    json_object(json, "environment");
    variables_write(json);
    json_end(json);
    json_object(json, "settings");
    settings_write(json);
    json_end(json);
}

/* Ranks come in turn, and only so many before they are read: rank 0 must not have to hold them all. */
enum { TAG_TURN = 1, TAG_TEXT, AHEAD = 64 };

static void call_in(int rank)
{
    if (rank < witness.ranks)
        PMPI_Send(NULL, 0, MPI_CHAR, rank, TAG_TURN, witness.comm);
}

static char *receive_text(int rank)
{
    MPI_Message message;
    MPI_Status status;
    int length;
    PMPI_Mprobe(rank, TAG_TEXT, witness.comm, &message, &status);
    PMPI_Get_count(&status, MPI_CHAR, &length);
    char *text = calloc(1, (size_t)length + 1);
    char *room = text ? text : malloc(1);
    PMPI_Mrecv(room, text ? length : 0, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    if (!text)
        free(room);
    return text;
}

static void send_text(const char *text)
{
    PMPI_Send(text ? text : "", text ? (int)strlen(text) : 0, MPI_CHAR, 0, TAG_TEXT, witness.comm);
}

/* Writes the processes as they come, then the hosts. */
static void write_entries(struct json *json, char *own_process, char *own_host)
{
    char **hosts = calloc((size_t)witness.ranks, sizeof *hosts);
    int host_count = 0;
    for (int rank = 1; rank <= AHEAD; rank++)
        call_in(rank);
    json_array(json, "processes");
    for (int rank = 0; rank < witness.ranks; rank++) {
        call_in(rank > 0 ? rank + AHEAD : witness.ranks);
        char *process_text = rank > 0 ? receive_text(rank) : own_process;
        char *host_text = rank > 0 ? receive_text(rank) : own_host;
        if (process_text && process_text[0])
            json_raw(json, NULL, process_text);
        if (hosts && host_text && host_text[0])
            hosts[host_count++] = host_text;
        else
            free(host_text);
        free(process_text);
    }
    json_end(json);
    json_array(json, "hosts");
    for (int i = 0; i < host_count; i++) {
        json_raw(json, NULL, hosts[i]);
        free(hosts[i]);
    }
    json_end(json);
    free(hosts);
}

/* Once: what fails at the start fails at the end as well. */
static void tell_unwritten(const char *path, int error)
{
    static bool told;
    if (!told)
        witness_say("assay witness: cannot write %s: %s\n", path, strerror(error));
    told = true;
}

static struct json *unfinished;

void report_abandon(void)
{
    json_discard(unfinished);
    unfinished = NULL;
}

static void write_report(const char *path, bool complete)
{
    struct identity identity = find_identity();
    write_differences(&identity);
    char *process_text = json_text(process), *host_text = json_text(host);
    if (witness.rank > 0) {
        PMPI_Recv(NULL, 0, MPI_CHAR, 0, TAG_TURN, witness.comm, MPI_STATUS_IGNORE);
        send_text(process_text);
        send_text(host_text);
        free(process_text);
        free(host_text);
    } else {
        struct json *json = unfinished = json_replace(path);
        int error = errno;
        if (json)
            write_head(json, complete, &identity);
        write_entries(json, process_text, host_text);
        unfinished = NULL;
        if (!json || !json_close(json)) {
            tell_unwritten(path, json ? errno : error);
            json_discard(json);
        }
    }
    free_identity(&identity);
}

void report_write_sessions(const char *path, int ranks)
{
    struct json *json = json_replace(path);
    int error = errno;
    if (json) {
        json_integer(json, "schema", REPORT_SCHEMA);
        json_string(json, "witness", ASSAY_VERSION);
        json_boolean(json, "complete", false);
        json_boolean(json, "sessions", true);
        write_command(json);
        json_integer(json, "ranks", ranks);
    }
    if (!json || !json_close(json)) {
        tell_unwritten(path, json ? errno : error);
        json_discard(json);
    }
}

void report_write_start(const char *path)
{
    open_entries();
    write_report(path, false);
}

void report_collect(void)
{
    open_entries();
    traffic_write_sockets(process);
    disturbed_write(host);
    if (host) {
        traffic_write_devices(host);
        machine_write(host);
    }
}

/* What the rank did ------------------------------------------------------------------------------ */

static void write_calls(const struct summary *summary)
{
    json_number(process, "wall", summary->wall);
    json_number(process, "mpi_time", tally_time(summary->totals));
    json_integer(process, "mpi_threads", summary->threads);
    json_object(process, "calls");
    for (int call = 0; call < CALLS; call++) {
        const struct total *total = &summary->totals[call];
        if (!total->count)
            continue;
        json_object(process, call_name((enum call)call));
        json_integer(process, "count", (long long)total->count);
        json_integer(process, "timed", (long long)total->timed);
        json_number(process, "time", total->time);
        json_integer(process, "bytes", (long long)total->bytes);
        json_end(process);
    }
    json_end(process);
}

static void write_waits(const struct summary *summary)
{
    if (summary->gave_up)
        json_boolean(process, "waits_incomplete", true);
    json_object(process, "waits");
    for (int call = 0; call < CALLS; call++) {
        const struct waits *waits = &summary->waits[call];
        if (waits->analysed <= 0)
            continue;
        json_object(process, call_name((enum call)call));
        json_number(process, "analysed", waits->analysed);
        json_number(process, "late_sender", waits->late_sender);
        json_number(process, "late_receiver", waits->late_receiver);
        json_number(process, "imbalance", waits->imbalance);
        json_end(process);
    }
    json_end(process);
}

static void write_sizes(const struct partner *partner)
{
    json_object(process, "sizes");
    for (int bin = 0; bin < SIZE_BINS; bin++) {
        char key[24];
        snprintf(key, sizeof key, "%llu", bin ? 1ull << (bin - 1) : 0);
        if (partner->sizes[bin])
            json_integer(process, key, (long long)partner->sizes[bin]);
    }
    json_end(process);
}

static void write_ranks(const struct partner *partner)
{
    char one[16];
    snprintf(one, sizeof one, "%d", partner->rank);
    json_string(process, "ranks", partner->ranks ? partner->ranks : one);
}

static void write_partner(const struct partner *partner)
{
    static const char *const kinds[KINDS] = { [ONE_SIDED] = "one_sided",
                                              [NEIGHBOURS] = "neighbours" };
    uint64_t messages = 0;
    for (int bin = 0; bin < SIZE_BINS; bin++)
        messages += partner->sizes[bin];
    bool is_known = partner->rank >= 0 || partner->kind != COLLECTIVES;
    if (!messages || !is_known)
        return;
    json_object(process, NULL);
    if (partner->kind == COLLECTIVES)
        write_ranks(partner);
    else
        json_integer(process, "rank", partner->rank);
    if (kinds[partner->kind])
        json_string(process, "kind", kinds[partner->kind]);
    json_integer(process, "messages", (long long)messages);
    json_integer(process, "bytes", (long long)partner->bytes);
    if (witness.matrix)
        write_sizes(partner);
    json_end(process);
}

static int in_order(const void *left, const void *right)
{
    const struct partner *a = *(const struct partner *const *)left;
    const struct partner *b = *(const struct partner *const *)right;
    if (a->ranks || b->ranks)
        return a->ranks && b->ranks ? strcmp(a->ranks, b->ranks) : a->ranks ? 1 : -1;
    if (a->rank != b->rank)
        return a->rank > b->rank ? 1 : -1;
    return (a->kind > b->kind) - (a->kind < b->kind);
}

static void write_partners(void)
{
    const struct routes *routes = tally_routes();
    const struct map *partners = &routes->partners;
    const struct partner **ordered = calloc(partners->count + 1, sizeof(struct partner *));
    size_t count = 0;
    for (size_t i = 0; ordered && i < partners->room; i++)
        if (partners->entries[i].value)
            ordered[count++] = partners->entries[i].value;
    if (ordered)
        qsort(ordered, count, sizeof *ordered, in_order);
    json_array(process, "partners");
    for (size_t i = 0; i < count; i++)
        if (ordered[i]->kind != COLLECTIVES)
            write_partner(ordered[i]);
    json_end(process);
    json_array(process, "collectives");
    for (size_t i = 0; i < count; i++)
        if (ordered[i]->kind == COLLECTIVES)
            write_partner(ordered[i]);
    json_end(process);
    if (routes->is_full)
        json_boolean(process, "collectives_incomplete", true);
    free(ordered);
}

void report_write_end(const char *path, const struct summary *summary)
{
    startup_write(process);
    write_calls(summary);
    if (witness.profile)
        write_waits(summary);
    write_partners();
    monitoring_write(process);
    sites_write(process, summary->site_waits);
    phases_write(process);
    json_integer(process, "state_bytes", (long long)summary->state);
    if (host)
        clocks_write_host(host);
    write_report(path, true);
}
