#include "stencil.hpp"

#include <omp.h>

#include <algorithm>

#include "application.hpp"

namespace minighost {

namespace {

// Of the planes that a block of rows keeps in a core's own cache until the next plane needs them.
constexpr std::ptrdiff_t BLOCK_BYTES = 256 * 1024;
constexpr int FEWEST_ROWS = 16;
// How far ahead memory is asked for rows.
constexpr std::ptrdiff_t PREFETCH_BYTES = 10 * 1024;

// What a stencil is: its points, and how many of them lie outside the mesh for a point that has
// `x`, `y` and `z` places inside the mesh (itself and its two neighbours) in each direction.
struct Points5 {
    static constexpr int POINTS = 5, PLANES = 1;
    static constexpr bool HAS_DIAGONALS = false;
    static constexpr int outside(int x, int y, int) { return 6 - x - y; }
};

struct Points7 {
    static constexpr int POINTS = 7, PLANES = 3;
    static constexpr bool HAS_DIAGONALS = false;
    static constexpr int outside(int x, int y, int z) { return 9 - x - y - z; }
};

struct Points9 {
    static constexpr int POINTS = 9, PLANES = 1;
    static constexpr bool HAS_DIAGONALS = true;
    static constexpr int outside(int x, int y, int) { return 9 - x * y; }
};

struct Points27 {
    static constexpr int POINTS = 27, PLANES = 3;
    static constexpr bool HAS_DIAGONALS = true;
    static constexpr int outside(int x, int y, int z) { return 27 - x * y * z; }
};

} // namespace

int points_of(int stencil)
{
    switch (stencil) {
    case STENCIL_2D5PT:
        return Points5::POINTS;
    case STENCIL_2D9PT:
        return Points9::POINTS;
    case STENCIL_3D7PT:
        return Points7::POINTS;
    default:
        return Points27::POINTS;
    }
}

double mode_factor(int stencil, double cos_a, double cos_b, double cos_c)
{
    double x = 2 * cos_a, y = 2 * cos_b, z = 2 * cos_c;
    switch (stencil) {
    case STENCIL_2D5PT:
        return (1 + x + y) / 5;
    case STENCIL_2D9PT:
        return (1 + x) * (1 + y) / 9;
    case STENCIL_3D7PT:
        return (1 + x + y + z) / 7;
    default:
        return (1 + x) * (1 + y) * (1 + z) / 27;
    }
}

Stencil::Stencil(int kind, const Domain &domain, const Layout &layout)
    : kind_(kind), layout_(layout), scratch_(omp_get_max_threads()), heat_(omp_get_max_threads())
{
    for (int d = 0; d < 3; d++) {
        low_[d] = domain.is_at(d, LOW);
        high_[d] = domain.is_at(d, HIGH);
    }
}

bool Stencil::can_stream()
{
    return CAN_STREAM;
}

Heat Stencil::apply(const double *in, double *out, Stores stores)
{
    switch (kind_) {
    case STENCIL_2D5PT:
        return sweep<Points5>(in, out, stores);
    case STENCIL_2D9PT:
        return sweep<Points9>(in, out, stores);
    case STENCIL_3D7PT:
        return sweep<Points7>(in, out, stores);
    default:
        return sweep<Points27>(in, out, stores);
    }
}

template <class Kind> Heat Stencil::sweep(const double *in, double *out, Stores stores)
{
    int threads = 1;
#pragma omp parallel
    {
        int thread = omp_get_thread_num();
#pragma omp master
        threads = omp_get_num_threads();
        Share share = share_of(layout_, thread, omp_get_num_threads());
        heat_[thread] = sweep_share<Kind>(in, out, stores, share, scratch_[thread]);
    }
    Heat heat; // added up in a fixed order: the same digits in each run
    for (int thread = 0; thread < threads; thread++) {
        heat.sum += heat_[thread].sum;
        heat.flux += heat_[thread].flux;
    }
    assay::ran();
    return heat;
}

template <class Kind>
Heat Stencil::sweep_share(const double *in, double *out, Stores stores, const Share &share,
                          std::vector<double> &scratch) const
{
    const int n = layout_.n[0];
    const std::ptrdiff_t row = layout_.row, plane = layout_.plane;
    const double weight = 1.0 / Kind::POINTS;
    Rows rows(scratch, n);
    Heat heat;
    const std::ptrdiff_t row_bytes = row * std::ptrdiff_t{ sizeof(double) };
    const std::ptrdiff_t fitting = BLOCK_BYTES / (Kind::PLANES * row_bytes);
    const int block = std::max(FEWEST_ROWS, static_cast<int>(fitting));
    const std::ptrdiff_t ahead = (PREFETCH_BYTES / row_bytes + 1) * row;
    for (int y0 = share.y0; y0 < share.y1; y0 += block)
        for (int z = share.z0; z < share.z1; z++) {
            int y1 = std::min(y0 + block, share.y1);
            const double *from = in + z * plane + y0 * row + 1;
            double *to = out + z * plane + y0 * row + 1;
            if (Kind::HAS_DIAGONALS) {
                rows.square<Kind::PLANES>(from - row, plane, weight);
                rows.square<Kind::PLANES>(from, plane, weight);
            }
            for (int y = y0; y < y1; y++, from += row, to += row) {
                prefetch_row(from + (Kind::PLANES == 3 ? plane : 0) + ahead, n);
                if (Kind::HAS_DIAGONALS)
                    rows.square<Kind::PLANES>(from + row, plane, weight);
                else
                    rows.cross<Kind::PLANES>(from, row, plane, weight);
                heat.sum += put_row(rows.result(), to, n, stores);
                heat.flux += weight * row_flux<Kind>(from, y, z);
            }
        }
    if (stores == Stores::STREAMING)
        end_streaming();
    return heat;
}

// What a row of points gives to places outside the mesh: a place gets as much as it would if it
// were a point. Times the number of the stencil's points.
template <class Kind> double Stencil::row_flux(const double *row, int y, int z) const
{
    const int n = layout_.n[0];
    int in_y = 3 - (low_[1] && y == 1) - (high_[1] && y == layout_.n[1]);
    int in_z = 3 - (low_[2] && z == 1) - (high_[2] && z == layout_.n[2]);
    int all = Kind::outside(3, in_y, in_z);
    double flux = 0;
    if (all)
        flux = all * row_sum(row, n);
    if (low_[0] && high_[0] && n == 1)
        return flux + (Kind::outside(1, in_y, in_z) - all) * row[0];
    int at_end = Kind::outside(2, in_y, in_z) - all;
    if (low_[0])
        flux += at_end * row[0];
    if (high_[0])
        flux += at_end * row[n - 1];
    return flux;
}

} // namespace minighost
