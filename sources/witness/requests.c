#include "requests.h"

#include <pthread.h>
#include <stdlib.h>

#include "map.h"
#include "witness.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct map requests;

/* A request may be completed by another thread than the one that made it. */
static void lock(void)
{
    if (witness.thread_level == MPI_THREAD_MULTIPLE)
        pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    if (witness.thread_level == MPI_THREAD_MULTIPLE)
        pthread_mutex_unlock(&mutex);
}

static uint64_t key_of(MPI_Request handle)
{
    return (uint64_t)(uintptr_t)handle;
}

void request_remember(MPI_Request handle, const struct request *request)
{
    lock();
    struct request *entry = map_get(&requests, key_of(handle));
    if (!entry && (entry = calloc(1, sizeof *entry)) &&
        !map_put(&requests, key_of(handle), entry)) {
        free(entry);
        entry = NULL;
    }
    if (entry) {
        communicator_hold(request->communicator);
        communicator_release(entry->communicator);
        if (entry->parts != request->parts)
            free(entry->parts);
        *entry = *request;
    }
    unlock();
}

bool request_find(MPI_Request handle, struct request *found)
{
    lock();
    const struct request *entry = map_get(&requests, key_of(handle));
    if (entry)
        *found = *entry;
    unlock();
    return entry;
}

bool request_complete(MPI_Request handle, struct request *found)
{
    lock();
    struct request *entry = map_get(&requests, key_of(handle));
    bool known = entry;
    if (known) {
        *found = *entry;
        entry->serial = NO_MESSAGE;
        entry->cancelled = false;
        if (!entry->persistent)
            free(map_remove(&requests, key_of(handle)));
    }
    unlock();
    return known;
}

struct request *request_take(MPI_Request handle)
{
    lock();
    struct request *request = map_remove(&requests, key_of(handle));
    unlock();
    return request;
}

void request_put_back(MPI_Request handle, struct request *request)
{
    lock();
    bool back = !map_get(&requests, key_of(handle)) && map_put(&requests, key_of(handle), request);
    unlock();
    if (!back)
        request_freed(request);
}

void request_cancelled(MPI_Request handle)
{
    struct request request = { .side = RECEIVER }; /* posted at a time that is not known */
    request_find(handle, &request);
    request.cancelled = true;
    request_remember(handle, &request);
}

/* A receive with wildcards has no number yet. */
void request_never_came(const struct request *request)
{
    bool is_numbered = request->rank != MPI_ANY_SOURCE && request->tag != MPI_ANY_TAG;
    if (!is_numbered && request->side == RECEIVER)
        return;
    lock();
    messages_misnumbered(request->posted);
    unlock();
}

void request_freed(struct request *request)
{
    if (request->cancelled)
        request_never_came(request);
    communicator_release(request->communicator);
    free(request->parts);
    free(request);
}

bool requests_pending(void)
{
    lock();
    bool pending = requests.count > 0;
    unlock();
    return pending;
}

size_t requests_bytes(void)
{
    return map_bytes(&requests) + requests.count * sizeof(struct request);
}
