#define _GNU_SOURCE 1

#include "disturbance.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "cgroup.h"

enum { HYPERVISOR_BIT = 31 }; /* of what CPUID tells in leaf 1's ECX */

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool affinity(int thread, struct set *cpus)
{
    *cpus = (struct set){ { 0 } };
    return sched_getaffinity(thread, sizeof *cpus, (cpu_set_t *)cpus->words) == 0;
}

void disturbance_add_cpus(struct set *cpus)
{
    struct set own;
    if (!affinity(0, &own))
        return;
    for (int cpu = set_next(&own, 0); cpu >= 0; cpu = set_next(&own, cpu + 1))
        set_add(cpus, cpu);
}

bool disturbance_cpu_times(const char *line, int *cpu, struct cpu_times *times)
{
    unsigned long long user, nice, system, irq, softirq, steal;
    if (strncmp(line, "cpu ", 4) == 0 ||
        sscanf(line, "cpu%d %llu %llu %llu %*u %*u %llu %llu %llu", cpu, &user, &nice, &system,
               &irq, &softirq, &steal) != 7)
        return false;
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    *times = (struct cpu_times){ .busy = tick * (double)(user + nice + system),
                                 .interrupts = tick * (double)(irq + softirq),
                                 .steal = tick * (double)steal };
    return true;
}

static void add_times(struct disturbance *sum, const struct set *cpus)
{
    char *text = system_text("/proc/stat"), *rest = text, *line;
    while ((line = strsep(&rest, "\n"))) {
        int cpu;
        struct cpu_times times;
        if (!disturbance_cpu_times(line, &cpu, &times) || !set_has(cpus, cpu))
            continue;
        sum->busy += times.busy;
        sum->steal += times.steal;
    }
    free(text);
}

static void add_thermal(struct disturbance *sum, int cpu)
{
    static const char *const counts[] = { "core_throttle_count", "package_throttle_count" };
    for (int i = 0; i < 2; i++) {
        uint64_t events;
        if (system_number(&events, "/sys/devices/system/cpu/cpu%d/thermal_throttle/%s", cpu,
                          counts[i])) {
            sum->thermal_known = true;
            sum->thermal_events += events;
        }
    }
}

/* A thread's schedstat is "time on a CPU, time waiting for one, number of turns", in ns. What
 * threads did that may not run on the CPUs is no part of their busy time: OpenMP binds its first
 * thread to a place before the program starts, when nobody can know where the others will be. */
static void add_threads(struct disturbance *sum, const struct set *cpus)
{
    glob_t threads = system_paths("/proc/self/task/*");
    for (size_t i = 0; i < threads.gl_pathc; i++) {
        char *text = system_text("%s/schedstat", system_path(&threads, i));
        unsigned long long ran, waited;
        if (text && sscanf(text, "%llu %llu", &ran, &waited) == 2) {
            struct set own;
            sum->waited += 1e-9 * (double)waited;
            if (affinity(system_path_number(system_path(&threads, i)), &own)) {
                own = set_both(&own, cpus);
                if (set_next(&own, 0) < 0)
                    sum->own -= 1e-9 * (double)ran;
            }
        }
        free(text);
    }
    globfree(&threads);
}

struct disturbance disturbance_read(const struct set *cpus)
{
    struct disturbance now = { .wall = seconds_of(CLOCK_MONOTONIC),
                               .own = seconds_of(CLOCK_PROCESS_CPUTIME_ID) };
    add_times(&now, cpus);
    for (int cpu = set_next(cpus, 0); cpu >= 0; cpu = set_next(cpus, cpu + 1)) {
        now.cpus++;
        add_thermal(&now, cpu);
    }
    struct cgroup_throttled throttled = cgroup_throttled();
    add_threads(&now, cpus);
    now.throttled = throttled.seconds;
    now.throttled_periods = throttled.periods;
    return now;
}

struct disturbance disturbance_since(const struct disturbance *before, const struct set *cpus)
{
    struct disturbance passed = disturbance_read(cpus);
    passed.wall -= before->wall;
    passed.busy -= before->busy;
    passed.own -= before->own;
    passed.steal -= before->steal;
    passed.throttled -= before->throttled;
    passed.waited -= before->waited;
    passed.throttled_periods -= before->throttled_periods;
    passed.thermal_events -= before->thermal_events;
    return passed;
}

#ifdef __x86_64__

/* One after another an addition takes one cycle, whatever the other hardware thread does. */
static double chained(long blocks)
{
    long sum = 0, one = 1;
    double start = seconds_of(CLOCK_MONOTONIC);
    for (long i = 0; i < blocks; i++)
        __asm__ volatile(".rept 120\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(one));
    return seconds_of(CLOCK_MONOTONIC) - start;
}

/* As many, of which any six can be carried out at once: no core has more adders. */
static double independent(long blocks)
{
    long a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, one = 1;
    double start = seconds_of(CLOCK_MONOTONIC);
    for (long i = 0; i < blocks; i++)
        __asm__ volatile(".rept 20\n\tadd %6, %0\n\tadd %6, %1\n\tadd %6, %2\n\tadd %6, %3\n\t"
                         "add %6, %4\n\tadd %6, %5\n\t.endr"
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f)
                         : "r"(one));
    return seconds_of(CLOCK_MONOTONIC) - start;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool may_share_unseen(void)
{
    unsigned eax, ebx, ecx = 0, edx;
    uint64_t siblings_are_seen;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx >> HYPERVISOR_BIT & 1 &&
           system_number(&siblings_are_seen, "/sys/devices/system/cpu/smt/active") &&
           !siblings_are_seen;
}

/* The median of short tries: what interrupts a few of them counts as nothing. */
double disturbance_additions_per_cycle(void)
{
    enum { TRIES = 21, BLOCKS = 200 };
    double each[TRIES];
    if (!may_share_unseen())
        return 0;
    for (int i = 0; i < TRIES; i++)
        each[i] = chained(BLOCKS) / independent(BLOCKS);
    qsort(each, TRIES, sizeof *each, ascending);
    return each[TRIES / 2];
}

#else

double disturbance_additions_per_cycle(void)
{
    return 0;
}

#endif

double disturbance_foreign_share(const struct disturbance *passed, double own)
{
    double share = (passed->busy - own) / (passed->wall * passed->cpus);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}
