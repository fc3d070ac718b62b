#include "settings.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "entries.h"
#include "libraries.h"
#include "system.h"
#include "witness.h"

#ifdef OPEN_MPI
enum { IS_OPEN_MPI = 1 };
#else
enum { IS_OPEN_MPI = 0 };
#endif

static struct entries own;

/* Files that set variables ---------------------------------------------------------------------- */

/* No file of settings is larger, or has more of them. */
enum { MOST_BYTES = 1 << 16, MOST_SETTINGS = 64 };

/* The beginning of a regular file, which the caller frees; NULL for all else, which might never end. */
static char *beginning_of(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode))
        return NULL;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    char *text = file >= 0 ? malloc(MOST_BYTES + 1) : NULL;
    ssize_t length = text ? read(file, text, MOST_BYTES) : -1;
    if (file >= 0)
        close(file);
    if (length < 0) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    return text;
}

/* By these a section of ucx.conf is for some machines only: which, UCX alone can tell. */
static bool is_filter(const char *name)
{
    return strcmp(name, "CPU vendor") == 0 || strcmp(name, "CPU model") == 0 ||
           strcmp(name, "DMI product name") == 0;
}

/* What stands before '=' is an entry's name. */
static void write_path(FILE *out, const char *path)
{
    for (; *path; path++)
        putc(*path == '=' ? '?' : *path, out);
}

/* Lines of NAME = VALUE. `prefix` stands before the names of such variables in the environment. */
static void note_file(FILE *out, const char *prefix, const char *path)
{
    char *text = beginning_of(path), *rest = text, *line;
    bool skipped = false;
    for (int count = 0; count < MOST_SETTINGS && (line = strsep(&rest, "\n"));) {
        char *value = system_trimmed(line);
        if (*value == '[')
            skipped = false;
        if (!*value || strchr("#;[-", *value))
            continue;
        char *name = system_trimmed(strsep(&value, "="));
        skipped = skipped || is_filter(name);
        if (!value || !*name || skipped)
            continue;
        fputs("file:", out);
        write_path(out, path);
        fprintf(out, ":%s%s=%s%c", prefix, name, system_trimmed(value), '\0');
        count++;
    }
    free(text);
}

static void note_file_in(FILE *out, const char *prefix, const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (folder && *folder == '/' &&
        snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path)
        note_file(out, prefix, path);
}

struct library {
    const char *name; /* that its file's begins with */
    char path[PATH_MAX];
};

static int find_library(struct dl_phdr_info *object, size_t size, void *context)
{
    struct library *library = context;
    const char *name = file_name(object->dlpi_name);
    (void)size;
    return name > object->dlpi_name && strncmp(name, library->name, strlen(library->name)) == 0 &&
           realpath(object->dlpi_name, library->path);
}

/* The folder "etc" beside that of a library. False where it is not loaded. */
static bool find_etc(const char *name, char etc[PATH_MAX])
{
    struct library library = { .name = name };
    if (!dl_iterate_phdr(find_library, &library))
        return false;
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(library.path, '/');
        if (slash)
            *slash = '\0';
    }
    snprintf(etc, PATH_MAX, "%.*s/etc", PATH_MAX - 8, library.path);
    return true;
}

static bool is_of_the_system(const char *etc)
{
    return strncmp(etc, "/usr/", 5) == 0 && strncmp(etc, "/usr/local/", 11) != 0;
}

/* Of distributions each has a name of its own for Open MPI's folder in /etc. */
static void note_files_like(FILE *out, const char *prefix, const char *pattern)
{
    glob_t paths = { 0 };
    if (glob(pattern, 0, NULL, &paths) == 0)
        for (size_t i = 0; i < paths.gl_pathc; i++)
            note_file(out, prefix, paths.gl_pathv[i]);
    globfree(&paths);
}

