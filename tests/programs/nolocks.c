/* Preloaded: files below $NO_LOCKS are on a file system without locks, as Lustre may be. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int has_none(int file)
{
    char link[64], path[PATH_MAX];
    const char *below = getenv("NO_LOCKS");
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = below ? readlink(link, path, sizeof path) : -1;
    if (length < (ssize_t)strlen(below ? below : "") || strncmp(path, below, strlen(below)))
        return 0;
    errno = getenv("NO_LOCKS_ERROR") ? atoi(getenv("NO_LOCKS_ERROR")) : ENOSYS;
    return 1;
}

int flock(int file, int operation)
{
    int (*own)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
    return has_none(file) ? -1 : own(file, operation);
}

static int control(const char *name, int file, int command, void *argument)
{
    int (*own)(int, int, void *) = (int (*)(int, int, void *))dlsym(RTLD_NEXT, name);
    if ((command == F_SETLK || command == F_SETLKW) && has_none(file))
        return -1;
    return own(file, command, argument);
}

int fcntl(int file, int command, ...)
{
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    return control("fcntl", file, command, argument);
}

int fcntl64(int file, int command, ...)
{
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    return control("fcntl64", file, command, argument);
}
