#include "rest.h"

#include <time.h>

void rest_until_all(MPI_Comm comm)
{
    enum { SHORTEST = 10000, LONGEST = 1000000 }; /* ns */
    struct timespec nap = { .tv_nsec = SHORTEST };
    MPI_Request request;
    int done;
    MPI_Ibarrier(comm, &request);
    for (;;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done)
            return;
        nanosleep(&nap, NULL);
        nap.tv_nsec = nap.tv_nsec < LONGEST / 2 ? 2 * nap.tv_nsec : LONGEST;
    }
}
