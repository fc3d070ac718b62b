#include "facts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system.h"

/* The first line of a file, without space around it; empty where there is none. */
static void read_line(char *line, size_t room, const char *path)
{
    char *text = system_text("%s", path);
    snprintf(line, room, "%s", text ? text : "");
    free(text);
    line[strcspn(line, "\n")] = '\0';
    for (size_t end = strlen(line); end > 0 && isspace((unsigned char)line[end - 1]); end--)
        line[end - 1] = '\0';
}

static uint64_t memory_bytes(void)
{
    char *text = system_text("/proc/meminfo");
    char *line = text ? strstr(text, "MemTotal:") : NULL;
    uint64_t kib = line ? strtoull(line + strlen("MemTotal:"), NULL, 10) : 0;
    free(text);
    return 1024 * kib;
}

static uint64_t members(const char *path)
{
    struct set set = system_set("%s", path);
    uint64_t count = 0;
    for (int member = set_next(&set, 0); member >= 0; member = set_next(&set, member + 1))
        count++;
    return count;
}

/* /sys/class/infiniband/<device>/fw_ver */
static void read_devices(char *devices, size_t room)
{
    glob_t paths = system_paths("/sys/class/infiniband/*/fw_ver");
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        char version[64], device[64] = "";
        const char *path = system_path(&paths, i);
        read_line(version, sizeof version, path);
        sscanf(path, "/sys/class/infiniband/%63[^/]", device);
        size_t length = strlen(devices);
        snprintf(devices + length, room - length, "%s%s %s", i ? ", " : "", device, version);
    }
    globfree(&paths);
}

struct facts facts_read(void)
{
    struct facts facts = {
        .memory = memory_bytes(),
        .cpus = members("/sys/devices/system/cpu/online"),
        .numa_domains = members("/sys/devices/system/node/has_memory"),
    };
    read_line(facts.model, sizeof facts.model, "/sys/class/dmi/id/product_name");
    read_line(facts.firmware, sizeof facts.firmware, "/sys/class/dmi/id/bios_version");
    read_devices(facts.devices, sizeof facts.devices);
    return facts;
}

static uint64_t sum_of(const char *pattern, bool *known)
{
    uint64_t sum = 0, number;
    glob_t paths = system_paths(pattern);
    for (size_t i = 0; i < paths.gl_pathc; i++)
        if (system_number(&number, "%s", system_path(&paths, i))) {
            sum += number;
            *known = true;
        }
    globfree(&paths);
    return sum;
}

struct memory_errors facts_memory_errors(void)
{
    struct memory_errors errors = { .known = false };
    errors.corrected = sum_of("/sys/devices/system/edac/mc/mc*/ce_count", &errors.known);
    errors.uncorrected = sum_of("/sys/devices/system/edac/mc/mc*/ue_count", &errors.known);
    return errors;
}

static void write_known(struct json *json, const char *key, const char *text)
{
    if (*text)
        json_string(json, key, text);
}

void facts_write(struct json *json, const struct facts *facts)
{
    json_object(json, "facts");
    if (facts->memory)
        json_integer(json, "memory", (long long)facts->memory);
    json_integer(json, "cpus", (long long)facts->cpus);
    json_integer(json, "numa_domains", (long long)facts->numa_domains);
    write_known(json, "model", facts->model);
    write_known(json, "firmware", facts->firmware);
    write_known(json, "devices", facts->devices);
    json_end(json);
}
