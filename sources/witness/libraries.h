/* The shared libraries that a rank has loaded, of those that matter to what it measures:
 *
 *   - what stands in another folder than the C library: somebody chose it;
 *   - of those in that folder what such a library, the MPI or the program itself needs.
 *
 * A module that nothing needs, below the folder of another library, is part of that one, such as
 * the transports of UCX. Libraries are told by path and build id, which takes no file access; real
 * paths, and the versions that some tell when they are asked, are looked up to be written. */
#ifndef ASSAY_WITNESS_LIBRARIES_H
#define ASSAY_WITNESS_LIBRARIES_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"

/* Hexadecimal, with its '\0'. */
enum { BUILD_ID = 2 * 64 + 1 };

/* Of a file in memory; empty where it has none. */
void build_id_of(const struct dl_phdr_info *info, char id[BUILD_ID]);

const char *file_name(const char *path);

/* The next name of a library that an object in memory needs, from its dynamic section; NULL after
 * the last. `at`: NULL to begin with. */
const char *next_needed(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const ElfW(Dyn) * *at);

struct libraries {
    struct loaded *all; /* the program and all that it has loaded, in the order of the loader */
    size_t count;
};

/* Without memory there are none. */
struct libraries libraries_find(void);
void libraries_free(struct libraries *libraries);

/* The same for the same libraries, in whatever order: threads and programs of a job load them in any. */
uint64_t libraries_hash(const struct libraries *libraries);

/* An array of objects. */
void libraries_write(struct json *json, const struct libraries *libraries);

#endif
