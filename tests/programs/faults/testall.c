/* A fault: MPI_Testall as a broken MPI may have it.
 *
 * TESTALL=hangs: no request is ever done. TESTALL=aborts: the rank ends by a signal. TESTALL=wrong: it
 * returns an error although all is well. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    const char *kind = getenv("TESTALL");
    if (kind && strcmp(kind, "aborts") == 0)
        abort();
    *flag = 0;
    if (kind && strcmp(kind, "hangs") == 0)
        return MPI_SUCCESS;
    int code = PMPI_Testall(count, requests, flag, statuses);
    return kind && strcmp(kind, "wrong") == 0 ? MPI_ERR_IN_STATUS : code;
}