/* Those of the MCA, in the order in which they win: overriding ones also over the environment. */
static void note_mca_files(FILE *out, const char *prefix, const char *hidden, const char *name)
{
    char etc[PATH_MAX], file[64];
    if (!find_etc("libopen-pal.so", etc) && !find_etc("libmpi.so", etc))
        return;
    const char *folder = getenv("OPAL_SYSCONFDIR"), *moved = getenv("OPAL_PREFIX");
    if (moved && *moved == '/')
        snprintf(etc, sizeof etc, "%.*s/etc", (int)sizeof etc - 8, moved);
    folder = folder ? folder : etc;
    snprintf(file, sizeof file, "%s-override.conf", name);
    note_file_in(out, prefix, folder, file);
    note_file_in(out, prefix, getenv("HOME"), hidden);
    snprintf(file, sizeof file, "%s.conf", name);
    note_file_in(out, prefix, folder, file);
    if (is_of_the_system(etc)) {
        snprintf(file, sizeof file, "/etc/openmpi*/%s.conf", name);
        note_files_like(out, prefix, file);
        note_file_in(out, prefix, "/etc", strrchr(file, '/') + 1);
    }
}

/* UCX takes the last of them. */
static void note_ucx_files(FILE *out)
{
    char etc[PATH_MAX], folder[PATH_MAX];
    if (!find_etc("libucs.so", etc))
        return;
    note_file_in(out, "", getcwd(folder, sizeof folder), "ucx.conf");
    note_file_in(out, "", getenv("UCX_CONFIG_DIR"), "ucx.conf");
    note_file_in(out, "", getenv("HOME"), "ucx.conf");
    note_file_in(out, "", etc, "ucx/ucx.conf");
    if (is_of_the_system(etc))
        note_file(out, "", "/etc/ucx/ucx.conf");
}

/* No other MPI of MPICH's kind opens a file in the user's folder, which may be of a server that is away. */
static bool is_mvapich(void)
{
    char library[8192] = ""; /* MPICH's MPI_MAX_LIBRARY_VERSION_STRING */
    int length;
    PMPI_Get_library_version(library, &length);
    return strstr(library, "MVAPICH");
}

static void note_mpich_files(FILE *out)
{
    const char *of_user = getenv("MV2_USER_CONFIG");
    note_file(out, "", "/etc/mpich.conf");
    if (!is_mvapich())
        return;
    if (of_user)
        note_file(out, "", of_user);
    else
        note_file_in(out, "", getenv("HOME"), ".mvapich2.conf");
    note_file(out, "", "/etc/mvapich2.conf");
}

static void note_files(FILE *out)
{
    char etc[PATH_MAX];
    if (IS_OPEN_MPI) {
        note_mca_files(out, "OMPI_MCA_", ".openmpi/mca-params.conf", "openmpi-mca-params");
        note_mca_files(out, "PMIX_MCA_", ".pmix/mca-params.conf", "pmix-mca-params");
        note_mca_files(out, "PRTE_MCA_", ".prte/mca-params.conf", "prte-mca-params");
    } else {
        note_mpich_files(out);
    }
    note_ucx_files(out);
    if (find_etc("libfabric.so", etc)) {
        note_file_in(out, "", etc, "libfabric.conf");
        if (is_of_the_system(etc))
            note_file(out, "", "/etc/libfabric.conf");
    }
}

/* Limits and the kernel -------------------------------------------------------------------------- */

static void note_limits(FILE *out)
{
    static const struct {
        const char *name;
        int number;
    } limits[] = { { "memlock", RLIMIT_MEMLOCK },
                   { "stack", RLIMIT_STACK },
                   { "nofile", RLIMIT_NOFILE },
                   { "core", RLIMIT_CORE },
                   { "as", RLIMIT_AS } };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;
        if (getrlimit(limits[i].number, &limit) != 0)
            continue;
        if (limit.rlim_cur == RLIM_INFINITY)
            fprintf(out, "limit:%s=unlimited%c", limits[i].name, '\0');
        else
            fprintf(out, "limit:%s=%ju%c", limits[i].name, (uintmax_t)limit.rlim_cur, '\0');
    }
}

