#include "busiest.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

/* "77 (a command) S 1 ...": the command may have blanks and brackets itself; user and system time
 * are the fields 14 and 15. */
static bool read_process(struct process *process, const char *path)
{
    char *text = system_text("%s", path);
    char *begin = text ? strchr(text, '(') : NULL, *end = text ? strrchr(text, ')') : NULL;
    unsigned long long user, system;
    bool is_one =
        begin && end && begin < end && sscanf(text, "%d", &process->id) == 1 &&
        sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) == 2;
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

static bool is_among(int id, const int *ids, int count)
{
    for (int i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

const struct process *processes_busiest(const struct processes *before, const struct processes *now,
                                        const int *ranks, int rank_count, double *seconds)
{
    const struct process *busiest = NULL;
    unsigned long long most = 0;
    for (size_t i = 0; i < now->count; i++) {
        const struct process *one = &now->of[i];
        if (is_among(one->id, ranks, rank_count))
            continue;
        const struct process *earlier =
            before->count ? bsearch(one, before->of, before->count, sizeof *one, by_id) : NULL;
        unsigned long long had = earlier ? earlier->ticks : 0;
        if (one->ticks > had && one->ticks - had > most) {
            most = one->ticks - had;
            busiest = one;
        }
    }
    *seconds = (double)most / (double)sysconf(_SC_CLK_TCK);
    return busiest;
}
