#include "silence.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "wrap.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool has_own; /* the program has set a handler of its own */

/* Not one of MPI's, which may not be freed, and which the witness needs no silence from: they end the
 * program when its own call fails, and that is before the witness looks at it. */
static bool is_own(MPI_Errhandler handler)
{
#ifdef MPI_ERRORS_ABORT
    if (handler == MPI_ERRORS_ABORT)
        return false;
#endif
    return handler != MPI_ERRORS_ARE_FATAL && handler != MPI_ERRORS_RETURN;
}

static MPI_Errhandler set_aside(MPI_Comm comm)
{
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    if (PMPI_Comm_get_errhandler(comm, &handler) == MPI_SUCCESS)
        PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return handler;
}

static void release(MPI_Errhandler handler)
{
    if (is_own(handler))
        PMPI_Errhandler_free(&handler);
}

static void put_back(MPI_Comm comm, MPI_Errhandler handler)
{
    MPI_Errhandler now;
    if (handler == MPI_ERRHANDLER_NULL || PMPI_Comm_get_errhandler(comm, &now) != MPI_SUCCESS)
        return;
    if (now == MPI_ERRORS_RETURN) /* else another thread of the program has set one meanwhile */
        PMPI_Comm_set_errhandler(comm, handler);
    release(now);
    release(handler);
}

struct silence silence_begin(void)
{
    struct silence silence = { .kept = false };
    if (!atomic_load_explicit(&has_own, memory_order_relaxed))
        return silence;
    pthread_mutex_lock(&lock);
    silence.kept = true;
    /* Of no communicator, MPI tells one of these. */
    silence.world = set_aside(MPI_COMM_WORLD);
    silence.self = set_aside(MPI_COMM_SELF);
    return silence;
}

void silence_end(struct silence *silence)
{
    if (!silence->kept)
        return;
    put_back(MPI_COMM_WORLD, silence->world);
    put_back(MPI_COMM_SELF, silence->self);
    pthread_mutex_unlock(&lock);
}

static const int of_writing[] = { SIGPIPE, SIGXFSZ };
enum { OF_WRITING = sizeof of_writing / sizeof *of_writing };

struct apart apart_begin(void)
{
    struct apart apart;
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < OF_WRITING; i++)
        sigaddset(&set, of_writing[i]);
    sigpending(&apart.pending);
    pthread_sigmask(SIG_BLOCK, &set, &apart.signals);
    feholdexcept(&apart.floats);
    return apart;
}

void apart_end(const struct apart *apart)
{
    fesetenv(&apart->floats);
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < OF_WRITING; i++)
        if (!sigismember(&apart->pending, of_writing[i]))
            sigaddset(&set, of_writing[i]);
    while (sigtimedwait(&set, NULL, &(struct timespec){ 0 }) > 0)
        ;
    pthread_sigmask(SIG_SETMASK, &apart->signals, NULL);
}

EXPORT int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
    bind_mpi();
    if (is_own(handler))
        atomic_store(&has_own, true);
    return PMPI_Comm_set_errhandler(comm, handler);
}

/* Its name in MPI 1, which MPICH still has. */
#if defined HAS_PMPI_Errhandler_set && !defined OPEN_MPI
EXPORT int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler handler)
{
    return MPI_Comm_set_errhandler(comm, handler);
}
#endif
