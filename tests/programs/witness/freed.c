/* A thread sends in communicators that the main thread makes and frees, one after the other.
 *
 *     freed ROUNDS */
#include "known.h"

#include <pthread.h>

static MPI_Comm comm;
static pthread_barrier_t turn;
static int rounds;

static void *work(void *nothing)
{
    int other = 1 - rank, in;
    for (int i = 0; i < rounds; i++) {
        pthread_barrier_wait(&turn);
        MPI_Sendrecv(&rank, 1, MPI_INT, other, 0, &in, 1, MPI_INT, other, 0, comm,
                     MPI_STATUS_IGNORE);
        check(in == other, "MPI_Sendrecv in a new communicator");
        pthread_barrier_wait(&turn);
    }
    return nothing;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    rounds = argc > 1 ? atoi(argv[1]) : 1;
    pthread_barrier_init(&turn, NULL, 2);
    pthread_create(&thread, NULL, work, NULL);
    for (int i = 0; i < rounds; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
        MPI_Comm_free(&comm);
    }
    pthread_join(thread, NULL);
    MPI_Finalize();
    return 0;
}
