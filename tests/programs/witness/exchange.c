/* Ranks pass 16 MiB to the next, after each of their threads had 0.2 s of CPU time.
 *
 *     exchange [THREADS [MIB]]     more threads than OMP_NUM_THREADS says, and another size */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <omp.h>
#include <stdlib.h>
#include <time.h>

/* CPU time of the thread: however busy the machine is, each gets it. */
static double used(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
    enum { BYTES = 1 << 20 };
    const int times = argc > 2 ? atoi(argv[2]) : 16;
    int rank, ranks, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1)
        omp_set_num_threads(atoi(argv[1]));
    char *out = calloc(2, BYTES), *in = out + BYTES;
#pragma omp parallel
    for (double start = used(); used() - start < 0.2;)
        ;
    for (int i = 0; i < times; i++)
        MPI_Sendrecv(out, BYTES, MPI_CHAR, (rank + 1) % ranks, 0, in, BYTES, MPI_CHAR,
                     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(out);
    MPI_Finalize();
    return 0;
}
