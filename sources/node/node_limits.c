#include "node_limits.h"

#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "abort_job.h"
#include "arrays.h"
#include "vector_kernels.h"

/* Seconds of one measurement. Short enough that some fall between the turns of another process that
 * shares a CPU, long enough for the clock and for the start of the threads. */
static const double WINDOW = 2e-3;

enum {
    FEWEST_REPEATS = 3,
    CHUNK = 16384, /* elements between looks at the clock: some 10 us in memory, 1 us in cache */
    TRIAD_BYTES = 24, /* of an element */
    EXIT_BROKEN = 4,
};

/* Whether there is time for another repeat, on which all ranks agree; they go on together. */
static bool goes_on(MPI_Comm comm, int repeats, double start, double seconds)
{
    int in_time = omp_get_wtime() - start < seconds;
    MPI_Allreduce(MPI_IN_PLACE, &in_time, 1, MPI_INT, MPI_MIN, comm);
    return in_time || repeats < FEWEST_REPEATS;
}

static double sum_over_ranks(MPI_Comm comm, double own)
{
    double sum;
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    return sum;
}

/* Floating-point operations per second of this rank's threads, each in a window of its own. */
static double fma_rate(const struct vector_kernels *kernels)
{
    double rate = 0;
#pragma omp parallel reduction(+ : rate)
    {
        const long iterations = 1000;
        double done = 0, seconds;
#pragma omp barrier
        double start = omp_get_wtime();
        do {
            /* The result is 1, which the compiler does not know. */
            done += (double)iterations * kernels->fma(iterations);
            seconds = omp_get_wtime() - start;
        } while (seconds < WINDOW);
        rate += done * kernels->flops / seconds;
    }
    return rate;
}

double limit_vector(MPI_Comm comm, double seconds)
{
    const struct vector_kernels *kernels = vector_kernels();
    double best = 0, start = omp_get_wtime();
    for (int i = 0; goes_on(comm, i, start, seconds); i++) {
        double rate = fma_rate(kernels);
        best = rate > best ? rate : best;
    }
    return sum_over_ranks(comm, best);
}

/* Elements per second of this rank's threads. Each goes on for a window of time, and not for a
 * number of elements: where memory is shared, a rank or thread that is done would leave its share
 * to the others, and the sum of all would be more than there is. Each begins where it had ended
 * before (`positions`), or what the caches hold of its part would be met again. */
static double triad_rate(const struct arrays *arrays, vector_operate *triad, size_t *positions)
{
    double rate = 0;
#pragma omp parallel reduction(+ : rate)
    {
        struct arrays_part part = arrays_own_part(arrays);
        size_t chunk = part.count < CHUNK ? part.count : CHUNK;
        size_t position = positions[omp_get_thread_num()], done = 0;
        double seconds;
#pragma omp barrier
        double start = omp_get_wtime();
        do {
            for (size_t moved = 0; moved < CHUNK && chunk > 0; moved += chunk) {
                position = position + chunk > part.count ? 0 : position;
                size_t i = part.start + position;
                triad(arrays->a + i, arrays->b + i, arrays->c + i, ARRAYS_SCALE, chunk);
                position += chunk;
                done += chunk;
            }
            seconds = omp_get_wtime() - start;
        } while (seconds < WINDOW);
        positions[omp_get_thread_num()] = position;
        rate += (double)done / seconds;
    }
    return rate;
}

static double triad_best(MPI_Comm comm, const struct arrays *arrays, vector_operate *triad,
                         size_t *positions, double seconds)
{
    double best = 0, start = omp_get_wtime();
    for (int i = 0; goes_on(comm, i, start, seconds); i++) {
        double rate = sum_over_ranks(comm, triad_rate(arrays, triad, positions));
        best = rate > best ? rate : best;
    }
    return best;
}

double limit_triad(MPI_Comm comm, size_t bytes_on_this_rank, double seconds)
{
    const struct vector_kernels *kernels = vector_kernels();
    size_t elements = bytes_on_this_rank / TRIAD_BYTES;
    size_t *positions = calloc((size_t)omp_get_max_threads(), sizeof *positions);
    struct arrays arrays;
    if (!positions || !arrays_take(&arrays, elements)) {
        fprintf(stderr,
                "limit_triad: cannot allocate %zu bytes; use a smaller problem or fewer "
                "ranks per host\n",
                arrays_bytes(elements));
        abort_job(comm, EXIT_BROKEN);
    }
    double best = triad_best(comm, &arrays, kernels->normal[VECTOR_TRIAD], positions, seconds / 2);
    /* All ranks have them or none: the kinds of stores belong to the architecture. */
    if (kernels->streaming[VECTOR_TRIAD]) {
        double streaming =
            triad_best(comm, &arrays, kernels->streaming[VECTOR_TRIAD], positions, seconds / 2);
        best = streaming > best ? streaming : best;
    }
    arrays_return(&arrays);
    free(positions);
    return best * TRIAD_BYTES;
}
