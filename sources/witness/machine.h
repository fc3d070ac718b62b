/* What a host is and how it is set: kernel, processor, and what of both steers how fast it computes.
 *
 * What cannot be read, as in some containers and virtual machines, is left out. */
#ifndef ASSAY_WITNESS_MACHINE_H
#define ASSAY_WITNESS_MACHINE_H

#include "json.h"

/* Member machine of a host, an object of texts. */
void machine_write(struct json *json);

#endif
