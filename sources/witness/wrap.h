/* How a wrapper is written.
 *
 * Only the wrappers are visible outside the library. Where an MPI has them, LARGE holds the forms
 * with MPI_Count, which are the same but for the type of the counts. */
#ifndef ASSAY_WRAP_H
#define ASSAY_WRAP_H

#include "record.h"

#define EXPORT __attribute__((visibility("default")))

#if MPI_VERSION >= 4
#define LARGE(...) __VA_ARGS__
#else
#define LARGE(...)
#endif

/* A call, and what is recorded of it if it succeeded. */
#define RECORDS(name, suffix, record, arguments, ...)   \
    EXPORT int MPI_##name##suffix(__VA_ARGS__)          \
    {                                                   \
        struct timing timing = call_begin(CALL_##name); \
        int code = PMPI_##name##suffix arguments;       \
        call_end(&timing);                              \
        if (code == MPI_SUCCESS && timing.thread)       \
            record;                                     \
        return code;                                    \
    }

/* One of which no more is known than how often it came and how long it took. */
#define COUNTS(name, suffix, ...) RECORDS(name, suffix, (void)0, __VA_ARGS__)

/* A call that frees what a handle stands for, `counted` or `uncounted`. Before it returns another thread
 * may be given the same handle: so the handle is forgotten before the call, and what it stood for is
 * put back if the call failed. */
#define FREES(name, is_counted, handle_t, taken_t, take, put_back, freed) \
    EXPORT int MPI_##name(handle_t *handle)                               \
    {                                                                     \
        BEGIN_##is_counted(name);                                         \
        taken_t *taken = witness.active && handle ? take(*handle) : NULL; \
        int code = PMPI_##name(handle);                                   \
        END_##is_counted();                                               \
        if (taken && code == MPI_SUCCESS)                                 \
            freed(taken);                                                 \
        else if (taken)                                                   \
            put_back(*handle, taken);                                     \
        return code;                                                      \
    }
#define BEGIN_counted(name) struct timing timing = call_begin(CALL_##name)
#define END_counted() call_end(&timing)
#define BEGIN_uncounted(name) bind_mpi()
#define END_uncounted()

#endif
