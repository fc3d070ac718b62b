/* Calls that complete requests: what they waited for is told by the requests they completed. */
#include <stdlib.h>
#include <string.h>

#include "wrap.h"

/* Room for the handles of a call, which MPI replaces by MPI_REQUEST_NULL as they complete, for its
 * statuses where the program ignores them, and for the messages it completed. */
enum { FEW = 32 };

struct batch {
    int count; /* 0: nothing is noted */
    MPI_Request *handles, few_handles[FEW];
    MPI_Status *statuses, few_statuses[FEW];
    uint64_t *serials, few_serials[FEW];
};

static void batch_free(struct batch *batch)
{
    if (batch->count > FEW) {
        free(batch->handles);
        free(batch->statuses);
        free(batch->serials);
    }
}

static bool batch_allocate(struct batch *batch)
{
    size_t count = (size_t)batch->count;
    batch->handles = malloc(count * sizeof *batch->handles);
    batch->statuses = malloc(count * sizeof *batch->statuses);
    batch->serials = malloc(count * sizeof *batch->serials);
    return batch->handles && batch->statuses && batch->serials;
}

/* False where no request is known, and where there is no memory. */
static bool batch_begin(struct batch *batch, const struct timing *timing, int count,
                        const MPI_Request *requests)
{
    batch->count = timing->thread && requests && count > 0 && requests_pending() ? count : 0;
    batch->handles = batch->few_handles;
    batch->statuses = batch->few_statuses;
    batch->serials = batch->few_serials;
    if (batch->count > FEW && !batch_allocate(batch)) {
        batch_free(batch);
        batch->count = 0;
    }
    if (batch->count)
        memcpy(batch->handles, requests, (size_t)count * sizeof *requests);
    return batch->count > 0;
}

/* What a request that has completed stood for: a serial, or NO_MESSAGE. */
static uint64_t completed(const struct timing *timing, MPI_Request handle, const MPI_Status *status)
{
    struct request request;
    int cancelled = 0;
    if (!request_complete(handle, &request))
        return NO_MESSAGE;
    if (request.cancelled)
        PMPI_Test_cancelled(status, &cancelled);
    if (cancelled) {
        request_never_came(&request);
        request.serial = NO_MESSAGE;
    } else if (request.side == RECEIVER && !is_exact(request.rank, request.tag))
        request.serial = record_receive_in(timing, request.communicator, status->MPI_SOURCE,
                                           status->MPI_TAG, request.posted);
    if (!request.persistent)
        communicator_release(request.communicator);
    return request.serial;
}

/* After an error: those that MPI has let go of. */
static void forget_let_go(const struct batch *batch, const MPI_Request *requests)
{
    for (int i = 0; i < batch->count; i++) {
        struct request *request = requests[i] != batch->handles[i] ? request_take(batch->handles[i])
                                                                   : NULL;
        if (request)
            request_freed(request);
    }
}

/* After the call, with its code and its requests. `indices`: of the requests that completed, NULL for
 * all; statuses are in their order. */
static void batch_end(struct batch *batch, const struct timing *timing, int code,
                      const MPI_Request *requests, int done, const int *indices,
                      const MPI_Status *statuses, bool blocked)
{
    int found = 0;
    if (!batch->count)
        return;
    if (code != MPI_SUCCESS)
        forget_let_go(batch, requests);
    for (int i = 0; code == MPI_SUCCESS && i < done; i++) {
        MPI_Request handle = batch->handles[indices ? indices[i] : i];
        uint64_t serial = completed(timing, handle, &statuses[i]);
        if (serial)
            batch->serials[found++] = serial;
    }
    if (blocked && found)
        record_wait(timing, batch->serials, found);
    batch_free(batch);
}

EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct timing timing = call_begin(CALL_Wait);
    struct batch batch;
    if (batch_begin(&batch, &timing, 1, request) && status == MPI_STATUS_IGNORE)
        status = batch.statuses;
    int code = PMPI_Wait(request, status);
    call_end(&timing);
    batch_end(&batch, &timing, code, request, 1, NULL, status, true);
    return code;
}

/* MPICH 4.3 leaves what comes behind a request that failed, but not where statuses are ignored; 4.0 leaves
 * it in both, and releases between them were not tried. */
#if defined OPEN_MPI || (defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40100000)
#define LEAVES_WHAT_IS_BEHIND false
#else
#define LEAVES_WHAT_IS_BEHIND true
#endif

EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    struct timing timing = call_begin(CALL_Waitall);
    struct batch batch;
    bool ours = batch_begin(&batch, &timing, count, requests) && statuses == MPI_STATUSES_IGNORE;
    if (ours)
        statuses = batch.statuses;
    for (int i = 0; ours && i < count; i++)
        statuses[i].MPI_ERROR = MPI_SUCCESS;
    int code = PMPI_Waitall(count, requests, statuses), outcome = code;
    for (int i = 0; ours && i < count && outcome == MPI_SUCCESS; i++)
        outcome = statuses[i].MPI_ERROR;
    if (ours && outcome != MPI_SUCCESS && LEAVES_WHAT_IS_BEHIND)
        PMPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    call_end(&timing);
    batch_end(&batch, &timing, outcome, requests, count, NULL, statuses, true);
    return code;
}

EXPORT int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    struct timing timing = call_begin(CALL_Waitany);
    struct batch batch;
    if (batch_begin(&batch, &timing, count, requests) && status == MPI_STATUS_IGNORE)
        status = batch.statuses;
    int code = PMPI_Waitany(count, requests, index, status);
    call_end(&timing);
    bool done = code == MPI_SUCCESS && *index != MPI_UNDEFINED;
    batch_end(&batch, &timing, code, requests, done, index, status, true);
    return code;
}

EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[],
                        MPI_Status statuses[])
{
    struct timing timing = call_begin(CALL_Waitsome);
    struct batch batch;
    if (batch_begin(&batch, &timing, count, requests) && statuses == MPI_STATUSES_IGNORE)
        statuses = batch.statuses;
    int code = PMPI_Waitsome(count, requests, done, indices, statuses);
    call_end(&timing);
    bool some = code == MPI_SUCCESS && *done != MPI_UNDEFINED;
    batch_end(&batch, &timing, code, requests, some ? *done : 0, indices, statuses, true);
    return code;
}

EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct timing timing = call_begin(CALL_Test);
    struct batch batch;
    if (batch_begin(&batch, &timing, 1, request) && status == MPI_STATUS_IGNORE)
        status = batch.statuses;
    int code = PMPI_Test(request, flag, status);
    call_end(&timing);
    bool done = code == MPI_SUCCESS && *flag;
    batch_end(&batch, &timing, code, request, done, NULL, status, false);
    return code;
}

EXPORT int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct timing timing = call_begin(CALL_Testall);
    struct batch batch;
    if (batch_begin(&batch, &timing, count, requests) && statuses == MPI_STATUSES_IGNORE)
        statuses = batch.statuses;
    int code = PMPI_Testall(count, requests, flag, statuses);
    call_end(&timing);
    bool done = code == MPI_SUCCESS && *flag;
    batch_end(&batch, &timing, code, requests, done ? count : 0, NULL, statuses, false);
    return code;
}

EXPORT int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct timing timing = call_begin(CALL_Testany);
    struct batch batch;
    if (batch_begin(&batch, &timing, count, requests) && status == MPI_STATUS_IGNORE)
        status = batch.statuses;
    int code = PMPI_Testany(count, requests, index, flag, status);
    call_end(&timing);
    bool done = code == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED;
    batch_end(&batch, &timing, code, requests, done, index, status, false);
    return code;
}

EXPORT int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[],
                        MPI_Status statuses[])
{
    struct timing timing = call_begin(CALL_Testsome);
    struct batch batch;
    if (batch_begin(&batch, &timing, count, requests) && statuses == MPI_STATUSES_IGNORE)
        statuses = batch.statuses;
    int code = PMPI_Testsome(count, requests, done, indices, statuses);
    call_end(&timing);
    bool some = code == MPI_SUCCESS && *done != MPI_UNDEFINED;
    batch_end(&batch, &timing, code, requests, some ? *done : 0, indices, statuses, false);
    return code;
}

/* They complete nothing; programs wait by them all the same. */
COUNTS(Request_get_status, , (request, flag, status), MPI_Request request, int *flag,
       MPI_Status *status)
#ifdef HAS_PMPI_Request_get_status_all
COUNTS(Request_get_status_all, , (count, requests, flag, statuses), int count,
       REQUEST_LIST requests[], int *flag, MPI_Status statuses[])
COUNTS(Request_get_status_any, , (count, requests, index, flag, status), int count,
       REQUEST_LIST requests[], int *index, int *flag, MPI_Status *status)
COUNTS(Request_get_status_some, , (count, requests, done, indices, statuses), int count,
       REQUEST_LIST requests[], int *done, int indices[], MPI_Status statuses[])
#endif

FREES(Request_free, uncounted, MPI_Request, struct request, request_take, request_put_back,
      request_freed)

EXPORT int MPI_Cancel(MPI_Request *request)
{
    bind_mpi();
    int code = PMPI_Cancel(request);
    if (code == MPI_SUCCESS && witness.active)
        request_cancelled(*request);
    return code;
}
