// The innermost loops: rows of points along x, which lie next to each other in memory.
//
// A new row is made in a place of its own in the first cache, in whole vectors, and goes from there
// to the grid: so the points beyond its end are left alone, and it can be streamed.
#ifndef MINIGHOST_ROWS_HPP
#define MINIGHOST_ROWS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lanes.hpp"

namespace minighost {

inline double row_sum(const double *row, int n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int x = 0; x < n; x++)
        sum += row[x];
    return sum;
}

// How results are written: past the caches, if the grids do not fit into them.
enum class Stores { NORMAL, STREAMING };

// Brings a row from `from` to `to`, which starts at a cache line; returns its sum.
inline double put_row(const double *from, double *to, int n, Stores stores)
{
    // Several sums, as each addition waits for the one before it.
    constexpr int SUMS = 2 * LINE / LANES;
    Lanes sums[SUMS] = {};
    int x = 0;
    for (; x + 2 * LINE <= n; x += 2 * LINE) {
        for (int i = 0; i < SUMS; i++) {
            Lanes lanes = load(from + x + i * LANES);
            sums[i] += lanes;
            if (stores == Stores::STREAMING)
                stream(to + x + i * LANES, lanes);
            else
                store(to + x + i * LANES, lanes);
        }
    }
    double sum = row_sum(from + x, n - x);
    for (int i = 0; i < SUMS; i++)
        for (int lane = 0; lane < LANES; lane++)
            sum += sums[i][lane];
    std::copy(from + x, from + n, to + x);
    return sum;
}

// Asks for a row that is needed a few rows from now: the hardware does not foresee, as it loads
// three planes side by side, which of them is not yet in a cache.
inline void prefetch_row(const double *row, int n)
{
    for (int x = 0; x < n; x += LINE)
        __builtin_prefetch(row + x);
}

class Rows {
public:
    Rows(std::vector<double> &memory, int n) : n_(n)
    {
        std::ptrdiff_t length = (n + LINE - 1) / LINE * LINE;
        memory.resize(4 * length + LINE);
        auto past_line = reinterpret_cast<std::uintptr_t>(memory.data()) / sizeof(double) % LINE;
        result_ = memory.data() + (LINE - past_line) % LINE;
        for (int i = 0; i < 3; i++)
            sums_[i] = result_ + (i + 1) * length;
    }

    // The last row that was made.
    const double *result() const { return result_; }

    // 5 points (one plane) or 7 (three): the point and its neighbours along the axes. `from` is
    // where the points of the row start.
    template <int PLANES>
    void cross(const double *from, std::ptrdiff_t row, std::ptrdiff_t plane, double weight)
    {
        const double *south = from - row, *north = from + row;
        const double *back = from - plane, *front = from + plane;
        Lanes before = load(from - LANES), here = load(from);
        for (int x = 0; x < n_; x += LANES) {
            Lanes after = load(from + x + LANES);
            Lanes sum = (from_west(before, here) + from_east(here, after)) +
                        (load(south + x) + load(north + x)) + here;
            if (PLANES == 3)
                sum += load(back + x) + load(front + x);
            store(result_ + x, sum * weight);
            before = here;
            here = after;
        }
    }

    // 9 points (one plane) or 27 (three). Of each row the sums over x and z are kept until the two
    // rows north of it are done: 6 additions a point in place of 26. First come two rows that make
    // no result; then the result is of the row before the one that starts at `from`.
    template <int PLANES> void square(const double *from, std::ptrdiff_t plane, double weight)
    {
        const double *south = sums_[0], *middle = sums_[1];
        double *north = sums_[2];
        Lanes before = column<PLANES>(from - LANES, plane), here = column<PLANES>(from, plane);
        for (int x = 0; x < n_; x += LANES) {
            Lanes after = column<PLANES>(from + x + LANES, plane);
            Lanes sum = (from_west(before, here) + from_east(here, after)) + here;
            store(result_ + x, ((load(south + x) + load(middle + x)) + sum) * weight);
            store(north + x, sum);
            before = here;
            here = after;
        }
        std::rotate(sums_, sums_ + 1, sums_ + 3);
    }

private:
    template <int PLANES> static Lanes column(const double *from, std::ptrdiff_t plane)
    {
        if (PLANES == 1)
            return load(from);
        return (load(from - plane) + load(from + plane)) + load(from);
    }

    int n_;
    double *result_, *sums_[3];
};

} // namespace minighost

#endif
