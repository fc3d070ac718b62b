#include "stacks.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "witness.h"

/* The ranks of a host take turns: so many gdbs at once might need more memory than the job may have. */
static char script[] =
    "command -v gdb >/dev/null || exit\n"
    "unset LD_PRELOAD DEBUGINFOD_URLS\n"
    "exec </dev/null >>\"$1\" 2>&1\n"
    "flock -w 20 1 || exit\n"
    "echo \"== $2, pid $3\"\n"
    "timeout --foreground -k 1 20 gdb --nx --batch -p \"$3\" -ex 'set print frame-arguments none' \\\n"
    "    -ex 'thread apply all backtrace 50' | head -c 32768\n";

static char file[4096], who[MPI_MAX_PROCESSOR_NAME + 32], pid[16];
static char *arguments[] = { "sh", "-c", script, "sh", file, who, pid, NULL };

static void take_stacks(int number, siginfo_t *information, void *context)
{
    int error = errno;
    (void)number, (void)context;
    if (information->si_code != SI_TIMER)
        return;
    /* Where only ancestors may trace a process, its children may from now on. */
    prctl(PR_SET_PTRACER, (unsigned long)getpid(), 0, 0, 0);
    /* fork would run handlers, which may want what the interrupted code holds. */
    if (vfork() == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
#ifdef SYS_close_range
        /* A connection of the rank must not outlive it. */
        syscall(SYS_close_range, 3u, ~0u, 0u);
#endif
        execv("/bin/sh", arguments);
        _exit(127);
    }
    errno = error;
}

void stacks_before_init(const char *report)
{
    /* A signal that is ignored where nobody takes it: it can end no rank. */
    enum { SIGNAL = SIGURG };
    const char *asked = getenv("ASSAY_WITNESS_DEADLINE");
    struct itimerspec deadline = { .it_value.tv_sec = asked ? atoll(asked) : 0 };
    struct sigaction before,
        ours = { .sa_sigaction = take_stacks, .sa_flags = SA_SIGINFO | SA_RESTART };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGNAL };
    char host[HOST_NAME_MAX + 1] = "";
    timer_t timer;
    sigaction(SIGNAL, NULL, &before);
    if (deadline.it_value.tv_sec <= time(NULL) || before.sa_handler != SIG_DFL)
        return;
    gethostname(host, sizeof host - 1);
    if (snprintf(file, sizeof file, "%s.stacks-%s", report, host) >= (int)sizeof file)
        return;
    snprintf(who, sizeof who, "a rank on %s", host);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    sigaction(SIGNAL, &ours, NULL);
    if (timer_create(CLOCK_REALTIME, &event, &timer) == 0)
        timer_settime(timer, TIMER_ABSTIME, &deadline, NULL);
}

void stacks_after_init(void)
{
    snprintf(who, sizeof who, "rank %d on %s", witness.rank, witness.host);
}
