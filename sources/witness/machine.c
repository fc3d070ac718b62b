#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system.h"

static void write_known(struct json *json, const char *key, const char *value)
{
    if (value && *value)
        json_string(json, key, value);
}

static void write_file(struct json *json, const char *key, const char *path)
{
    char *text = system_text("%s", path);
    write_known(json, key, text ? system_trimmed(text) : NULL);
    free(text);
}

/* The processor of /proc/cpuinfo that stands first. No more is read: the kernel takes its time for
 * hundreds of them. What has no model name has a name (POWER), or numbers for its maker and its kind
 * (ARM). */
static void write_processor(struct json *json)
{
    enum { MODEL, NAME, MAKER, KIND, MICROCODE, FIELDS };
    static const char *const names[FIELDS] = { "model name", "cpu", "CPU implementer", "CPU part",
                                               "microcode" };
    char values[FIELDS][128] = { "" }, model[300], path[4096], *line = NULL;
    size_t room = 0;
    snprintf(path, sizeof path, "%s/proc/cpuinfo", ASSAY_SYSTEM_ROOT);
    FILE *file = fopen(path, "re");
    while (file && getline(&line, &room, file) > 1) {
        char *value = line, *name = system_trimmed(strsep(&value, ":"));
        for (int field = 0; value && field < FIELDS; field++)
            if (strcmp(name, names[field]) == 0)
                snprintf(values[field], sizeof values[field], "%s", system_trimmed(value));
    }
    free(line);
    if (file)
        fclose(file);
    snprintf(model, sizeof model, "%s %s", values[MAKER], values[KIND]);
    write_known(json, "processor",
                *values[MODEL]  ? values[MODEL]
                : *values[NAME] ? values[NAME]
                                : system_trimmed(model));
    write_known(json, "microcode", values[MICROCODE]);
}

/* All that are set on any CPU, in the order of the alphabet: mostly one. */
static void write_governors(struct json *json)
{
    enum { MOST = 8 };
    char *found[MOST], all[512] = "";
    size_t count = 0;
    glob_t paths = system_paths("/sys/devices/system/cpu/cpufreq/policy*/scaling_governor");
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        char *text = system_text("%s", system_path(&paths, i));
        const char *governor = text ? system_trimmed(text) : "";
        size_t at = 0;
        while (at < count && strcmp(found[at], governor) < 0)
            at++;
        if (!*governor || count == MOST || (at < count && strcmp(found[at], governor) == 0)) {
            free(text);
            continue;
        }
        memmove(found + at + 1, found + at, (count++ - at) * sizeof *found);
        found[at] = text;
    }
    globfree(&paths);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(all);
        snprintf(all + length, sizeof all - length, "%s%s", i ? " / " : "", found[i]);
        free(found[i]);
    }
    write_known(json, "governor", all);
}

/* Whether a number of the kernel's is 0; others than 0 and 1 are told as they are. */
static void write_switch(struct json *json, const char *key, const char *path, const char *zero,
                         const char *one)
{
    char *text = system_text("%s", path);
    const char *value = text ? system_trimmed(text) : "";
    write_known(json, key, strcmp(value, "0") == 0 ? zero : strcmp(value, "1") == 0 ? one : value);
    free(text);
}

static void write_boost(struct json *json)
{
    uint64_t number;
    const char *intel = "/sys/devices/system/cpu/intel_pstate/no_turbo";
    if (system_number(&number, "%s", intel))
        write_switch(json, "boost", intel, "on", "off");
    else
        write_switch(json, "boost", "/sys/devices/system/cpu/cpufreq/boost", "off", "on");
}

/* The kernel tells all that could be set, and has brackets round what is: always [madvise] never. */
static void write_huge_pages(struct json *json)
{
    char *text = system_text("/sys/kernel/mm/transparent_hugepage/enabled");
    char *chosen = text ? strchr(text, '[') : NULL;
    char *end = chosen ? strchr(chosen, ']') : NULL;
    if (end)
        *end = '\0';
    write_known(json, "huge_pages", end ? chosen + 1 : NULL);
    free(text);
}

void machine_write(struct json *json)
{
    json_object(json, "machine");
    write_file(json, "kernel", "/proc/sys/kernel/osrelease");
    write_processor(json);
    write_governors(json);
    write_boost(json);
    write_switch(json, "smt", "/sys/devices/system/cpu/smt/active", "off", "on");
    write_huge_pages(json);
    write_switch(json, "numa_balancing", "/proc/sys/kernel/numa_balancing", "off", "on");
    json_end(json);
}
