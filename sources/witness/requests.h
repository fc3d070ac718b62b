/* What a request stands for, until it completes. */
#ifndef ASSAY_REQUESTS_H
#define ASSAY_REQUESTS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls.h"
#include "communicators.h"
#include "messages.h"

struct request {
    enum side side;
    bool persistent;
    struct communicator *communicator; /* NULL unless it will be needed */
    int rank, tag; /* of the other side; wildcards of a receive until it completes */
    int64_t bytes;
    int64_t posted;  /* ticks */
    uint64_t serial; /* in the log of messages; NO_MESSAGE for a receive with wildcards */
};

/* Replaces what an earlier request of the same handle stood for. */
void request_remember(MPI_Request handle, const struct request *request);
/* False where nothing is known of it. */
bool request_find(MPI_Request handle, struct request *found);
/* Also removes it, unless it is persistent: then its communicator is the caller's to release. */
bool request_complete(MPI_Request handle, struct request *found);
void request_forget(MPI_Request handle);
/* Whether there are any at all. */
bool requests_pending(void);
size_t requests_bytes(void);

#endif
