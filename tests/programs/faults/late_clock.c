/* A clock of the day that is 30 s ahead, of a host whose processes have this library preloaded: there
 * is no namespace of that clock. */
#define _GNU_SOURCE 1
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { AHEAD_SECONDS = 30 };

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int code = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && code == 0)
        now->tv_sec += AHEAD_SECONDS;
    return code;
}
