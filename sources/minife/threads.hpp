// The part of a loop that a thread has: the same in every loop, so that each finds its own data.
#ifndef MINIFE_THREADS_HPP
#define MINIFE_THREADS_HPP

#include <omp.h>

#include <cstdint>

namespace minife {

struct Part {
    std::int64_t begin, end;
};

// In a parallel region.
inline Part own_part(std::int64_t count)
{
    std::int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    return { count * thread / threads, count * (thread + 1) / threads };
}

} // namespace minife

#endif
