#include "libraries.h"

#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "witness.h"

struct loaded {
    char *path; /* empty of the program */
    char *needed; /* file names, each with its '\0', and another one after the last */
    ElfW(Addr) base;
    char build_id[BUILD_ID];
    bool counts;
};

/* What the loader knows ---------------------------------------------------------------------------- */

static void read_build_id(const struct dl_phdr_info *info, const ElfW(Phdr) * segment,
                          char id[BUILD_ID])
{
    const char *at = (const char *)(info->dlpi_addr + segment->p_vaddr);
    const char *end = at + segment->p_memsz;
    while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)at;
        const char *name = at + sizeof *note;
        const unsigned char *bytes = (const void *)(name + ((note->n_namesz + 3) & ~3u));
        at = (const char *)bytes + ((note->n_descsz + 3) & ~3u);
        if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != 4 || memcmp(name, "GNU", 4) != 0 ||
            at > end || 2 * note->n_descsz >= BUILD_ID)
            continue;
        for (unsigned i = 0; i < note->n_descsz; i++)
            snprintf(id + (size_t)2 * i, 3, "%02x", bytes[i]);
        return;
    }
}

void build_id_of(const struct dl_phdr_info *info, char id[BUILD_ID])
{
    id[0] = '\0';
    for (int i = 0; i < info->dlpi_phnum && !id[0]; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            read_build_id(info, &info->dlpi_phdr[i], id);
}

const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The dynamic loader has made addresses absolute, but not on every kind of processor. */
const char *next_needed(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const ElfW(Dyn) * *at)
{
    ElfW(Addr) names = 0;
    for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB)
            names = entry->d_un.d_ptr < base ? entry->d_un.d_ptr + base : entry->d_un.d_ptr;
    for (*at = *at ? *at + 1 : dynamic; names && (*at)->d_tag != DT_NULL; (*at)++)
        if ((*at)->d_tag == DT_NEEDED)
            return (const char *)names + (*at)->d_un.d_val;
    return NULL;
}

static char *copy_needed(const struct dl_phdr_info *info)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; out && i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        const ElfW(Dyn) *at = NULL;
        for (const char *name; (name = next_needed(info->dlpi_addr, dynamic, &at));)
            fprintf(out, "%s%c", file_name(name), '\0');
    }
    if (out) {
        fputc('\0', out);
        fclose(out);
    }
    return text;
}

/* Copies all: another thread may unload a library as soon as the loader's lock is released. */
static int note(struct dl_phdr_info *info, size_t size, void *context)
{
    struct libraries *found = context;
    struct loaded *more = realloc(found->all, (found->count + 1) * sizeof *more);
    (void)size;
    if (!more)
        return 1;
    found->all = more;
    struct loaded *own = &more[found->count];
    *own = (struct loaded){ .path = strdup(info->dlpi_name), .base = info->dlpi_addr };
    own->needed = copy_needed(info);
    build_id_of(info, own->build_id);
    if (own->path && own->needed) {
        found->count++;
        return 0;
    }
    free(own->path);
    free(own->needed);
    return 1;
}

/* Which matter ------------------------------------------------------------------------------------- */

static bool is_needed_by(const struct loaded *one, const struct loaded *by)
{
    for (const char *name = by->needed; *name; name += strlen(name) + 1)
        if (strcmp(name, file_name(one->path)) == 0)
            return true;
    return false;
}

/* As a path without /usr, of which /lib and /lib64 are links. */
static const char *short_path(const char *path)
{
    return strncmp(path, "/usr/lib", 8) == 0 ? path + 4 : path;
}

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

static bool is_in_folder_of(const struct loaded *one, const struct loaded *other)
{
    const char *path = short_path(one->path), *with = short_path(other->path);
    size_t length = folder_length(with);
    return folder_length(path) == length && strncmp(path, with, length) == 0;
}

static bool is_below_folder_of(const struct loaded *one, const struct loaded *other)
{
    const char *path = short_path(one->path), *with = short_path(other->path);
    size_t length = folder_length(with);
    return length && folder_length(path) > length && path[length] == '/' &&
           strncmp(path, with, length) == 0;
}

/* What the suite preloads. */
static bool is_own(const struct loaded *one)
{
    return strncmp(file_name(one->path), "libassay_", 9) == 0;
}

/* Neither the program, nor what only hands on to the C library. */
static bool is_library(const struct loaded *one)
{
    static const char *const not[] = { "libpthread.", "libdl.", "librt.", "libutil." };
    const char *name = file_name(one->path);
    if (*one->path != '/' || strncmp(name, "lib", 3) != 0 || is_own(one))
        return false;
    for (size_t i = 0; i < sizeof not / sizeof *not; i++)
        if (strncmp(name, not[i], strlen(not[i])) == 0)
            return false;
    return true;
}

