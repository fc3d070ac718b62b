/* A window of a rank's own memory. MPI_Win_create is fatal where it fails. */
#include "defects.h"

bool create_window(int rank, int ranks)
{
    int memory = -1;
    MPI_Win window;
    (void)rank, (void)ranks;
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_free(&window);
    return false;
}
