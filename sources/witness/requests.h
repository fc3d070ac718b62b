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
    bool persistent, cancelled; /* cancelled: it was asked for */
    bool unordered; /* persistent: matched by no tag (collectives, partitioned messages) */
    struct communicator *communicator; /* NULL unless it will be needed */
    int rank, tag; /* of the other side; wildcards of a receive until it completes */
    int64_t bytes;
    int64_t *parts; /* persistent, of neighbours: bytes to each, in place of `bytes`; its own */
    bool collective; /* persistent: it sends `bytes` in all, and `each` to `rank` (record.h) */
    int64_t each;
    int64_t posted;  /* ticks */
    uint64_t serial; /* in the log of messages; NO_MESSAGE for a receive with wildcards */
};

/* Replaces what an earlier request of the same handle stood for. */
void request_remember(MPI_Request handle, const struct request *request);
/* False where nothing is known of it. */
bool request_find(MPI_Request handle, struct request *found);
/* Also removes it, unless it is persistent: then its communicator is the caller's to release. */
bool request_complete(MPI_Request handle, struct request *found);
/* As those of communicators (communicators.h). */
struct request *request_take(MPI_Request handle);
void request_put_back(MPI_Request handle, struct request *request);
void request_freed(struct request *request);
/* The program has asked MPI to cancel it. */
void request_cancelled(MPI_Request handle);
/* It was cancelled: the messages after it are other ones than they seemed to be. */
void request_never_came(const struct request *request);
/* Whether there are any at all. */
bool requests_pending(void);
size_t requests_bytes(void);

#endif