static const struct loaded *find_with(const struct libraries *all, const void *address)
{
    Dl_info where;
    for (size_t i = 0; dladdr(address, &where) && i < all->count; i++)
        if (all->all[i].base == (ElfW(Addr))(uintptr_t)where.dli_fbase && *all->all[i].path)
            return &all->all[i];
    return NULL;
}

static bool matters(const struct libraries *all, const struct loaded *one, const struct loaded *mpi,
                    const struct loaded *c)
{
    bool is_of_system = c && is_in_folder_of(one, c), is_needed = false, is_below = false;
    for (size_t i = 0; i < all->count; i++) {
        const struct loaded *other = &all->all[i];
        is_below = is_below || (is_library(other) && is_below_folder_of(one, other));
        if (is_own(other) || !is_needed_by(one, other))
            continue;
        is_needed = true;
        if (is_of_system && (other == mpi || !is_in_folder_of(other, c)))
            return true;
    }
    return !is_of_system && (is_needed || !is_below);
}

struct libraries libraries_find(void)
{
    struct libraries found = { NULL, 0 };
    dl_iterate_phdr(note, &found);
    const struct loaded *mpi = find_with(&found, (void *)(uintptr_t)PMPI_Initialized);
    const struct loaded *c = find_with(&found, (void *)(uintptr_t)dl_iterate_phdr);
    for (size_t i = 0; i < found.count; i++) {
        struct loaded *one = &found.all[i];
        one->counts = is_library(one) && (one == mpi || matters(&found, one, mpi, c));
    }
    return found;
}

void libraries_free(struct libraries *libraries)
{
    for (size_t i = 0; i < libraries->count; i++) {
        free(libraries->all[i].path);
        free(libraries->all[i].needed);
    }
    free(libraries->all);
}

uint64_t libraries_hash(const struct libraries *libraries)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < libraries->count; i++)
        if (libraries->all[i].counts)
            hash +=
                map_hash_text(libraries->all[i].build_id, map_hash_text(libraries->all[i].path, 1));
    return hash;
}

/* What they tell ----------------------------------------------------------------------------------- */

/* A function of a library's own; none that it only has from another one. */
static void *own_function(void *library, const struct loaded *one, const char *name)
{
    Dl_info where;
    void *function = dlsym(library, name);
    if (!function || !dladdr(function, &where))
        return NULL;
    return (ElfW(Addr))(uintptr_t)where.dli_fbase == one->base ? function : NULL;
}

/* What a library says of its version; NULL for nothing. */
static const char *told_by(void *library, const struct loaded *one, char room[32])
{
    static const char *const tellers[] = { "ucp_get_version_string", "PMIx_Get_version",
                                           "openblas_get_config", "bli_info_get_version_str",
                                           "gnu_get_libc_version" };
    void *function;
    for (size_t i = 0; i < sizeof tellers / sizeof *tellers; i++)
        if ((function = own_function(library, one, tellers[i])))
            return ((const char *(*)(void))(uintptr_t)function)();
    if ((function = own_function(library, one, "fi_tostr"))) {
        enum { FI_TYPE_VERSION = 18 };
        int nothing = 0;
        return ((const char *(*)(const void *, int))(uintptr_t)function)(&nothing, FI_TYPE_VERSION);
    }
    if ((function = own_function(library, one, "hwloc_get_api_version"))) {
        unsigned version = ((unsigned (*)(void))(uintptr_t)function)();
        snprintf(room, 32, "%u.%u.%u", version >> 16, version >> 8 & 0xff, version & 0xff);
        return room;
    }
    return NULL;
}

/* The first word of it that begins with a digit. */
static void write_version(struct json *json, const struct loaded *one)
{
    char room[32], version[32];
    void *library = dlopen(one->path, RTLD_LAZY | RTLD_NOLOAD);
    const char *told = library ? told_by(library, one, room) : NULL;
    while (told && *told && !isdigit((unsigned char)*told)) {
        told += strcspn(told, " ");
        told += strspn(told, " ");
    }
    if (told && *told) {
        snprintf(version, sizeof version, "%.*s", (int)strcspn(told, " ,;"), told);
        json_string(json, "version", version);
    }
    if (library)
        dlclose(library);
}

void libraries_write(struct json *json, const struct libraries *libraries)
{
    char path[PATH_MAX];
    json_array(json, "libraries");
    for (size_t i = 0; i < libraries->count; i++) {
        const struct loaded *one = &libraries->all[i];
        if (!one->counts)
            continue;
        json_object(json, NULL);
        json_string(json, "path", realpath(one->path, path) ? path : one->path);
        write_version(json, one);
        json_string(json, "build_id", one->build_id);
        json_end(json);
    }
    json_end(json);
}
