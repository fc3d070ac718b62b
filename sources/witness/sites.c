#include "sites.h"

#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "fortran.h"
#include "libraries.h"
#include "ticks.h"
#include "waits.h"
#include "wrap.h"

atomic_int sites_phase;

/* Those of all threads, by number; 0 stands for all that there was no room for. */
static struct site sites[SITES_MOST] = { { .number = 0 } };
static int count = 1;
static struct map numbers; /* to entries of `sites` */

static struct {
    int level; /* as the program called it */
    uint64_t begun;
    int64_t time; /* ticks */
} phases[PHASES_MOST];
static int phase_count = 1;
static int64_t phase_began;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Finding them ---- */

static uint64_t key_of(uintptr_t address, enum call call, int phase)
{
    return map_hash(address) ^ map_hash((uint64_t)phase << 16 | (uint64_t)call);
}

static uint16_t number_of(const struct site *site)
{
    uint64_t key = key_of(site->address, site->call, site->phase);
    pthread_mutex_lock(&lock);
    struct site *known = map_get(&numbers, key);
    if (!known && count < SITES_MOST) {
        struct site *next = &sites[count];
        *next = *site;
        next->number = (uint16_t)count;
        if (map_put(&numbers, key, next)) {
            known = next;
            count++;
        }
    }
    pthread_mutex_unlock(&lock);
    return known ? known->number : 0;
}

/* What the unwinder is to find of the frame of a library of bindings. */
struct looked_for {
    uintptr_t inside, frame; /* an address in its code, and the stack where that code calls */
    uintptr_t caller_s, size;
    bool seen;
};

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *argument)
{
    struct looked_for *frame = argument;
    if (frame->seen) {
        frame->caller_s = _Unwind_GetIP(context);
        frame->size = _Unwind_GetCFA(context) - frame->frame;
        return _URC_END_OF_STACK;
    }
    frame->seen = _Unwind_GetIP(context) == frame->inside;
    return _URC_NO_REASON;
}

/* A return address as it stands on the stack: AArch64 may have signed it, in the bits that no address
 * of a program has. */
static uintptr_t read_address(uintptr_t place)
{
    uintptr_t address;
    memcpy(&address, (const void *)place, sizeof address);
#ifdef __aarch64__
    address &= ((uintptr_t)1 << 48) - 1;
#endif
    return address;
}

/* Where in its frame a library keeps the address that it returns to. */
static void measure_frame(struct site *site, uintptr_t frame)
{
    enum { LARGEST = 65536 };
    struct looked_for found = { .inside = site->address, .frame = frame };
    _Unwind_Backtrace(look, &found);
    if (!found.caller_s || !found.size || found.size > LARGEST || found.size % sizeof(uintptr_t))
        return;
    for (size_t at = found.size; at; at -= sizeof(uintptr_t)) {
        if (read_address(frame + at - sizeof(uintptr_t)) == found.caller_s) {
            site->beyond = (uint32_t)(at - sizeof(uintptr_t));
            site->frame = (uint32_t)found.size;
            return;
        }
    }
}

static struct site *make(struct sites *of, enum call call, uintptr_t address, uintptr_t frame)
{
    struct site *site = calloc(1, sizeof *site);
    if (!site)
        return NULL;
    *site = (struct site){ .address = address, .call = call, .phase = atomic_load(&sites_phase) };
    if (fortran_is_binding(address))
        measure_frame(site, frame);
    if (!map_put(&of->all, key_of(address, call, site->phase), site)) {
        free(site);
        return NULL;
    }
    if (!site->frame)
        site->number = number_of(site);
    return site;
}

struct site *site_find(struct sites *of, enum call call, uintptr_t address, uintptr_t frame)
{
    enum { DEEPEST = 4 };
    struct site *site = NULL;
    for (int depth = 0; depth < DEEPEST; depth++) {
        struct site **near = &of->near[site_place(address)];
        if (!site_is(*near, address, call)) {
            site = map_get(&of->all, key_of(address, call, atomic_load(&sites_phase)));
            if (!site && !(site = make(of, call, address, frame)))
                return NULL;
            *near = site;
        }
        site = *near;
        if (!site->frame)
            break;
        address = read_address(frame + site->beyond);
        frame += site->frame;
    }
    return site;
}

/* ---- Phases ---- */

static int phase_of(int level)
{
    int phase = 1;
    while (phase < phase_count && phases[phase].level != level)
        phase++;
    if (phase == PHASES_MOST)
        return 0;
    if (phase == phase_count)
        phases[phase_count++].level = level;
    return phase;
}

void phases_end(int64_t now)
{
    int phase = atomic_exchange(&sites_phase, 0);
    if (phase)
        phases[phase].time += now - phase_began;
}

/* What a tool does then is its own affair by the standard. A level above 0 begins the phase of that
 * number, and ends another one; 0, and as with IPM one below 0, ends it. */
EXPORT int MPI_Pcontrol(const int level, ...)
{
    if (witness.active) {
        pthread_mutex_lock(&lock);
        int64_t now = ticks();
        phases_end(now);
        int phase = level > 0 ? phase_of(level) : 0;
        if (phase) {
            phases[phase].begun++;
            phase_began = now;
        }
        atomic_store(&sites_phase, phase);
        pthread_mutex_unlock(&lock);
    } else {
        bind_mpi();
    }
    return PMPI_Pcontrol(level);
}

