#define _GNU_SOURCE 1

#include "placement.h"

#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cgroup.h"
#include "system.h"

/* What a CPU belongs to; read when it is asked for, as a rank mostly has few of the host's CPUs. */
struct home {
    bool known;
    int core, node, package;
};

static struct home homes[SET_MEMBERS];

/* Threads by number. */
struct threads {
    int *tids;
    size_t count;
};

static struct threads before_init, of_mpi;

static struct set online_cpus(void)
{
    struct set online = system_set("/sys/devices/system/cpu/online");
    if (set_next(&online, 0) < 0)
        for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
            set_add(&online, cpu);
    return online;
}

/* The NUMA domains that have online CPUs; memory alone is one for Linux, too. */
static struct {
    bool found, dividing; /* whether they divide the CPUs among them; otherwise there is one, 0 */
    struct set nodes;
} domains;

static struct set cpus_of_node(int node)
{
    struct set online = online_cpus();
    if (!domains.dividing)
        return online;
    struct set cpus = system_set("/sys/devices/system/node/node%d/cpulist", node);
    return set_both(&cpus, &online);
}

static void find_nodes(void)
{
    if (domains.found)
        return;
    domains.found = domains.dividing = true;
    struct set left = online_cpus();
    glob_t paths = system_paths("/sys/devices/system/node/node[0-9]*");
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        int node = atoi(strrchr(system_path(&paths, i), '/') + strlen("/node"));
        struct set cpus = cpus_of_node(node);
        for (int cpu = set_next(&cpus, 0); cpu >= 0; cpu = set_next(&cpus, cpu + 1)) {
            domains.dividing = domains.dividing && set_has(&left, cpu);
            set_remove(&left, cpu);
            set_add(&domains.nodes, node);
            homes[cpu].node = node;
        }
    }
    globfree(&paths);
    if (domains.dividing && set_next(&left, 0) < 0)
        return;
    domains.dividing = false;
    domains.nodes = (struct set){ { 0 } };
    set_add(&domains.nodes, 0);
    for (int cpu = 0; cpu < SET_MEMBERS; cpu++)
        homes[cpu].node = 0;
}

/* Of a member of a set. */
static const struct home *home_of(int cpu)
{
    struct home *home = &homes[cpu];
    if (!home->known) {
        uint64_t lowest_of_core = (uint64_t)cpu, package = 0;
        const char *folder = "/sys/devices/system/cpu";
        system_number(&lowest_of_core, "%s/cpu%d/topology/thread_siblings_list", folder, cpu);
        system_number(&package, "%s/cpu%d/topology/physical_package_id", folder, cpu);
        find_nodes();
        home->core = (int)lowest_of_core;
        home->package = (int)package;
        home->known = true;
    }
    return home;
}

static void write_cores(struct json *json, const struct set *cpus)
{
    struct set cores = { { 0 } };
    for (int cpu = set_next(cpus, 0); cpu >= 0; cpu = set_next(cpus, cpu + 1))
        set_add(&cores, home_of(cpu)->core);
    set_write(json, "cores", &cores);
}

static void write_numa_and_packages(struct json *json, const struct set *cpus)
{
    struct set nodes = { { 0 } }, packages = { { 0 } };
    for (int cpu = set_next(cpus, 0); cpu >= 0; cpu = set_next(cpus, cpu + 1)) {
        set_add(&nodes, home_of(cpu)->node);
        set_add(&packages, home_of(cpu)->package);
    }
    set_write(json, "numa", &nodes);
    set_write(json, "packages", &packages);
}

/* Without the CPUs that are offline, unlike the thread's Cpus_allowed_list in /proc. */
static struct set allowed_cpus(int tid)
{
    struct set cpus = { { 0 } };
    sched_getaffinity(tid, sizeof cpus, (cpu_set_t *)cpus.words);
    return cpus;
}

static struct threads threads_now(void)
{
    glob_t paths = system_paths("/proc/self/task/*");
    struct threads now = { .tids = calloc(paths.gl_pathc + 1, sizeof *now.tids) };
    if (now.tids)
        for (now.count = 0; now.count < paths.gl_pathc; now.count++)
            now.tids[now.count] = system_path_number(paths.gl_pathv[now.count]);
    globfree(&paths);
    return now;
}

static bool among(const struct threads *threads, int tid)
{
    for (size_t i = 0; i < threads->count; i++)
        if (threads->tids[i] == tid)
            return true;
    return false;
}

void placement_before_init(void)
{
    before_init = threads_now();
}

void placement_after_init(void)
{
    of_mpi = threads_now();
    size_t kept = 0;
    for (size_t i = 0; i < of_mpi.count; i++)
        if (!among(&before_init, of_mpi.tids[i]))
            of_mpi.tids[kept++] = of_mpi.tids[i];
    of_mpi.count = kept;
    free(before_init.tids);
    before_init = (struct threads){ .count = 0 };
}

/* The CPU that a thread ran on last, -1 when it is gone. In `busy` the CPU time that it used, in
 * seconds. */
