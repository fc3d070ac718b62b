#include "arrays.h"

#include <omp.h>
#include <sys/mman.h>

/* Bytes between arrays. Where two lie at the same place of their pages they compete for the same
 * lines of the first cache, and a load behind a store to such an address waits for it. */
enum { SKEW = 1024 + 64 };

size_t arrays_bytes(size_t elements)
{
    return 3 * (elements * sizeof(double) + SKEW);
}

struct arrays_part arrays_own_part(const struct arrays *arrays)
{
    size_t lines = arrays->elements / VECTOR_LINE;
    size_t thread = (size_t)omp_get_thread_num(), threads = (size_t)omp_get_num_threads();
    size_t start = lines * thread / threads, end = lines * (thread + 1) / threads;
    return (struct arrays_part){ start * VECTOR_LINE, (end - start) * VECTOR_LINE };
}

bool arrays_take(struct arrays *arrays, size_t elements)
{
    size_t least = (size_t)omp_get_max_threads() * VECTOR_LINE;
    elements = elements / VECTOR_LINE * VECTOR_LINE;
    elements = elements > least ? elements : least;
    size_t bytes = arrays_bytes(elements);

    /* Not malloc, which may give memory that has been touched before. In huge pages where the
     * system gives them to those that ask: a limit is that of the memory, not of the translation
     * of addresses. */
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    madvise(memory, bytes, MADV_HUGEPAGE);

    size_t stride = elements + SKEW / sizeof(double);
    double *a = memory, *b = a + stride, *c = b + stride;
    *arrays = (struct arrays){ a, b, c, elements, memory, bytes };
#pragma omp parallel
    {
        struct arrays_part part = arrays_own_part(arrays);
        for (size_t i = part.start; i < part.start + part.count; i++) {
            a[i] = arrays_start(i);
            b[i] = -1;
            c[i] = -2;
        }
    }
    return true;
}

void arrays_return(struct arrays *arrays)
{
    munmap(arrays->memory, arrays->bytes);
    *arrays = (struct arrays){ .a = NULL };
}

/* No barrier between passes: each thread comes back to its own part, so that small arrays are
 * measured without the cost of one. */
struct two_clocks arrays_run(const struct arrays *arrays, vector_operate *const *operations,
                             enum vector_operation operation, long passes)
{
    double *a = arrays->a, *b = arrays->b, *c = arrays->c;
    double *to = operation == VECTOR_SCALE ? b : operation == VECTOR_TRIAD ? a : c;
    const double *from = operation == VECTOR_SCALE ? c : operation == VECTOR_TRIAD ? b : a;
    const double *other = operation == VECTOR_TRIAD ? c : b;
    vector_operate *operate = operations[operation];
    double slowest = 0, least = 0, most = 0, made = 0;
    long threads = 0;
    size_t elements = 0;
#pragma omp parallel reduction(max : slowest, least, most) reduction(+ : made, threads, elements)
    {
        struct arrays_part part = arrays_own_part(arrays);
#pragma omp barrier
        struct instant start = two_clocks_now();
        size_t written = 0;
        for (long pass = 0; pass < passes; pass++) {
            written += operate(to + part.start, from + part.start, other + part.start, ARRAYS_SCALE,
                               part.count);
            two_clocks_operation();
        }
        struct two_clocks took = two_clocks_between(start, two_clocks_now());
        slowest = took.seconds;
        least = took.least;
        most = took.most;
        made = took.made;
        threads = 1;
        elements = written;
    }
    bool whole = made == (double)(passes * threads) &&
                 elements == (size_t)passes * arrays->elements;
    return (struct two_clocks){ .seconds = whole ? slowest : -1, .least = least, .most = most };
}
