/* MPI_Init, MPI_Finalize and MPI_Abort: when the witness starts and ends. */
#include <dlfcn.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clocks.h"
#include "communicators.h"
#include "distance.h"
#include "disturbed.h"
#include "ending.h"
#include "map.h"
#include "messages.h"
#include "monitoring.h"
#include "placement.h"
#include "report.h"
#include "requests.h"
#include "settings.h"
#include "silence.h"
#include "stacks.h"
#include "startup.h"
#include "survivors.h"
#include "table.h"
#include "traffic.h"
#include "variables.h"
#include "waits.h"
#include "wrap.h"

struct witness witness;

static char report_path[4096];
static int64_t started, ended;
static struct stat standard_error; /* as the process got it */

/* Before the constructors that have something to say. */
__attribute__((constructor(101))) static void remember_standard_error(void)
{
    if (fstat(STDERR_FILENO, &standard_error) != 0)
        standard_error = (struct stat){ 0 };
}

void witness_say(const char *format, ...)
{
    struct stat now;
    if (fstat(STDERR_FILENO, &now) != 0 || now.st_dev != standard_error.st_dev ||
        now.st_ino != standard_error.st_ino)
        return;
    char *text;
    va_list values;
    va_start(values, format);
    int length = vasprintf(&text, format, values);
    va_end(values);
    if (length < 0)
        return;
    const struct apart apart = apart_begin(); /* who reads it may have gone */
    fwrite(text, 1, (size_t)length, stderr); /* in one piece, as other ranks may be writing too */
    apart_end(&apart);
    free(text);
}

static bool built_for_this_mpi(void)
{
    enum { LONGEST_OF_ALL = 8192 }; /* MPICH's MPI_MAX_LIBRARY_VERSION_STRING */
    char library[LONGEST_OF_ALL] = "";
    int length;
    PMPI_Get_library_version(library, &length);
    int abi = bound_abi();
#if defined OPEN_MPI
    bool right = strncmp(library, "Open MPI", 8) == 0 && abi < 0;
    const char *own = "Open MPI";
#elif defined MPICH_VERSION || !defined MPI_ABI_VERSION
    bool right = strncmp(library, "Open MPI", 8) != 0 && abi < 0;
    const char *own = "MPICH or Intel MPI";
#else /* the standard's ABI, whose header is the same in every MPI */
    bool right = abi == MPI_ABI_VERSION;
    const char *own = "MPI's standard ABI (libmpi_abi)";
#endif
    library[strcspn(library, "\n")] = '\0';
    if (!right)
        witness_say("assay witness: built for %s, but this program runs on %s%s: it records "
                    "nothing\n",
                    own, library, abi < 0 ? "" : ", through MPI's standard ABI");
    return right;
}

/* Takes this library from LD_PRELOAD; false where it is not in there. */
static bool preload_no_longer(void)
{
    char *others = variables_preloaded();
    if (!others)
        return false;
    setenv("LD_PRELOAD", others, true);
    free(others);
    return true;
}

/* What programs for MPI are linked with to run alone has MPI's names, and nothing else of it: no second
 * names (PMPI_) either. */
static bool is_only_in_name(void)
{
    return !assay_PMPI_Initialized && dlsym(RTLD_NEXT, "MPI_Init");
}

/* Handles have another type in another MPI, so that no wrapper could even pass them on. The program
 * starts again without the witness, before it has done anything. */
__attribute__((constructor)) static void leave_another_mpi(int argc, char **argv)
{
    char program[4096];
    (void)argc;
    bool is_another_s = assay_PMPI_Initialized ? !built_for_this_mpi() : is_only_in_name();
    if (!is_another_s || !preload_no_longer())
        return;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = '\0';
        execv(program, argv);
    }
}

/* A rank without the witness would never come: say so once, and go on waiting. */
static void duplicate_world(void)
{
    enum { PATIENCE_SECONDS = 20 };
    MPI_Request request;
    int done = 0;
    int64_t asked = monotonic_ns();
    bool told = false;
    survivors_idup_world(&witness.comm, &request);
    while (PMPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
        if (told || monotonic_ns() - asked < PATIENCE_SECONDS * 1000000000ll)
            continue;
        witness_say("assay witness: rank %d has waited %d s in MPI_Init for the other ranks: "
                    "is the library preloaded into all of them?\n",
                    witness.rank, PATIENCE_SECONDS);
        told = true;
    }
}

/* The witness's own communicators. What fails in them is nothing to the program's error handlers. */
static void make_communicators(void)
{
    duplicate_world();
    PMPI_Comm_set_errhandler(witness.comm, MPI_ERRORS_RETURN);
    PMPI_Comm_dup(witness.comm, &witness.waits_comm);
}

