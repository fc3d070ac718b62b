#include "node_limits.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "abort_job.h"
#include "arrays.h"
#include "two_clocks.h"
#include "vector_kernels.h"
#include "windows.h"

/* Seconds of one measurement. Short enough that some fall between the turns of another process that
 * shares a CPU, long enough for the clock and for the start of the threads. */
static const double WINDOW = 2e-3;

/* Of a thread's part of the triad's arrays. Some ten times the last-level cache that a core has. */
static const double MOST_BYTES = 128.0 * 1024 * 1024;

enum {
    MOST_WINDOWS = 64, /* of one call */
    CHUNK = 16384, /* elements between looks at the clock: some 10 us in memory, 1 us in cache */
    TRIAD_BYTES = 24, /* of an element */
    EXIT_BROKEN = 4,
};

static double sum_over_ranks(MPI_Comm comm, double own)
{
    double sum;
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    return sum;
}

/* What this rank's threads did in a second of a window, each by its own time; and all of them together
 * by a longer one, the system's. */
struct window {
    double rate, least;
};

/* Floating-point operations, each thread in a window of its own. */
static struct window fma_window(const struct vector_kernels *kernels)
{
    double rate = 0, work = 0, began = two_clocks_system();
#pragma omp parallel reduction(+ : rate, work)
    {
        const long iterations = 1000;
        double done = 0, seconds;
#pragma omp barrier
        double start = omp_get_wtime();
        do {
            /* The result is 1, which the compiler does not know. */
            done += kernels->fma(iterations);
            work += (double)iterations * kernels->flops;
            seconds = omp_get_wtime() - start;
        } while (seconds < WINDOW);
        rate += done * kernels->flops / seconds;
    }
    return (struct window){ rate, work / (two_clocks_system() - began + omp_get_wtick()) };
}

struct limit limit_vector(MPI_Comm comm, int windows)
{
    const struct vector_kernels *kernels = vector_kernels();
    double seconds[MOST_WINDOWS], longer[MOST_WINDOWS]; /* of an operation */
    windows = windows < MOST_WINDOWS ? windows : MOST_WINDOWS;
    for (int i = 0; i < windows; i++) {
        MPI_Barrier(comm);
        struct window window = fma_window(kernels);
        seconds[i] = 1 / window.rate;
        longer[i] = 1 / window.least;
    }
    struct limit limit = { .least = 1 / windows_best(longer, windows) };
    limit.rate = sum_over_ranks(comm, 1 / windows_best(seconds, windows));
    /* Not by the function that the rate rests on. */
    MPI_Allreduce(MPI_IN_PLACE, &limit.least, 1, MPI_DOUBLE, MPI_SUM, comm);
    return limit;
}

/* Elements, and bytes by the longer time. Each thread goes on for a window of time, and not for a
 * number of elements: where memory is shared, a rank or thread that is done would leave its share
 * to the others, and the sum of all would be more than there is. Each begins where it had ended
 * before (`positions`), or what the caches hold of its part would be met again. */
static struct window triad_window(const struct arrays *arrays, vector_operate *triad,
                                  size_t *positions)
{
    const size_t element = sizeof *arrays->a + sizeof *arrays->b + sizeof *arrays->c;
    double rate = 0, bytes = 0, began = two_clocks_system();
#pragma omp parallel reduction(+ : rate, bytes)
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
                done += triad(arrays->a + i, arrays->b + i, arrays->c + i, ARRAYS_SCALE, chunk);
                position += chunk;
            }
            seconds = omp_get_wtime() - start;
        } while (seconds < WINDOW);
        positions[omp_get_thread_num()] = position;
        rate += (double)done / seconds;
        bytes += (double)(done * element);
    }
    return (struct window){ rate, bytes / (two_clocks_system() - began + omp_get_wtick()) };
}

double limit_triad_bytes(double working_set)
{
    double most = MOST_BYTES * omp_get_max_threads();
    return working_set < most ? working_set : most;
}

struct triad_limit {
    MPI_Comm comm;
    struct arrays arrays;
    size_t positions[]; /* of each thread */
};

struct triad_limit *limit_triad_make(MPI_Comm comm, double bytes_on_this_rank)
{
    size_t elements = (size_t)(bytes_on_this_rank / TRIAD_BYTES);
    size_t threads = (size_t)omp_get_max_threads();
    struct triad_limit *limit = calloc(1, sizeof *limit + threads * sizeof *limit->positions);
    if (!limit || !arrays_take(&limit->arrays, elements)) {
        fprintf(stderr,
                "limit_triad: cannot allocate %zu bytes; use a smaller problem or fewer "
                "ranks per host\n",
                arrays_bytes(elements));
        abort_job(comm, EXIT_BROKEN);
    }
    limit->comm = comm;
    return limit;
}

struct limit limit_triad(struct triad_limit *limit, int windows)
{
    const struct vector_kernels *kernels = vector_kernels();
    vector_operate *normal = kernels->normal[VECTOR_TRIAD];
    vector_operate *streaming = kernels->streaming[VECTOR_TRIAD];
    double seconds[MOST_WINDOWS], longer[MOST_WINDOWS]; /* of an element, and of a byte */
    double least[MOST_WINDOWS];
    windows = windows < MOST_WINDOWS ? windows : MOST_WINDOWS;
    for (int i = 0; i < windows; i++) {
        /* Both kinds in turn: which is faster depends on the size. All ranks have both or one, as
         * the kinds of stores belong to the architecture. */
        vector_operate *triad = streaming && i % 2 ? streaming : normal;
        struct window own = triad_window(&limit->arrays, triad, limit->positions);
        seconds[i] = 1 / sum_over_ranks(limit->comm, own.rate);
        least[i] = own.least;
    }
    MPI_Allreduce(MPI_IN_PLACE, least, windows, MPI_DOUBLE, MPI_SUM, limit->comm);
    for (int i = 0; i < windows; i++)
        longer[i] = 1 / least[i];
    return (struct limit){ .rate = TRIAD_BYTES / windows_best(seconds, windows),
                           .least = 1 / windows_best(longer, windows) };
}

void limit_triad_free(struct triad_limit *limit)
{
    arrays_return(&limit->arrays);
    free(limit);
}
