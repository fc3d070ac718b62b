#include "survivors.h"

#include <setjmp.h>

#include "witness.h"

#if defined OPEN_MPI && OMPI_MAJOR_VERSION >= 5

static bool goes_on, at_work;
static jmp_buf way_out;

/* Some ranks may have had all they need of the one that died, and wait for those that have not. Once
 * the communicators are revoked no call on them waits, on any rank. From here, and not by an error
 * code: what a failed call was to bring is nothing to go on with. */
static void leave(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    bound_revoke(witness.comm);
    bound_revoke(witness.waits_comm);
    bound_revoke(witness.host_comm);
    if (at_work)
        longjmp(way_out, 1);
}

void survivors_start(void)
{
    int *enabled, found = 0;
    MPI_Errhandler handler;
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_FT, &enabled, &found);
    goes_on = found && *enabled && PMPI_Comm_create_errhandler(leave, &handler) == MPI_SUCCESS;
    if (!goes_on)
        return;
    PMPI_Comm_set_errhandler(witness.comm, handler);
    PMPI_Comm_set_errhandler(witness.waits_comm, handler);
    PMPI_Comm_set_errhandler(witness.host_comm, handler);
    PMPI_Errhandler_free(&handler);
}

bool survivors_do(void (*part)(void), volatile bool *done)
{
    at_work = goes_on;
    if (setjmp(way_out) == 0)
        part();
    at_work = false;
    return goes_on ? !bound_agree(witness.comm, !*done) : *done;
}

#else

void survivors_start(void) {}

bool survivors_do(void (*part)(void), volatile bool *done)
{
    part();
    return *done;
}

#endif
