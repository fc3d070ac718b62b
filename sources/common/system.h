/* What the kernel tells in /proc and /sys: files of text, and sets of CPUs, NUMA domains or
 * packages, which it writes as lists: "0-3,8". */
#ifndef ASSAY_SYSTEM_H
#define ASSAY_SYSTEM_H

#include <glob.h>
#include <stdbool.h>
#include <stdint.h>

#include "json.h"

/* Stands before every path. Tests build with a tree of their own, which has hardware and limits
 * that the machine has not. */
#ifndef ASSAY_SYSTEM_ROOT
#define ASSAY_SYSTEM_ROOT ""
#endif

/* Linux can be built for 8192 CPUs and 1024 NUMA domains; but firmware numbers the packages of some
 * ARM machines by offsets into one of its tables. */
enum { SET_MEMBERS = 1 << 15, SET_WORD = 8 * sizeof(unsigned long) };

/* Laid out as the kernel's own masks, so that system calls can fill it in. */
struct set {
    unsigned long words[SET_MEMBERS / SET_WORD];
};

/* The text of a whole file, which the caller frees. NULL when it cannot be read or is empty. */
char *system_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Such a text, or a part of it, without blanks and ends of lines at both ends, in its place. */
char *system_trimmed(char *text);
/* The number that a file starts with. False when there is none. */
bool system_number(uint64_t *number, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The set in a file; empty when it cannot be read. */
struct set system_set(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The paths that match a pattern, maybe none; the caller gives them to globfree. */
glob_t system_paths(const char *pattern);
/* One of them, without ASSAY_SYSTEM_ROOT. */
const char *system_path(const glob_t *paths, size_t index);
/* The number that ends a path: /proc/self/task/17 */
int system_path_number(const char *path);

/* Numbers outside 0 .. SET_MEMBERS - 1 are left out. */
void set_add(struct set *set, int member);
void set_remove(struct set *set, int member);
/* The first member that is not below `from`, or -1: for (m = set_next(s, 0); m >= 0; m =
 * set_next(s, m + 1)) visits all. */
int set_next(const struct set *set, int from);
bool set_has(const struct set *set, int member);
struct set set_both(const struct set *a, const struct set *b);
void set_write(struct json *json, const char *key, const struct set *set);

#endif