/* What rank 0 was told counts for all. */
static void choose_sections(void)
{
    const char *sections = getenv("ASSAY_WITNESS");
    int chosen[3] = { !sections || strstr(sections, "profile"),
                      !sections || strstr(sections, "matrix"),
                      !sections || !strstr(sections, "silent") };
    PMPI_Bcast(chosen, 3, MPI_INT, 0, witness.comm);
    witness.profile = chosen[0];
    witness.matrix = chosen[1];
    witness.table = chosen[2];
}

/* By name: by shared memory an MPI that is told not to use it finds each rank alone. Two names of one
 * hash get another. */
static void find_host(void)
{
    int length;
    PMPI_Get_processor_name(witness.host, &length);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        int colour = (int)(map_hash_text(witness.host, seed) & 0x7fffffff);
        PMPI_Comm_split(witness.comm, colour, 0, &witness.host_comm);
        char first[MPI_MAX_PROCESSOR_NAME];
        memcpy(first, witness.host, sizeof first);
        PMPI_Bcast(first, sizeof first, MPI_CHAR, 0, witness.host_comm);
        int same = strcmp(first, witness.host) == 0, all_same;
        PMPI_Allreduce(&same, &all_same, 1, MPI_INT, MPI_MIN, witness.comm);
        if (all_same || seed == 4)
            break;
        PMPI_Comm_free(&witness.host_comm);
    }
    PMPI_Comm_rank(witness.host_comm, &witness.host_rank);
}

static void choose_report_path(void)
{
    const char *asked = getenv("ASSAY_WITNESS_REPORT");
    const char *path = asked && *asked ? asked : "assay-witness.json";
    char folder[2048] = "";
    /* Absolute: the program may change its folder. */
    if (*path != '/' && !getcwd(folder, sizeof folder))
        folder[0] = '\0';
    snprintf(report_path, sizeof report_path, "%s%s%s", *path == '/' ? "" : folder,
             *folder && *path != '/' ? "/" : "", path);
}

static const char *folder_of_report(void)
{
    static char folder[sizeof report_path];
    memcpy(folder, report_path, sizeof folder);
    return dirname(folder);
}

/* Spawned ranks have an MPI_COMM_WORLD, and so a report, of their own. */
static void tell_spawned_apart(void)
{
    MPI_Comm parent;
    PMPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL)
        return;
    int leader = getpid();
    PMPI_Bcast(&leader, 1, MPI_INT, 0, witness.comm);
    size_t length = strlen(report_path);
    snprintf(report_path + length, sizeof report_path - length, ".spawned-%d", leader);
}

static void start_recording(void)
{
    PMPI_Query_thread(&witness.thread_level);
    PMPI_Comm_rank(MPI_COMM_WORLD, &witness.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &witness.ranks);
    make_communicators();
    choose_sections();
    find_host();
    survivors_start();
    tell_spawned_apart();
    settings_after_init();
    startup_clear(report_path);
    stacks_after_init();
    if (witness.profile)
        clocks_measure_start();
    ending_clear(report_path);
    report_write_start(report_path);
    ending_watch();
    disturbed_start(folder_of_report());
    if (witness.host_rank == 0)
        traffic_start();
    monitoring_start();
    started = ticks();
    witness.active = true;
    struct thread *thread = thread_join();
    if (thread && witness.profile)
        thread->left = started;
    communicator_of(MPI_COMM_WORLD);
}

static void start(void)
{
    const struct apart apart = apart_begin();
    placement_after_init();
    if (built_for_this_mpi())
        start_recording();
    apart_end(&apart);
}

static size_t state_bytes(void)
{
    return tally_bytes() + communicators_bytes() + requests_bytes() + messages_bytes();
}

static void analyse_waits(struct summary *summary)
{
    summary->site_waits = calloc((size_t)sites_count(), sizeof *summary->site_waits);
    summary->gave_up = !waits_analyse(summary->waits, summary->site_waits);
    if (summary->gave_up)
        witness_say(
            "assay witness: rank %d has waited too long in MPI_Finalize for what another rank "
            "knows: the report does not say all of who waited\n",
            witness.rank);
}

static volatile bool gathered; /* known on rank 0 before the others */

