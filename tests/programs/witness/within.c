/* Computes, then calls MPI_Comm_dup, which calls MPI itself: a callback copies an attribute. */
#define _GNU_SOURCE
#include <mpi.h>
#include <unistd.h>

enum { TIMES = 3, COMPUTED_US = 20000 };

static int copy(MPI_Comm comm, int key, void *extra, void *value, void *copied, int *is_kept)
{
    (void)comm, (void)key, (void)extra, (void)value, (void)copied;
    *is_kept = 0;
    return MPI_Barrier(MPI_COMM_SELF);
}

int main(int argc, char **argv)
{
    int key;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
    for (int i = 0; i < TIMES; i++) {
        MPI_Comm copied;
        usleep(COMPUTED_US);
        MPI_Comm_dup(MPI_COMM_WORLD, &copied);
        MPI_Comm_free(&copied);
    }
    return MPI_Finalize();
}