void phases_write(struct json *json)
{
    json_array(json, "phases");
    for (int phase = 1; phase < phase_count; phase++) {
        json_object(json, NULL);
        json_integer(json, "phase", phases[phase].level);
        json_integer(json, "begun", (long long)phases[phase].begun);
        json_number(json, "wall", ticks_to_seconds(phases[phase].time));
        json_end(json);
    }
    json_end(json);
}

/* ---- In the end ---- */

void sites_move(struct sites *from, const double scales[CALLS])
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < from->all.room; i++) {
        struct site *site = from->all.entries[i].value;
        if (!site || site->frame)
            continue;
        struct site *to = &sites[site->number];
        to->count += site->count;
        to->timed += site->timed;
        to->bytes += site->bytes;
        to->time += (int64_t)(scales[site->call] * (double)site->time);
        to->computed += site->computed;
        site->count = site->timed = site->bytes = 0;
        site->time = site->computed = 0;
    }
    pthread_mutex_unlock(&lock);
}

size_t sites_bytes(const struct sites *of)
{
    return map_bytes(&of->all) + of->all.count * sizeof(struct site);
}

int sites_count(void)
{
    return count;
}

/* An object file that calls come from. */
struct object {
    uintptr_t address; /* one in it, to begin with */
    uintptr_t base, end; /* 0 of code that is in no file */
    char path[4096];
    char build_id[BUILD_ID];
    bool found;
};

static bool is_in(const struct object *object, uintptr_t address)
{
    return address < object->end;
}

/* The end of the part of a file in memory that has the address; 0 if it is not this file's. */
static uintptr_t end_of_part(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && address - begin < segment->p_memsz)
            return begin + segment->p_memsz;
    }
    return 0;
}

static int look_into(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct object *object = argument;
    (void)size;
    object->end = end_of_part(info, object->address);
    if (!object->end)
        return 0;
    object->found = true;
    object->base = info->dlpi_addr;
    snprintf(object->path, sizeof object->path, "%s", info->dlpi_name);
    build_id_of(info, object->build_id);
    return 1;
}

static void find_object(struct object *object, uintptr_t address)
{
    *object = (struct object){ .address = address };
    if (address)
        dl_iterate_phdr(look_into, object);
    if (object->found && !object->path[0]) { /* the program itself has no name there */
        ssize_t length = readlink("/proc/self/exe", object->path, sizeof object->path - 1);
        object->path[length > 0 ? length : 0] = '\0';
    }
}

static int by_address(const void *left, const void *right)
{
    const struct site *a = *(struct site *const *)left, *b = *(struct site *const *)right;
    return (a->address > b->address) - (a->address < b->address);
}

static int by_time(const void *left, const void *right)
{
    const struct site *a = *(struct site *const *)left, *b = *(struct site *const *)right;
    int64_t left_time = a->time + a->computed, right_time = b->time + b->computed;
    return (left_time < right_time) - (left_time > right_time);
}

static void write_waits(struct json *json, const struct site_waits *waits)
{
    json_number(json, "analysed", waits->waits.analysed);
    json_number(json, "late_sender", waits->waits.late_sender);
    json_number(json, "late_receiver", waits->waits.late_receiver);
    json_number(json, "imbalance", waits->waits.imbalance);
    if (waits->longest > 0) {
        json_integer(json, "for_rank", waits->for_rank);
        json_number(json, "for_time", waits->longest);
    }
}

static void write_site(struct json *json, const struct site *site, uintptr_t base,
                       const struct site_waits *waits)
{
    char offset[24];
    /* What was called from is before what is returned to. */
    snprintf(offset, sizeof offset, "0x%llx",
             site->address ? (unsigned long long)(site->address - 1 - base) : 0);
    json_object(json, NULL);
    json_string(json, "offset", offset);
    json_string(json, "call", call_name(site->call));
    if (site->phase)
        json_integer(json, "phase", phases[site->phase].level);
    json_integer(json, "count", (long long)site->count);
    json_number(json, "time", ticks_to_seconds(site->time));
    json_number(json, "computed", ticks_to_seconds(site->computed));
    json_integer(json, "bytes", (long long)site->bytes);
    if (waits && waits->waits.analysed > 0) {
        json_object(json, "waits");
        write_waits(json, waits);
        json_end(json);
    }
    json_end(json);
}

/* Those of each object file together. */
void sites_write(struct json *json, const struct site_waits *waits)
{
    enum { MOST = 256 }; /* of a rank; a job has many */
    struct site *ordered[SITES_MOST];
    struct object object = { .found = false };
    int used = 0;
    for (int i = 0; i < count; i++)
        if (sites[i].count && sites[i].address)
            ordered[used++] = &sites[i];
    qsort(ordered, (size_t)used, sizeof *ordered, by_time);
    used = used < MOST ? used : MOST;
    qsort(ordered, (size_t)used, sizeof *ordered, by_address);
    json_array(json, "sites");
    for (int i = 0; i < used;) {
        find_object(&object, ordered[i]->address - 1);
        json_object(json, NULL);
        json_string(json, "object", object.path);
        json_string(json, "build_id", object.build_id);
        json_array(json, "calls");
        for (bool same = true; same; same = i < used && is_in(&object, ordered[i]->address - 1)) {
            write_site(json, ordered[i], object.base, waits ? &waits[ordered[i]->number] : NULL);
            i++;
        }
        json_end(json);
        json_end(json);
    }
    json_end(json);
}
