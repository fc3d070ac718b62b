/* Preloaded into a program that may start MPI programs: a job script, make, a driver.
 *
 * A process that becomes a launcher becomes the command of ASSAY_WITNESS_LAUNCH first, a script of the
 * shell, which starts the launcher with the witness before its programs (lib/assay/running/launches.py).
 * So it does not matter how the launcher was found. Without that command it goes on as it would. What
 * starts containers starts anew without this library, which is not there inside. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How the file of this library begins. */
#define OWN "assay-launch-"

static const char *name_of(const char *path)
{
    const char *stroke = strrchr(path, '/');
    return stroke ? stroke + 1 : path;
}

/* Whether a file is called as one of the names, or one with a suffix, as mpirun.openmpi. */
static bool is_launcher(const char *path, const char *names)
{
    const char *name = name_of(path);
    size_t length = strcspn(name, ".-");
    for (const char *one = names; length && *one; one += strspn(one, ":")) {
        size_t its = strcspn(one, ":");
        if (its == length && strncmp(one, name, length) == 0)
            return true;
        one += its;
    }
    return false;
}

static bool is_interpreter(const char *path)
{
    static const char *const known[] = { "sh",  "bash", "dash", "ash",  "ksh",
                                         "zsh", "tcsh", "csh",  "perl", "python" };
    const char *name = name_of(path);
    size_t length = strcspn(name, "0123456789.");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == length && strncmp(known[i], name, length) == 0)
            return true;
    return false;
}

/* The place of the launcher's word, which may be a script: then the kernel has put its interpreter
 * before it, perhaps with an argument. 0 is the program itself; -1 if it is no launcher. */
static int find_launcher(int argc, char **argv, const char *names)
{
    enum { LAST = 2 };
    if (argc < 1 || is_launcher(argv[0], names))
        return argc < 1 ? -1 : 0;
    for (int i = 1; i < argc && i <= LAST && is_interpreter(argv[0]); i++) {
        if (strchr(argv[i], '/') && is_launcher(argv[i], names) && access(argv[i], X_OK) == 0)
            return i;
        if (argv[i][0] != '-' || strcmp(argv[i], "-c") == 0)
            break;
    }
    return -1;
}

/* Takes this library from LD_PRELOAD. */
static void preload_no_longer(void)
{
    char *preloaded = getenv("LD_PRELOAD"), *others = preloaded ? strdup(preloaded) : NULL, *rest;
    if (!others)
        return;
    preloaded[0] = '\0';
    for (char *one = strtok_r(others, ":", &rest); one; one = strtok_r(NULL, ":", &rest)) {
        if (strncmp(name_of(one), OWN, strlen(OWN)) == 0)
            continue;
        if (preloaded[0])
            strcat(preloaded, ":"); /* they become no longer */
        strcat(preloaded, one);
    }
    if (!preloaded[0])
        unsetenv("LD_PRELOAD");
    free(others);
}

__attribute__((constructor)) static void go_through_command(int argc, char **argv)
{
    char *command = getenv("ASSAY_WITNESS_LAUNCH");
    const char *names = getenv("ASSAY_WITNESS_LAUNCHERS");
    const char *containers = getenv("ASSAY_WITNESS_CONTAINERS");
    if (!command || !names || access(command, R_OK) != 0)
        return;
    if (containers && argc > 0 && is_launcher(argv[0], containers)) {
        preload_no_longer();
        unsetenv("ASSAY_WITNESS_LAUNCH");
        execv("/proc/self/exe", argv);
        return;
    }
    int launcher = find_launcher(argc, argv, names);
    if (launcher < 0)
        return;
    enum { BEFORE = 2 };
    char **words = calloc((size_t)(argc - launcher) + BEFORE + 1, sizeof *words);
    if (!words)
        return;
    words[0] = "sh";
    words[1] = command;
    memcpy(words + BEFORE, argv + launcher, (size_t)(argc - launcher) * sizeof *words);
    unsetenv("ASSAY_WITNESS_LAUNCH");
    execv("/bin/sh", words);
    setenv("ASSAY_WITNESS_LAUNCH", command, true);
    free(words);
}
