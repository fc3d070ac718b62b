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
        if (!entry->persistent)
            free(map_remove(&requests, key_of(handle)));
    }
    unlock();
    return known;
}

void request_forget(MPI_Request handle)
{
    lock();
    struct request *entry = map_remove(&requests, key_of(handle));
    unlock();
    if (entry)
        communicator_release(entry->communicator);
    free(entry);
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