static int read_stat(int tid, double *busy)
{
    char *text = system_text("/proc/self/task/%d/stat", tid);
    /* The second field, the name in brackets, may itself hold brackets and spaces. */
    char *rest = text ? strrchr(text, ')') : NULL, *value;
    long long ticks = 0;
    int last_cpu = -1;
    for (int field = 2; (value = strsep(&rest, " ")); field++) {
        if (field == 14 || field == 15) /* in the program, in the kernel */
            ticks += atoll(value);
        else if (field == 39)
            last_cpu = atoi(value);
    }
    free(text);
    *busy = (double)ticks / (double)sysconf(_SC_CLK_TCK);
    /* Finer than ticks, but 0 for all in kernels that do not keep it. */
    uint64_t nanoseconds;
    if (system_number(&nanoseconds, "/proc/self/task/%d/schedstat", tid) && nanoseconds > 0)
        *busy = (double)nanoseconds / 1e9;
    return last_cpu;
}

static const char *origin_of(int tid)
{
    if (tid == getpid())
        return "main";
    return among(&of_mpi, tid) ? "mpi" : "program";
}

static void write_name(struct json *json, int tid)
{
    char *name = system_text("/proc/self/task/%d/comm", tid);
    if (name) {
        name[strcspn(name, "\n")] = '\0';
        /* The kernel cuts names after 15 bytes, be it within a character of UTF-8. */
        for (char *c = name; *c; c++)
            if (*c & 0x80)
                *c = '?';
    }
    json_string(json, "name", name ? name : "");
    free(name);
}

static void write_thread(struct json *json, int tid)
{
    double busy;
    int last_cpu = read_stat(tid, &busy);
    if (last_cpu < 0)
        return;
    struct set cpus = allowed_cpus(tid);
    json_object(json, NULL);
    json_integer(json, "tid", tid);
    write_name(json, tid);
    set_write(json, "cpus", &cpus);
    write_cores(json, &cpus);
    json_integer(json, "last_cpu", last_cpu);
    json_number(json, "busy", busy);
    json_string(json, "origin", origin_of(tid));
    json_end(json);
}

/* Through the system call: libnuma need not be there. */
static void write_memory(struct json *json)
{
    /* In the order of the kernel's numbers, linux/mempolicy.h; the highest bits are flags. */
    static const char *const names[] = {
        "default",        "preferred",          "bind", "interleave", "local",
        "preferred-many", "weighted-interleave"
    };
    enum { MOST_NODES = 1024, FLAGS = 7 << 13, KNOWN = sizeof names / sizeof *names };
    struct set nodes = { { 0 } };
    int mode = -1;
    if (syscall(SYS_get_mempolicy, &mode, nodes.words, MOST_NODES, NULL, 0) == 0)
        mode &= ~FLAGS;
    json_object(json, "memory");
    json_string(json, "policy", mode >= 0 && mode < KNOWN ? names[mode] : "unknown");
    set_write(json, "nodes", &nodes);
    json_end(json);
}

void placement_write(struct json *json)
{
    struct set cpus = allowed_cpus(getpid());
    double busy;
    int last_cpu = read_stat(getpid(), &busy);
    double limit = cgroup_cpu_limit();
    json_integer(json, "pid", getpid());
    set_write(json, "cpus", &cpus);
    write_cores(json, &cpus);
    write_numa_and_packages(json, &cpus);
    json_integer(json, "last_cpu", last_cpu);
    write_memory(json);
    if (isfinite(limit))
        json_number(json, "cpu_limit", limit);
    else
        json_raw(json, "cpu_limit", "null");
    struct threads threads = threads_now();
    json_array(json, "threads");
    for (size_t i = 0; i < threads.count; i++)
        write_thread(json, threads.tids[i]);
    json_end(json);
    free(threads.tids);
}

static void write_package(struct json *json, int package, const struct set *online)
{
    struct set cpus = { { 0 } };
    for (int cpu = set_next(online, 0); cpu >= 0; cpu = set_next(online, cpu + 1))
        if (home_of(cpu)->package == package)
            set_add(&cpus, cpu);
    json_object(json, NULL);
    json_integer(json, "id", package);
    set_write(json, "cpus", &cpus);
    json_end(json);
}

void placement_write_host(struct json *json)
{
    find_nodes();
    struct set online = online_cpus(), cpuset = cgroup_cpus();
    struct set allowed = set_both(&online, &cpuset);
    if (set_next(&allowed, 0) < 0)
        allowed = online;
    set_write(json, "cpus", &online);
    set_write(json, "allowed", &allowed);
    write_cores(json, &allowed);
    json_array(json, "numa");
    const struct set *nodes = &domains.nodes;
    for (int node = set_next(nodes, 0); node >= 0; node = set_next(nodes, node + 1)) {
        struct set cpus = cpus_of_node(node);
        json_object(json, NULL);
        json_integer(json, "id", node);
        set_write(json, "cpus", &cpus);
        json_end(json);
    }
    json_end(json);
    json_array(json, "packages");
    struct set packages = { { 0 } };
    for (int cpu = set_next(&online, 0); cpu >= 0; cpu = set_next(&online, cpu + 1))
        set_add(&packages, home_of(cpu)->package);
    for (int id = set_next(&packages, 0); id >= 0; id = set_next(&packages, id + 1))
        write_package(json, id, &online);
    json_end(json);
}
