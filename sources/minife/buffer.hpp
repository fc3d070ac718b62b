// Memory that nobody has touched yet: its pages land with the thread that writes them first.
#ifndef MINIFE_BUFFER_HPP
#define MINIFE_BUFFER_HPP

#include <sys/mman.h>

#include <cstddef>
#include <utility>

#include "application.hpp"

namespace minife {

template <typename T>
class Buffer {
public:
    Buffer() = default;
    explicit Buffer(std::size_t count) : bytes(count * sizeof(T))
    {
        if (bytes == 0)
            return;
        void *memory =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            assay::fail("cannot allocate %zu bytes; use a smaller mesh", bytes);
        madvise(memory, bytes, MADV_HUGEPAGE); // fewer address translations, where there are any
        start = static_cast<T *>(memory);
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    Buffer(Buffer &&other) noexcept { *this = std::move(other); }
    Buffer &operator=(Buffer &&other) noexcept
    {
        std::swap(start, other.start);
        std::swap(bytes, other.bytes);
        return *this;
    }
    ~Buffer()
    {
        if (start)
            munmap(start, bytes);
    }

    T *data() { return start; }
    const T *data() const { return start; }
    T &operator[](std::size_t i) { return start[i]; }
    const T &operator[](std::size_t i) const { return start[i]; }
    std::size_t size() const { return bytes / sizeof(T); }

private:
    T *start = nullptr;
    std::size_t bytes = 0;
};

} // namespace minife

#endif
