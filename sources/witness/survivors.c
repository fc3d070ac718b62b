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
    if (!at_work)
        return;
    bound_revoke(witness.comm);
    bound_revoke(witness.waits_comm);
    bound_revoke(witness.host_comm);
    longjmp(way_out, 1);
}

/* Open MPI's collectives between hosts (coll/han) call their own parts' errors a success and, before
 * 5.0.11, wait on communicators that nobody revokes: the witness's have others. */
void survivors_idup_world(MPI_Comm *copy, MPI_Request *request)
{
    int *enabled, found = 0;
    MPI_Info hints;
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_FT, &enabled, &found);
    goes_on = found && *enabled;
    if (!goes_on) {
        PMPI_Comm_idup(MPI_COMM_WORLD, copy, request);
        return;
    }
    PMPI_Info_create(&hints);
    PMPI_Info_set(hints, "ompi_comm_coll_preference", "^han");
    PMPI_Comm_idup_with_info(MPI_COMM_WORLD, hints, copy, request);
    PMPI_Info_free(&hints);
}

void survivors_start(void)
{
    MPI_Errhandler handler;
    goes_on = goes_on && PMPI_Comm_create_errhandler(leave, &handler) == MPI_SUCCESS;
    if (!goes_on)
        return;
    PMPI_Comm_set_errhandler(witness.comm, handler);
    PMPI_Comm_set_errhandler(witness.waits_comm, handler);
    PMPI_Comm_set_errhandler(witness.host_comm, handler);
    PMPI_Errhandler_free(&handler);
}

bool survivors_do(void (*part)(void), volatile bool *done)
{
    int nobody = 1;
    if (!goes_on) {
        part();
        return *done;
    }
    at_work = bound_agree(witness.comm, &nobody);
    if (at_work && setjmp(way_out) == 0)
        part();
    at_work = false;
    nobody = !*done;
    bound_agree(witness.comm, &nobody);
    return !nobody;
}

#else

void survivors_idup_world(MPI_Comm *copy, MPI_Request *request)
{
    PMPI_Comm_idup(MPI_COMM_WORLD, copy, request);
}

void survivors_start(void) {}

bool survivors_do(void (*part)(void), volatile bool *done)
{
    part();
    return *done;
}

#endif
