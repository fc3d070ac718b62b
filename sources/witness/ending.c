#include "ending.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "silence.h"
#include "tally.h"

/* Faults come again when their handler returns: then whoever had the signal before learns the cause. */
static const struct {
    int number;
    const char *name;
    bool fault;
} signals[] = {
    { SIGTERM, "SIGTERM", false }, { SIGINT, "SIGINT", false },  { SIGXCPU, "SIGXCPU", false },
    { SIGABRT, "SIGABRT", true },  { SIGSEGV, "SIGSEGV", true }, { SIGBUS, "SIGBUS", true },
    { SIGFPE, "SIGFPE", true },    { SIGILL, "SIGILL", true },
};
enum { SIGNALS = sizeof signals / sizeof *signals };

static struct sigaction before[SIGNALS];
static bool taken[SIGNALS]; /* by the program, before MPI_Init: it may live on, also after faults,
                             * with which some runtimes work */
static char path[4096];
static pid_t watched; /* a child of a fork is no rank */
static atomic_int state;
enum { IDLE, WATCHING, WRITING, WRITTEN };
static int64_t started;

/* Text that is put together in a signal handler, where printf may not be called. */
struct line {
    size_t length;
    char text[32768]; /* enough for every call there is */
};

static void put(struct line *line, const char *text)
{
    size_t length = strlen(text);
    if (line->length + length < sizeof line->text) {
        memcpy(line->text + line->length, text, length);
        line->length += length;
    }
}

static void put_padded(struct line *line, uint64_t number, int digits)
{
    char text[24], *first = text + sizeof text;
    *--first = '\0';
    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (--digits > 0 || number);
    put(line, first);
}

static void put_number(struct line *line, const char *key, uint64_t number)
{
    put(line, key);
    put_padded(line, number, 1);
}

static void put_seconds(struct line *line, const char *key, double seconds)
{
    uint64_t ns = seconds > 0 ? (uint64_t)(1e9 * seconds) : 0;
    put_number(line, key, ns / 1000000000);
    put(line, ".");
    put_padded(line, ns % 1000000000, 9);
}

/* Where a thread of the rank is in MPI: the first one that is. */
static void put_inside(struct line *line, int64_t now)
{
    for (const struct thread *thread = threads; thread; thread = thread->next) {
        if (thread->inside == CALLS)
            continue;
        put(line, ", \"inside\": \"");
        put(line, call_name(thread->inside));
        put(line, "\"");
        if (thread->entered)
            put_seconds(line, ", \"since\": ", ticks_to_seconds(now - thread->entered));
        return;
    }
    put(line, ", \"inside\": null");
}

/* The call it is in counts too. */
static double time_in_mpi(const struct total totals[CALLS], int64_t now)
{
    double time = tally_time(totals);
    for (const struct thread *thread = threads; thread; thread = thread->next)
        if (thread->inside != CALLS && thread->entered)
            time += ticks_to_seconds(now - thread->entered);
    return time;
}

static void put_calls(struct line *line, int64_t now)
{
    static struct total totals[CALLS];
    tally_totals(totals);
    put_seconds(line, ", \"mpi_time\": ", time_in_mpi(totals, now));
    put(line, ", \"calls\": {");
    const char *separator = "\"";
    for (int call = 0; call < CALLS; call++) {
        if (!totals[call].count)
            continue;
        put(line, separator);
        put(line, call_name((enum call)call));
        put_number(line, "\": {\"count\": ", totals[call].count);
        put_number(line, ", \"timed\": ", totals[call].timed);
        put_seconds(line, ", \"time\": ", totals[call].time);
        put_number(line, ", \"bytes\": ", totals[call].bytes);
        put(line, "}");
        separator = ", \"";
    }
    put(line, "}");
}

