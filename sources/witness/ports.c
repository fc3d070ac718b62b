#define _GNU_SOURCE 1

#include "ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

/* Above any lanes that PCI Express has: 63 and 255 stand for unknown. */
enum { MOST_LANES = 32 };

static bool exists(const char *folder, const char *member)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s/%s", ASSAY_SYSTEM_ROOT, folder, member);
    return access(path, F_OK) == 0;
}

static void write_file(struct json *json, const char *key, const char *folder, const char *file)
{
    char *text = system_text("%s/%s", folder, file);
    if (text)
        json_string(json, key, system_trimmed(text));
    free(text);
}

/* -1, which is no number here, where the link is down. */
static void write_speed(struct json *json, const char *interface)
{
    uint64_t megabits;
    if (system_number(&megabits, "/sys/class/net/%s/speed", interface))
        json_integer(json, "speed", (long long)(megabits * 1000000 / 8));
}

/* The number that a text starts with, to one decimal. The program's locale may have no points. */
static double decimal(const char *text)
{
    int whole = 0, tenths = 0;
    sscanf(text, "%5d.%1d", &whole, &tenths);
    return whole + tenths / 10.0;
}

/* "200 Gb/sec (4X HDR)". Kernels up to some 4.x leave out the word SDR: "10 Gb/sec (4X)". */
static void write_rate(struct json *json, const char *port)
{
    char *rate = system_text("%s/rate", port);
    double gigabits = rate ? decimal(rate) : 0;
    char link[16], word[24];
    if (gigabits > 0) {
        json_integer(json, "speed", (long long)(gigabits * 1e9 / 8));
        if (sscanf(rate, "%*[^(](%15[^)])", link) == 1) {
            snprintf(word, sizeof word, "%s%s", link, strchr(link, ' ') ? "" : " SDR");
            json_string(json, "link", word);
        }
    }
    free(rate);
}

/* "4: ACTIVE". A port with a link that no subnet manager has set up is in "2: INIT" or "3: ARMED". */
static void write_state(struct json *json, const char *port)
{
    char *state = system_text("%s/state", port), word[16];
    if (state) {
        bool up = strstr(state, "ACTIVE") != NULL;
        json_boolean(json, "up", up);
        if (!up && sscanf(state, "%*d: %15s", word) == 1)
            json_string(json, "state", word);
    }
    free(state);
}

/* One PCI function may have a port for each of several interfaces. */
static bool find_interface(char *name, size_t size, const char *folder, int port)
{
    char pattern[256];
    snprintf(pattern, sizeof pattern, "%s/device/net/*", folder);
    glob_t paths = system_paths(pattern);
    bool found = false;
    for (size_t i = 0; i < paths.gl_pathc && !found; i++) {
        const char *path = system_path(&paths, i);
        uint64_t of_port;
        found = paths.gl_pathc == 1 ||
                (system_number(&of_port, "%s/dev_port", path) && of_port + 1 == (uint64_t)port);
        if (found)
            snprintf(name, size, "%s", strrchr(path, '/') + 1);
    }
    globfree(&paths);
    return found;
}

/* Lanes, or transfers per second; 0 if unknown. */
static double read_pcie(const char *folder, const char *file)
{
    char *text = system_text("%s/%s", folder, file);
    double value = text ? decimal(text) : 0;
    free(text);
    if (strstr(file, "width") && value > MOST_LANES)
        value = 0;
    return value > 0 ? value : 0;
}

/* What both ends of the slot can do: a card in a slot with fewer lanes, or of an older machine, is
 * not broken. */
static double read_most(const char *device, const char *file)
{
    char other_end[256];
    snprintf(other_end, sizeof other_end, "%s/..", device);
    double own = read_pcie(device, file), other = read_pcie(other_end, file);
    return other > 0 && other < own ? other : own;
}

static void write_pcie(struct json *json, const char *device)
{
    double width = read_pcie(device, "current_link_width");
    double widest = read_most(device, "max_link_width");
    double speed = read_pcie(device, "current_link_speed");
    double fastest = read_most(device, "max_link_speed");
    if (width == 0 || widest == 0 || speed == 0 || fastest == 0)
        return;
    json_object(json, "pcie");
    json_integer(json, "width", (long long)width);
    json_integer(json, "widest", (long long)widest);
    json_number(json, "speed", speed);
    json_number(json, "fastest", fastest);
    json_end(json);
}

/* A link of /sys to a folder of a device is called by its address on the bus. */
static void write_address(struct json *json, const char *device)
{
    char path[512], target[512];
    snprintf(path, sizeof path, "%s%s", ASSAY_SYSTEM_ROOT, device);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return;
    target[length] = '\0';
    const char *last = strrchr(target, '/');
    json_string(json, "nic", last ? last + 1 : target);
}

/* Ranks may be in other domains of a package than its card. */
static void write_package(struct json *json, int domain)
{
    struct set cpus = system_set("/sys/devices/system/node/node%d/cpulist", domain);
    uint64_t package;
    if (system_number(&package, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id",
                      set_next(&cpus, 0)))
        json_integer(json, "package", (long long)package);
}

static void write_place(struct json *json, const char *folder)
{
    char device[192];
    uint64_t domain;
    snprintf(device, sizeof device, "%s/device", folder);
    write_address(json, device);
    if (exists(device, "physfn"))
        json_boolean(json, "virtual", true);
    /* -1 where firmware does not tell, which is no number here. */
    if (system_number(&domain, "%s/numa_node", device)) {
        json_integer(json, "numa", (long long)domain);
        write_package(json, (int)domain);
    }
    write_pcie(json, device);
}

static void write_rdma(struct json *json, const char *name)
{
    char folder[128], port[160], interface[64];
    int number = 0, length = (int)strcspn(name, ":");
    sscanf(name + length, ":%d", &number);
    snprintf(folder, sizeof folder, "/sys/class/infiniband/%.*s", length, name);
    snprintf(port, sizeof port, "%s/ports/%d", folder, number);
    write_state(json, port);
    write_file(json, "layer", port, "link_layer");
    write_rate(json, port);
    if (find_interface(interface, sizeof interface, folder, number))
        json_string(json, "interface", interface);
    write_place(json, folder);
}

static void write_slingshot(struct json *json, const char *name)
{
    char folder[128], interface[64];
    snprintf(folder, sizeof folder, "/sys/class/cxi/%s", name);
    if (find_interface(interface, sizeof interface, folder, 1)) {
        json_string(json, "interface", interface);
        write_speed(json, interface);
    }
    write_place(json, folder);
}

/* Interfaces without a device, such as those of containers, state a speed that means nothing. */
static void write_interface(struct json *json, const char *name)
{
    char folder[128];
    snprintf(folder, sizeof folder, "/sys/class/net/%s", name);
    if (!exists(folder, "device"))
        return;
    write_speed(json, name);
    write_place(json, folder);
}

void ports_write(struct json *json, const char *name, const char *kind)
{
    if (strcmp(kind, "infiniband") == 0)
        write_rdma(json, name);
    else if (strcmp(kind, "cxi") == 0)
        write_slingshot(json, name);
    else
        write_interface(json, name);
}
