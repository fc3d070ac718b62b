/* What steers a rank beside its environment variables: files that its MPI and transports read, its
 * limits, how its kernel keeps TCP, and libraries that were preloaded. Each is KIND:NAME=VALUE:
 *
 *   file:PATH:NAME   a variable that a file sets, as the variable of the environment would be called
 *   limit:NAME       a soft limit: bytes, a number, or "unlimited"
 *   kernel:NAME      a sysctl
 *   process:NAME     huge_pages: "off" where this process gets none, whatever the host has;
 *                    may_lock: "any" where the limit of memlock does not hold for it
 *   shm:size         bytes of /dev/shm
 *   preloaded:PATH   a library that LD_PRELOAD does not name: the file that does, or "unknown"
 *
 * What cannot be read is left out. Files are read after MPI_Init, and only those that what the rank has
 * loaded read in it: nothing hangs here that did not hang there. */
#ifndef ASSAY_WITNESS_SETTINGS_H
#define ASSAY_WITNESS_SETTINGS_H

#include "json.h"

void settings_after_init(void);

/* An entry for each of rank 0's. */
void settings_write(struct json *json);

/* Collective over witness.comm, as entries_differing. */
char *settings_differing(void);

#endif