void ending_write(const char *reason)
{
    int expected = WATCHING; /* one line is enough */
    if (getpid() != watched || !atomic_compare_exchange_strong(&state, &expected, WRITING))
        return;
    static struct line line;
    const struct apart apart = apart_begin();
    ticks_calibrate();
    int64_t now = ticks();
    put_number(&line, "{\"rank\": ", (uint64_t)witness.rank);
    put(&line, ", \"reason\": \"");
    put(&line, reason);
    put(&line, "\"");
    put_inside(&line, now);
    put_seconds(&line, ", \"wall\": ", ticks_to_seconds(now - started));
    put_calls(&line, now);
    put(&line, "}\n");
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file >= 0) {
        ssize_t written = write(file, line.text, line.length);
        (void)written; /* there is nobody to tell */
        close(file);
    }
    apart_end(&apart);
    atomic_store(&state, WRITTEN);
}

static void wait_ms(int ms)
{
    struct timespec pause = { .tv_nsec = 1000000 };
    while (ms-- > 0)
        nanosleep(&pause, NULL);
}

/* A signal may come twice, from the launcher and from the batch system, and the second one to another
 * thread: it must not end the rank before its line is there. Nor may the end of one rank make the
 * launcher kill those that got the same signal and are not as far. */
static void wait_for_lines(bool others)
{
    enum { LONGEST_MS = 1000, OTHERS_MS = 250 };
    for (int ms = 0; ms < LONGEST_MS && atomic_load(&state) == WRITING; ms++)
        wait_ms(1);
    if (others)
        wait_ms(OTHERS_MS);
}

static void on_signal(int number, siginfo_t *information, void *context)
{
    bool comes_again = false;
    (void)context;
    for (int i = 0; i < SIGNALS; i++) {
        if (signals[i].number == number) {
            ending_write(signals[i].name);
            wait_for_lines(!signals[i].fault);
            sigaction(number, &before[i], NULL);
            comes_again = signals[i].fault && information->si_code > 0;
        }
    }
    if (!comes_again)
        raise(number); /* once this returns, for whoever had it before */
}

/* Transports tell of faults when they are loaded, and the rank ends then: they live on with none. */
static bool is_a_transport_s(const struct sigaction *action)
{
    static const char *const names[] = { "/libucs", "/libmpi", "/libopen-pal", "/libpsm" };
    Dl_info where;
    if (!dladdr((const void *)(uintptr_t)action->sa_sigaction, &where) || !where.dli_fname)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(where.dli_fname, names[i]))
            return true;
    return false;
}

void ending_before_init(void)
{
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction now;
        sigaction(signals[i].number, NULL, &now);
        taken[i] = now.sa_handler != SIG_DFL && !(signals[i].fault && is_a_transport_s(&now));
    }
}

void ending_clear(const char *report)
{
    if (snprintf(path, sizeof path, "%s.ranks", report) >= (int)sizeof path)
        path[0] = '\0';
    if (witness.rank == 0)
        unlink(path);
}

void ending_watch(void)
{
    if (!path[0])
        return;
    watched = getpid();
    started = ticks();
    atomic_store(&state, WATCHING);
    struct sigaction ours = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(signals[i].number, NULL, &before[i]);
        if (!taken[i] && before[i].sa_handler != SIG_IGN)
            sigaction(signals[i].number, &ours, NULL);
    }
}

void ending_leave_signals(void)
{
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction now;
        sigaction(signals[i].number, NULL, &now);
        if (now.sa_sigaction == on_signal)
            sigaction(signals[i].number, &before[i], NULL);
    }
}

void ending_unwatch(void)
{
    atomic_store(&state, IDLE);
}

__attribute__((destructor)) static void at_exit(void)
{
    int finalized = 0;
    if (atomic_load(&state) == WATCHING && getpid() == watched && bound_mpi_is_open())
        PMPI_Finalized(&finalized);
    ending_write(finalized ? "exit after MPI_Finalize where it was not seen"
                           : "exit without MPI_Finalize");
}
