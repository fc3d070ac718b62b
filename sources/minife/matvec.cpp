#include "matvec.hpp"

#include <cstring>

#include "application.hpp"
#include "threads.hpp"

namespace minife {

namespace {

// Sums of four products each: vectors, as the elements of x have to be collected one by one anyway and
// the compilers' own way to do so, an instruction that gathers, is the slower one.
enum { WIDTH = 4 };
typedef double Quad __attribute__((vector_size(WIDTH * sizeof(double))));

inline void add_products(Quad &sum, const double *value, const int *column, const double *x)
{
    Quad values;
    std::memcpy(&values, value, sizeof values);
    Quad collected = { x[column[0]], x[column[1]], x[column[2]], x[column[3]] };
    sum += values * collected;
}

// How far ahead the matrix is asked for: beyond its page, where the hardware's own prefetchers stop.
constexpr std::int64_t AHEAD = 8192 / sizeof(double);

// A row of any length with any columns.
inline double row_times(const double *value, const int *column, std::int64_t entries,
                        const double *x)
{
    Quad even = {}, odd = {}; // or each addition would wait for the one before
    std::int64_t i = 0;
    for (; i + 2 * WIDTH <= entries; i += 2 * WIDTH) {
        __builtin_prefetch(value + i + AHEAD);
        __builtin_prefetch(column + i + AHEAD);
        add_products(even, value + i, column + i, x);
        add_products(odd, value + i + WIDTH, column + i + WIDTH, x);
    }
    double rest = 0;
    for (; i < entries; i++)
        rest += value[i] * x[column[i]];
    even += odd;
    return (even[0] + even[1]) + (even[2] + even[3]) + rest;
}

inline void rows_times(const Matrix &matrix, std::int64_t begin, std::int64_t end, const double *x,
                       double *y)
{
    const std::int64_t *starts = matrix.starts.data();
    const double *values = matrix.values.data();
    const int *columns = matrix.columns.data();
    for (std::int64_t row = begin; row < end; row++)
        y[row] = row_times(values + starts[row], columns + starts[row],
                           starts[row + 1] - starts[row], x);
}

// Pieces of the inner rows, between which the MPI gets a chance.
constexpr std::size_t PIECES = 8;

} // namespace

Product::Product(const Matrix &matrix, const Mesh &mesh, Halo &halo, bool overlap)
    : matrix(matrix), halo(halo), columns(mesh.own() + mesh.ghosts()),
      overlap(overlap && !mesh.neighbours.empty())
{
    if (!this->overlap)
        return;
    Box inside = mesh.nodes;
    for (int axis = X; axis < AXES; axis++) {
        inside.low[axis] += inside.low[axis] - mesh.with_ghosts.low[axis];
        inside.high[axis] -= mesh.with_ghosts.high[axis] - inside.high[axis];
    }
    std::int64_t width = mesh.nodes.size(X);
    auto add = [](std::vector<Run> &runs, std::int64_t begin, std::int64_t end) {
        if (begin >= end)
            return;
        if (!runs.empty() && runs.back().end == begin)
            runs.back().end = end;
        else
            runs.push_back({ begin, end });
    };
    for (std::int64_t line = 0; line < mesh.lines(); line++) {
        std::int64_t begin = line * width, end = begin + width, from = end, to = end;
        if (inside.size(X) > 0 &&
            inside.contains(inside.low[X], mesh.line_y(line), mesh.line_z(line))) {
            from = begin + inside.low[X] - mesh.nodes.low[X];
            to = begin + inside.high[X] - mesh.nodes.low[X];
        }
        add(outer, begin, from);
        add(inner, from, to);
        add(outer, to, end);
    }
}

void Product::multiply(const std::vector<Run> &runs, std::size_t begin, std::size_t end,
                       const Vector &x, Vector &y)
{
#pragma omp parallel
    {
        Part part = own_part(std::int64_t(end - begin));
        for (std::int64_t i = part.begin; i < part.end; i++)
            rows_times(matrix, runs[begin + i].begin, runs[begin + i].end, x.data(), y.data());
    }
}

void Product::operator()(Vector &x, Vector &y)
{
    halo.start(x);
    if (overlap) {
        for (std::size_t piece = 0; piece < PIECES; piece++) {
            multiply(inner, inner.size() * piece / PIECES, inner.size() * (piece + 1) / PIECES, x,
                     y);
            halo.progress();
        }
        halo.finish();
        multiply(outer, 0, outer.size(), x, y);
        assay::ran();
        return;
    }
    halo.finish();
#pragma omp parallel
    {
        Part part = own_part(matrix.rows);
        rows_times(matrix, part.begin, part.end, x.data(), y.data());
    }
    assay::ran();
}

double Product::traffic() const
{
    return static_cast<double>(matrix.nonzeros) * (sizeof(double) + sizeof(int)) +
           static_cast<double>(matrix.rows + 1) * sizeof(std::int64_t) +
           static_cast<double>(columns + matrix.rows) * sizeof(double);
}

} // namespace minife
