/* A clock since boot that goes ten times as fast: what waits for many seconds of it waits for few. */
#define _GNU_SOURCE 1
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FASTER = 10, SECOND = 1000000000 };

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int code = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_MONOTONIC && code == 0) {
        long nanoseconds = FASTER * now->tv_nsec;
        now->tv_sec = FASTER * now->tv_sec + nanoseconds / SECOND;
        now->tv_nsec = nanoseconds % SECOND;
    }
    return code;
}
