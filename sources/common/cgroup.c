#define _GNU_SOURCE 1

#include "cgroup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A cgroup: its folder below the place where its hierarchy is mounted. */
struct cgroup {
    char folder[4096];
    size_t mount_length;
};

/* Whether a word is in a list that has commas between its words. */
static bool listed(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* The process's cgroup in the hierarchy of a controller ("" is that of version 2), as a path in
 * that hierarchy. The lines of /proc/self/cgroup are "4:cpu,cpuacct:/path" and "0::/path". */
static bool path_in_hierarchy(const char *controller, char path[4096])
{
    char *text = system_text("/proc/self/cgroup"), *rest = text, *line;
    bool found = false;
    while (!found && (line = strsep(&rest, "\n"))) {
        strsep(&line, ":");
        char *controllers = strsep(&line, ":");
        if (line && listed(controllers, controller)) {
            snprintf(path, 4096, "%s", line);
            found = true;
        }
    }
    free(text);
    return found;
}

/* mountinfo writes spaces and backslashes (systemd's names have them) as \040 and \134. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        unsigned code;
        if (sscanf(from, "\\%3o", &code) == 1) {
            *to++ = (char)code;
            from += 3;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

/* Whether a line of mountinfo ("36 35 0:30 root mountpoint options [fields] - type source options")
 * is a mount of the controller's hierarchy that shows `path`; then fills in the cgroup. A container
 * has only a part of the hierarchy mounted, from `root` down. */
static bool shown_by_mount(const char *line, const char *controller, const char *path,
                           struct cgroup *cgroup)
{
    char root[4096], mount[4096], type[64], options[4096];
    const char *second_half = strstr(line, " - ");
    if (!second_half || sscanf(line, "%*s %*s %*s %4095s %4095s", root, mount) != 2 ||
        sscanf(second_half, " - %63s %*s %4095s", type, options) != 2)
        return false;
    if (*controller ? strcmp(type, "cgroup") != 0 || !listed(options, controller)
                    : strcmp(type, "cgroup2") != 0)
        return false;
    unescape(root);
    unescape(mount);
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return false;
    cgroup->mount_length = strlen(mount);
    return snprintf(cgroup->folder, sizeof cgroup->folder, "%s%s", mount, path + length) <
           (int)sizeof cgroup->folder;
}

static bool find_cgroup(const char *controller, struct cgroup *cgroup)
{
    char path[4096];
    if (!path_in_hierarchy(controller, path))
        return false;
    char *text = system_text("/proc/self/mountinfo"), *rest = text, *line;
    bool found = false;
    while (!found && (line = strsep(&rest, "\n")))
        found = shown_by_mount(line, controller, path, cgroup);
    free(text);
    return found;
}

/* Goes to the cgroup above. False at the top. */
static bool go_up(struct cgroup *cgroup)
{
    if (strlen(cgroup->folder) <= cgroup->mount_length)
        return false;
    *strrchr(cgroup->folder, '/') = '\0';
    return true;
}

static double limit_v1(const char *folder)
{
    uint64_t quota, period; /* a quota of -1, for none, is no number of this kind */
    if (system_number(&quota, "%s/cpu.cfs_quota_us", folder) &&
        system_number(&period, "%s/cpu.cfs_period_us", folder) && period > 0)
        return (double)quota / (double)period;
    return INFINITY;
}

static double limit_v2(const char *folder)
{
    double quota, period, limit = INFINITY;
    char *text = system_text("%s/cpu.max", folder); /* "150000 100000", "max 100000" */
    if (text && sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0)
        limit = quota / period;
    free(text);
    return limit;
}

double cgroup_cpu_limit(void)
{
    struct cgroup cgroup;
    double limit = INFINITY;
    for (bool more = find_cgroup("cpu", &cgroup); more; more = go_up(&cgroup))
        limit = fmin(limit, limit_v1(cgroup.folder));
    for (bool more = find_cgroup("", &cgroup); more; more = go_up(&cgroup))
        limit = fmin(limit, limit_v2(cgroup.folder));
    return limit;
}

/* The lines of cpu.stat are "nr_throttled 3" and "throttled_usec 51000" (version 1:
 * "throttled_time 51000000", in ns). */
static void add_throttled(struct cgroup_throttled *sum, const char *folder)
{
    char *text = system_text("%s/cpu.stat", folder), *rest = text, *line;
    unsigned long long value;
    while ((line = strsep(&rest, "\n"))) {
        if (sscanf(line, "nr_throttled %llu", &value) == 1)
            sum->periods += value;
        else if (sscanf(line, "throttled_usec %llu", &value) == 1)
            sum->seconds += 1e-6 * (double)value;
        else if (sscanf(line, "throttled_time %llu", &value) == 1)
            sum->seconds += 1e-9 * (double)value;
    }
    free(text);
}

struct cgroup_throttled cgroup_throttled(void)
{
    struct cgroup cgroup;
    struct cgroup_throttled sum = { 0 };
    for (bool more = find_cgroup("cpu", &cgroup); more; more = go_up(&cgroup))
        add_throttled(&sum, cgroup.folder);
    for (bool more = find_cgroup("", &cgroup); more; more = go_up(&cgroup))
        add_throttled(&sum, cgroup.folder);
    return sum;
}

struct set cgroup_cpus(void)
{
    struct cgroup cgroup;
    struct set cpus = { { 0 } };
    /* `cpuset.cpus` of version 1 is what was asked for, and may have CPUs that went offline. */
    if (find_cgroup("cpuset", &cgroup)) {
        cpus = system_set("%s/cpuset.effective_cpus", cgroup.folder);
        if (set_next(&cpus, 0) < 0)
            cpus = system_set("%s/cpuset.cpus", cgroup.folder);
    }
    /* Version 2 has the file only where the cgroup above hands the controller down. */
    for (bool more = find_cgroup("", &cgroup); more && set_next(&cpus, 0) < 0;
         more = go_up(&cgroup))
        cpus = system_set("%s/cpuset.cpus.effective", cgroup.folder);
    return cpus;
}
