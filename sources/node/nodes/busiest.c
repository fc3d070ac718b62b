#include "busiest.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "77 (a command) S 1 ...": the command may have blanks and brackets itself. The fields are numbered
 * from 1: parent 4, session 6, user and system time 14 and 15, start 22, CPU 39. */
static bool read_process(struct process *process, const char *path)
{
    char *text = system_text("%s", path);
    char *begin = text ? strchr(text, '(') : NULL, *end = text ? strrchr(text, ')') : NULL;
    unsigned long long user, system;
    bool is_one = begin && end && begin < end && sscanf(text, "%d", &process->id) == 1 &&
                  sscanf(end,
                         ") %*s %d %*s %d %*s %*s %*s %*s %*s %*s %*s %llu %llu %*s %*s %*s %*s "
                         "%*s %*s %llu %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                         "%*s %d",
                         &process->parent, &process->session, &user, &system, &process->begun,
                         &process->cpu) == 6;
    if (is_one) {
        process->ticks = user + system;
        snprintf(process->command, sizeof process->command, "%.*s", (int)(end - begin - 1),
                 begin + 1);
    }
    free(text);
    return is_one;
}

static int by_id(const void *a, const void *b)
{
    const struct process *one = a, *other = b;
    return (one->id > other->id) - (one->id < other->id);
}

struct processes processes_read(void)
{
    struct processes found = { 0 };
    glob_t paths = system_paths("/proc/[0-9]*/stat");
    if (paths.gl_pathc)
        found.of = malloc(paths.gl_pathc * sizeof *found.of);
    for (size_t i = 0; found.of && i < paths.gl_pathc; i++)
        found.count += read_process(&found.of[found.count], system_path(&paths, i));
    if (found.count)
        qsort(found.of, found.count, sizeof *found.of, by_id);
    globfree(&paths);
    return found;
}

static const struct process *find(const struct processes *among, int id)
{
    struct process one = { .id = id };
    return among->count ? bsearch(&one, among->of, among->count, sizeof one, by_id) : NULL;
}

static bool is_of_job(const struct process *one, const struct processes *now,
                      const struct own_job *job)
{
    for (int i = 0; i < job->rank_count; i++)
        for (const struct process *above = find(now, job->ranks[i]); above && above->id > 1;
             above = find(now, above->parent))
            if (above->session == one->session)
                return true;
    char name[64], *cgroups = job->number ? system_text("/proc/%d/cgroup", one->id) : NULL;
    snprintf(name, sizeof name, "/job_%s/", job->number ? job->number : "");
    bool has = cgroups && strstr(cgroups, name);
    free(cgroups);
    return has;
}

const struct process *processes_busiest(const struct processes *before, const struct processes *now,
                                        const struct own_job *job, double *seconds)
{
    const struct process *busiest = NULL;
    unsigned long long most = 0;
    for (size_t i = 0; i < now->count; i++) {
        const struct process *one = &now->of[i];
        const struct process *earlier = find(before, one->id);
        unsigned long long had = earlier && earlier->begun == one->begun ? earlier->ticks : 0;
        if (one->ticks > had + most && set_has(&job->cpus, one->cpu) && !is_of_job(one, now, job)) {
            most = one->ticks - had;
            busiest = one;
        }
    }
    *seconds = (double)most / (double)sysconf(_SC_CLK_TCK);
    return busiest;
}