static void gather(void)
{
    static struct summary summary;
    report_collect();
    ticks_calibrate();
    summary.wall = ticks_to_seconds(ended - started);
    summary.threads = tally_threads();
    summary.state = state_bytes();
    tally_totals(summary.totals);
    if (witness.profile) {
        clocks_measure_end();
        analyse_waits(&summary);
    } else {
        clocks_measure_once();
    }
    report_write_end(report_path, &summary);
    ending_clear(report_path);
    gathered = witness.rank == 0;
    if (witness.profile && witness.table)
        table_print(&summary);
    /* Its communicators are left to MPI_Finalize: that of MPICH 4.0.2 over UCX and TCP hangs where they
     * were freed just before, or where one rank is still in a collective. */
    PMPI_Barrier(witness.comm);
    gathered = true;
}

static void stop(void)
{
    ended = ticks();
    witness.active = false;
    monitoring_stop();
    phases_end(ended);
    ticker_stop();
    ending_leave_signals();
    if (!survivors_do(gather, &gathered)) {
        report_abandon();
        distance_abandon();
        ending_write("MPI_Finalize of a job that lost a rank");
    }
    ending_unwatch();
    this_thread = NULL;
}

static void before_init(void)
{
    const struct apart apart = apart_begin();
    bind_mpi();
    placement_before_init();
    ending_before_init();
    choose_report_path();
    stacks_before_init(report_path);
    variables_before_init();
    ticks_start();
    apart_end(&apart);
}

#ifdef HAS_PMPI_Session_init
/* Not all ranks need have a session, so that there is nothing to gather in. Rank 0 says so, once. */
static void tell_of_sessions(MPI_Session session)
{
    static atomic_bool told;
    MPI_Group world;
    int rank, ranks;
    if (witness.active || report_path[0] || atomic_exchange(&told, true) ||
        PMPI_Group_from_session_pset(session, "mpi://WORLD", &world) != MPI_SUCCESS)
        return;
    PMPI_Group_rank(world, &rank);
    PMPI_Group_size(world, &ranks);
    PMPI_Group_free(&world);
    if (rank != 0)
        return;
    choose_report_path();
    witness_say("assay witness: the program uses MPI sessions: without MPI_Init nothing is "
                "recorded\n");
    const struct apart apart = apart_begin();
    report_write_sessions(report_path, ranks);
    apart_end(&apart);
}

EXPORT int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
{
    bind_mpi();
    int code = PMPI_Session_init(info, handler, session);
    if (code == MPI_SUCCESS)
        tell_of_sessions(*session);
    return code;
}
#endif

EXPORT int MPI_Init(int *argc, char ***argv)
{
    before_init();
    startup_enter_init();
    int code = PMPI_Init(argc, argv);
    startup_leave_init();
    if (code == MPI_SUCCESS)
        start();
    return code;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    before_init();
    startup_enter_init();
    int code = PMPI_Init_thread(argc, argv, required, provided);
    startup_leave_init();
    if (code == MPI_SUCCESS)
        start(); /* MPICH takes NULL for `provided` */
    return code;
}

EXPORT int MPI_Finalize(void)
{
    bind_mpi();
    if (!witness.active)
        return PMPI_Finalize();
    struct apart apart = apart_begin();
    call_last(CALL_Finalize);
    stop();
    startup_enter_finalize();
    apart_end(&apart);
    int code = PMPI_Finalize();
    apart = apart_begin();
    startup_leave_finalize();
    apart_end(&apart);
    return code;
}

/* Nobody has seen its MPI_Init: the program may have looked it up (dlsym), as interpreters do. Rank 0
 * says so, where the launcher tells ranks, and no child that the program has forked. */
static pid_t loaded_by;

__attribute__((constructor)) static void remember_process(void)
{
    loaded_by = getpid();
}

__attribute__((destructor)) static void tell_of_unseen(void)
{
    static const char *const ranks[] = { "PMIX_RANK",          "PMI_RANK",
                                         "SLURM_PROCID",       "PALS_RANKID",
                                         "FLUX_TASK_RANK",     "OMPI_COMM_WORLD_RANK",
                                         "MV2_COMM_WORLD_RANK" };
    int begun = 0;
    if (report_path[0] || getpid() != loaded_by || !bind_mpi() || !bound_mpi_is_open())
        return;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (getenv(ranks[i]) && atoi(getenv(ranks[i])) > 0)
            return;
    PMPI_Initialized(&begun);
    if (begun && built_for_this_mpi())
        witness_say("assay witness: the program called MPI_Init where it is not seen "
                    "(docs/witness.md): nothing is recorded\n");
}

EXPORT int MPI_Abort(MPI_Comm comm, int code)
{
    bind_mpi();
    if (witness.active)
        ending_write("MPI_Abort");
    return PMPI_Abort(comm, code);
}
