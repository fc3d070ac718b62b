/* Who else took time of the CPUs that the job's ranks on this host may run on: a slow job is judged
 * otherwise where they were not its own. All calls are collective over all ranks. */
#ifndef ASSAY_WITNESS_DISTURBED_H
#define ASSAY_WITNESS_DISTURBED_H

#include "json.h"

/* `folder`: of the job's report, where containers of one machine share a file for a moment; it is
 * needed until the end. */
void disturbed_start(const char *folder);
/* Since the start; `json` counts on the host's first rank only. */
void disturbed_write(struct json *json);

#endif