static void note_kernel(FILE *out)
{
    static const char *const names[] = {
        "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_sack", "net.ipv4.tcp_congestion_control",
        "net.ipv4.tcp_mtu_probing",    "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
        "net.core.rmem_max",           "net.core.wmem_max",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s", names[i]);
        for (char *dot = path; (dot = strchr(dot, '.'));)
            *dot = '/';
        char *text = system_text("/proc/sys/%s", path);
        if (!text)
            continue;
        for (char *c = text; *c; c++)
            if (*c == '\t')
                *c = ' ';
        text[strcspn(text, "\n")] = '\0';
        fprintf(out, "kernel:%s=%s%c", names[i], text, '\0');
        free(text);
    }
}

/* Whoever may lock memory without a limit is not held to one. */
static bool may_lock_any(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    return syscall(SYS_capget, &head, sets) == 0 && (sets[0].effective & 1u << CAP_IPC_LOCK);
}

static void note_memory(FILE *out)
{
    struct statvfs shm;
    if (may_lock_any())
        fprintf(out, "process:may_lock=any%c", '\0');
    if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1)
        fprintf(out, "process:huge_pages=off%c", '\0');
    if (statvfs("/dev/shm", &shm) == 0)
        fprintf(out, "shm:size=%ju%c", (uintmax_t)shm.f_blocks * shm.f_frsize, '\0');
}

/* Libraries that were preloaded ------------------------------------------------------------------ */

static bool is_needed_by(const struct link_map *program, const struct link_map *object)
{
    const ElfW(Dyn) *at = NULL;
    for (const char *name; (name = next_needed(program->l_addr, program->l_ld, &at));)
        if (strcmp(file_name(name), file_name(object->l_name)) == 0)
            return true;
    return false;
}

/* As LD_PRELOAD and /etc/ld.so.preload list libraries. */
static bool is_listed(const char *list, const struct link_map *object)
{
    char *names = list ? strdup(list) : NULL, *rest = names, *name;
    bool found = false;
    while (!found && (name = strsep(&rest, ": \t\n")))
        found = *name && strcmp(file_name(name), file_name(object->l_name)) == 0;
    free(names);
    return found;
}

/* The loader puts what is preloaded between the program and what the program needs. */
static void note_preloaded(FILE *out)
{
    struct link_map *program = NULL, *last = NULL;
    void *self = dlopen(NULL, RTLD_LAZY);
    if (!self || dlinfo(self, RTLD_DI_LINKMAP, &program) != 0)
        program = NULL;
    for (struct link_map *at = program ? program->l_next : NULL; at; at = at->l_next)
        if (is_needed_by(program, at))
            last = at;
    char *file = beginning_of("/etc/ld.so.preload");
    Dl_info witness_itself;
    if (!dladdr((void *)(uintptr_t)settings_after_init, &witness_itself))
        last = NULL;
    for (struct link_map *at = last ? program->l_next : NULL; at != last; at = at->l_next) {
        /* The kernel's own has no file. */
        if (*at->l_name != '/' || is_needed_by(program, at) ||
            (ElfW(Addr))witness_itself.dli_fbase == at->l_addr ||
            is_listed(getenv("LD_PRELOAD"), at))
            continue;
        fputs("preloaded:", out);
        write_path(out, at->l_name);
        fprintf(out, "=%s%c", is_listed(file, at) ? "/etc/ld.so.preload" : "unknown", '\0');
    }
    free(file);
    if (self)
        dlclose(self);
}

/* ------------------------------------------------------------------------------------------------ */

void settings_after_init(void)
{
    FILE *out = own.text ? NULL : open_memstream(&own.text, &own.size);
    if (!out)
        return;
    note_limits(out);
    note_kernel(out);
    note_memory(out);
    note_files(out);
    note_preloaded(out);
    fclose(out);
}

void settings_write(struct json *json)
{
    entries_write(json, &own);
}

char *settings_differing(void)
{
    return entries_differing(&own);
}
