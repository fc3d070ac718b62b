// Memory for doubles that nobody has touched, so that its pages come to lie near who uses them.
#ifndef HPL_BUFFER_HPP
#define HPL_BUFFER_HPP

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "application.hpp"

namespace hpl {

// Rows of a column-major matrix are far apart: with small pages, interchanging them would miss the
// cache of address translations at every element.
constexpr std::size_t HUGE_PAGE = 1 << 21, CACHE_LINE = 64;

class Buffer {
public:
    Buffer() = default;

    explicit Buffer(std::size_t doubles)
    {
        std::size_t bytes = doubles * sizeof(double);
        std::size_t unit = bytes < HUGE_PAGE ? CACHE_LINE : HUGE_PAGE;
        bytes = (bytes + unit - 1) / unit * unit;
        memory.reset(static_cast<double *>(std::aligned_alloc(unit, bytes == 0 ? unit : bytes)));
        if (!memory)
            assay::fail("no memory for %zu bytes; use a smaller N", bytes);
        if (unit == HUGE_PAGE)
            madvise(memory.get(), bytes, MADV_HUGEPAGE); // a wish
    }

    double *data() const { return memory.get(); }

private:
    struct Free {
        void operator()(double *pointer) const { std::free(pointer); }
    };
    std::unique_ptr<double[], Free> memory;
};

// Whole cache lines, and an odd number of them: columns that are a power of two apart would all
// compete for the same few lines of a cache.
inline int leading_dimension(int rows)
{
    constexpr int LINE = CACHE_LINE / sizeof(double);
    int lines = (rows + LINE - 1) / LINE;
    return (lines | 1) * LINE;
}

} // namespace hpl

#endif
