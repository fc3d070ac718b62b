#include "interchange.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace hpl {

namespace {

std::size_t message_size(const Matrix &matrix)
{
    return static_cast<std::size_t>(std::min(matrix.row_map.block, matrix.n)) * matrix.columns;
}

} // namespace

InterchangeBuffers::InterchangeBuffers(const Grid &grid, const Matrix &matrix)
{
    if (grid.rows == 1)
        return;
    u = Buffer(message_size(matrix));
    leaving = Buffer(message_size(matrix));
    arriving = Buffer(message_size(matrix));
}

double InterchangeBuffers::bytes(const Grid &grid, int n, int block)
{
    Cyclic column_map{ block, grid.columns };
    double doubles = static_cast<double>(std::min(block, n)) * column_map.below(n + 1, grid.column);
    return grid.rows == 1 ? 0 : 3 * sizeof(double) * doubles;
}

Interchange::Interchange(const Matrix &of_matrix, const Panel &of_panel, InterchangeBuffers &to_use)
    : matrix(of_matrix), panel(of_panel), buffers(to_use), into_u(matrix.grid.rows),
      out(matrix.grid.rows)
{
    // Which row lies where, when all interchanges are done: global rows.
    std::vector<int> top(panel.width);
    std::map<int, int> below;
    for (int i = 0; i < panel.width; i++)
        top[i] = panel.first + i;
    for (int i = 0; i < panel.width; i++) {
        int pivot = static_cast<int>(panel.pivots[i]);
        int inside = pivot - panel.first;
        std::swap(top[i], inside < panel.width ? top[inside]
                                               : below.try_emplace(pivot, pivot).first->second);
    }
    const Cyclic &map = matrix.row_map;
    for (int i = 0; i < panel.width; i++)
        into_u[map.owner(top[i])].push_back({ map.local(top[i]), i });
    for (auto [place, row] : below)
        out[map.owner(place)].push_back({ row - panel.first, map.local(place) });
}

// All get all of U: each process row gives what it has. The one of the diagonal block hands out the
// rows that leave it.
void Interchange::exchange(int begin, int end)
{
    exchanged_from = begin;
    exchanged = end - begin;
    if (matrix.grid.rows > 1 && exchanged > 0)
        send_rows(begin);
    assay::ran();
}

void Interchange::send_rows(int begin)
{
    const Grid &grid = matrix.grid;
    std::vector<int> u_counts, u_starts, out_counts, out_starts;
    int u_total = 0, out_total = 0;
    for (int row = 0; row < grid.rows; row++) {
        u_starts.push_back(u_total);
        out_starts.push_back(out_total);
        u_counts.push_back(static_cast<int>(into_u[row].size()) * exchanged);
        out_counts.push_back(static_cast<int>(out[row].size()) * exchanged);
        u_total += u_counts.back();
        out_total += out_counts.back();
    }

    const bool has_top = panel.diagonal_rows > 0;
#pragma omp parallel for schedule(static)
    for (int column = 0; column < exchanged; column++) {
        const double *from = matrix.at(0, begin + column);
        const auto &given = into_u[grid.row];
        double *to = buffers.u.data() + u_starts[grid.row] + column * given.size();
        for (std::size_t i = 0; i < given.size(); i++)
            to[i] = from[given[i].from];
        for (int row = 0; has_top && row < grid.rows; row++) {
            to = buffers.leaving.data() + out_starts[row] + column * out[row].size();
            for (std::size_t i = 0; i < out[row].size(); i++)
                to[i] = from[panel.first_row + out[row][i].from];
        }
    }
    // In place the first count means nothing, but MUST 1.9 holds it against what others receive.
    MPI_Allgatherv(MPI_IN_PLACE, u_counts[grid.row], MPI_DOUBLE, buffers.u.data(), u_counts.data(),
                   u_starts.data(), MPI_DOUBLE, grid.column_comm);
    MPI_Scatterv(buffers.leaving.data(), out_counts.data(), out_starts.data(), MPI_DOUBLE,
                 buffers.arriving.data(), out_counts[grid.row], MPI_DOUBLE,
                 matrix.row_map.owner(panel.first), grid.column_comm);
}

void Interchange::take(int begin, int end, double *u) const
{
    const Grid &grid = matrix.grid;
    if (grid.rows == 1) {
        take_here(begin, end, u);
        return;
    }
    for (int column = begin; column < end; column++, u += panel.width) {
        std::size_t of_exchanged = column - exchanged_from;
        const double *from = buffers.u.data();
        for (const auto &given : into_u) {
            const double *values = from + of_exchanged * given.size();
            for (std::size_t i = 0; i < given.size(); i++)
                u[given[i].to] = values[i];
            from += given.size() * exchanged;
        }
        const auto &places = out[grid.row];
        const double *values = buffers.arriving.data() + of_exchanged * places.size();
        double *to = matrix.at(0, column);
        for (std::size_t i = 0; i < places.size(); i++)
            to[places[i].to] = values[i];
    }
}

void Interchange::take_here(int begin, int end, double *u) const
{
    for (int column = begin; column < end; column++, u += panel.width) {
        double *values = matrix.at(0, column);
        // The next column's rows are on their way meanwhile: no processor guesses where they lie.
        const double *next = column + 1 < end ? values + matrix.ld : values;
        for (Move move : into_u[0]) {
            __builtin_prefetch(next + move.from, 1);
            u[move.to] = values[move.from];
        }
        for (Move move : out[0])
            values[move.to] = values[panel.first_row + move.from];
    }
}

} // namespace hpl
