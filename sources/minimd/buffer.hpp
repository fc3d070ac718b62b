// An aligned array that grows. Its values are not set, so that the threads which use them touch
// them first.
#ifndef MINIMD_BUFFER_HPP
#define MINIMD_BUFFER_HPP

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace minimd {

template <typename T>
class Buffer {
public:
    Buffer() = default;
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    Buffer(Buffer &&other) noexcept { swap(other); }
    Buffer &operator=(Buffer &&other) noexcept
    {
        swap(other);
        return *this;
    }
    ~Buffer() { std::free(values); }

    T *data() { return values; }
    const T *data() const { return values; }
    T &operator[](std::size_t i) { return values[i]; }
    const T &operator[](std::size_t i) const { return values[i]; }
    std::size_t capacity() const { return room; }

    // Room for that many values; the first `kept` stay.
    void reserve(std::size_t wanted, std::size_t kept = 0)
    {
        if (wanted <= room)
            return;
        std::size_t larger = std::max(wanted, room + room / 2);
        std::size_t bytes = (larger * sizeof(T) + 63) / 64 * 64;
        auto *fresh = static_cast<T *>(std::aligned_alloc(64, bytes));
        if (!fresh)
            throw std::bad_alloc();
        if (kept)
            std::memcpy(fresh, values, kept * sizeof(T));
        std::free(values);
        values = fresh;
        room = larger;
    }

    void swap(Buffer &other) noexcept
    {
        std::swap(values, other.values);
        std::swap(room, other.room);
    }

private:
    T *values = nullptr;
    std::size_t room = 0;
};

} // namespace minimd

#endif
