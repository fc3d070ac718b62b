#include "ticks.h"

#include <stdio.h>
#include <string.h>

bool ticks_are_tsc;

static int64_t start_ticks, start_ns;
static double ns_per_tick = 1;

/* Both clocks at one moment: the closest of a few readings. */
static void read_both(int64_t *counter, int64_t *ns)
{
    int64_t narrowest = INT64_MAX;
    for (int i = 0; i < 5; i++) {
        int64_t before = ticks(), now = monotonic_ns(), after = ticks();
        if (after - before < narrowest) {
            narrowest = after - before;
            *counter = before + (after - before) / 2;
            *ns = now;
        }
    }
}

#ifdef __x86_64__
static bool linux_keeps_time_with_tsc(void)
{
    char name[16] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (file) {
        if (!fgets(name, sizeof name, file))
            name[0] = '\0';
        fclose(file);
    }
    return strcmp(name, "tsc\n") == 0;
}
#endif

void ticks_start(void)
{
#ifdef __x86_64__
    ticks_are_tsc = linux_keeps_time_with_tsc();
#endif
    read_both(&start_ticks, &start_ns);
    struct timespec pause = { .tv_nsec = 200000 };
    if (ticks_are_tsc)
        nanosleep(&pause, NULL); /* long enough for a first, rough rate */
    ticks_calibrate();
}

void ticks_calibrate(void)
{
    int64_t now_ticks, now_ns;
    read_both(&now_ticks, &now_ns);
    if (ticks_are_tsc && now_ticks > start_ticks)
        ns_per_tick = (double)(now_ns - start_ns) / (double)(now_ticks - start_ticks);
}

int64_t ticks_to_ns(int64_t moment)
{
    return start_ns + (int64_t)(ns_per_tick * (double)(moment - start_ticks));
}

double ticks_to_seconds(int64_t length)
{
    return 1e-9 * ns_per_tick * (double)length;
}
