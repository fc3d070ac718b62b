/* In every millisecond the first thread is interrupted for 100 us. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static long nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void keep_busy(int signal)
{
    (void)signal;
    for (long begun = nanoseconds(); nanoseconds() < begun + 100000;)
        ;
}

__attribute__((constructor)) static void start(void)
{
    struct sigaction action = { .sa_handler = keep_busy, .sa_flags = SA_RESTART };
    struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}
