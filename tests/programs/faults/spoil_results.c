/* A fault: the file result.json of the working directory is not what the program wrote when it ended,
 * as on a file system that is full or loses what it has promised to keep.
 *
 * Preload it into any program that writes one:
 *     cc -shared -fPIC spoil_results.c -o spoil_results.so
 *     SPOIL=truncate LD_PRELOAD=$PWD/spoil_results.so pt2pt --json result.json
 * SPOIL: truncate (to half of its size), empty, remove, garbage (other bytes in its middle), or print
 * (garbage before what a rank that Slurm has started by PMIx prints; the file stays). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char FILE_NAME[] = "result.json";
static const char GARBAGE[] = "\xff\xfe\x1b[2J{\"\x80";

__attribute__((constructor)) static void print(void)
{
    const char *how = getenv("SPOIL");
    if (how && strcmp(how, "print") == 0 && getenv("PMIX_RANK"))
        (void)!write(STDOUT_FILENO, GARBAGE, sizeof GARBAGE);
}

__attribute__((destructor)) static void spoil(void)
{
    const char *how = getenv("SPOIL");
    struct stat file;
    if (!how || stat(FILE_NAME, &file) != 0)
        return;
    if (strcmp(how, "truncate") == 0)
        (void)!truncate(FILE_NAME, file.st_size / 2);
    else if (strcmp(how, "empty") == 0)
        (void)!truncate(FILE_NAME, 0);
    else if (strcmp(how, "remove") == 0)
        unlink(FILE_NAME);
    else if (strcmp(how, "garbage") == 0) {
        int fd = open(FILE_NAME, O_WRONLY);
        (void)!pwrite(fd, GARBAGE, sizeof GARBAGE, file.st_size / 2);
        close(fd);
    }
}
