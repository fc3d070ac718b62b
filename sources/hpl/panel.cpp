#include "panel.hpp"

#include <algorithm>
#include <cstring>

#include "application.hpp"
#include "blas.h"

namespace hpl {

namespace {

// Rows that are worked on together: a few columns of them stay in the first cache.
constexpr int CHUNK = 256;

// Absolute values as bit patterns, whose order as integers is that of the numbers. So the search
// vectorises, and all processes agree on an order even of values that are no numbers.
std::uint64_t size_of(double value)
{
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits & ~(std::uint64_t{ 1 } << 63);
}

std::uint64_t greatest_size(const double *values, int count)
{
    std::uint64_t greatest = 0;
#pragma omp simd reduction(max : greatest)
    for (int i = 0; i < count; i++) {
        std::uint64_t size = size_of(values[i]);
        greatest = size > greatest ? size : greatest;
    }
    return greatest;
}

// What process rows tell each other of a column: this, the pivot's row of the panel, and the row
// that has to make place for it, from the process row that has it.
enum Header { SIZE, ROW, WIDTH, HAS_TOP, HEADER };
constexpr double NO_ROW = -1;

bool is_better(const double *a, const double *b)
{
    if (a[ROW] == NO_ROW || b[ROW] == NO_ROW)
        return a[ROW] != NO_ROW;
    if (size_of(a[SIZE]) != size_of(b[SIZE]))
        return size_of(a[SIZE]) > size_of(b[SIZE]);
    return a[ROW] < b[ROW];
}

void take_better(void *from, void *into, int *, MPI_Datatype *)
{
    const double *a = static_cast<const double *>(from);
    double *b = static_cast<double *>(into);
    int width = static_cast<int>(a[WIDTH]);
    if (is_better(a, b)) {
        b[SIZE] = a[SIZE];
        b[ROW] = a[ROW];
        std::copy_n(a + HEADER, width, b + HEADER);
    }
    if (a[HAS_TOP] != 0) {
        b[HAS_TOP] = 1;
        std::copy_n(a + HEADER + width, width, b + HEADER + width);
    }
}

} // namespace

Panel::Panel(const Matrix &matrix) : memory(capacity(matrix.grid, matrix.n, matrix.row_map.block))
{
}

std::size_t Panel::capacity(const Grid &grid, int n, int block)
{
    Cyclic row_map{ block, grid.rows };
    std::size_t width = std::min(block, n), rows = leading_dimension(row_map.below(n, grid.row));
    return (rows + width + 1) * width + 1 + grid.columns;
}

void Panel::shape(const Matrix &matrix, int first_column)
{
    first = first_column;
    last_row = matrix.n - 1;
    width = std::min(matrix.row_map.block, matrix.n - first);
    first_row = matrix.row_map.below(first, matrix.grid.row);
    rows = matrix.rows - first_row;
    ld = leading_dimension(rows);
    diagonal_rows = matrix.row_map.owner(first) == matrix.grid.row ? width : 0;
    lower = memory.data();
    top = lower + static_cast<std::size_t>(ld) * width;
    pivots = top + static_cast<std::size_t>(width) * width;
    count = static_cast<std::size_t>(ld + width + 1) * width + 1;
}

void Panel::load(const Matrix &matrix)
{
    int column = matrix.column_map.local(first);
    for (int j = 0; j < width; j++) {
        double *to = lower + static_cast<std::size_t>(j) * ld;
        std::copy_n(matrix.at(first_row, column + j), rows, to);
        std::fill(to + rows, to + ld, 0.0); // the padding is sent too
    }
}

double Panel::seal_of_pivots() const
{
    double sum = first;
    for (int j = 0; j < width; j++)
        sum += (j + 1) * pivots[j];
    return sum;
}

void Panel::seal()
{
    pivots[width] = seal_of_pivots();
}

void Panel::require_seal() const
{
    for (int j = 0; j < width; j++)
        if (!(pivots[j] >= first + j && pivots[j] <= last_row))
            assay::fail("the panel of column %d arrived damaged: row %g as pivot", first,
                        pivots[j]);
    if (pivots[width] != seal_of_pivots())
        assay::fail(
            "the panel of column %d arrived damaged: its pivots are not those that were sent",
            first);
}

Factorisation::Factorisation(const Grid &process_grid, int block, int least_columns, int parts)
    : grid(process_grid), row_map{ block, grid.rows }, least(least_columns), divisions(parts),
      message(HEADER + 2 * static_cast<std::size_t>(block))
{
    MPI_Type_contiguous(static_cast<int>(message.size()), MPI_DOUBLE, &message_type);
    MPI_Type_commit(&message_type);
    MPI_Op_create(take_better, 1, &better_pivot);
}

Factorisation::~Factorisation()
{
    MPI_Op_free(&better_pivot);
    MPI_Type_free(&message_type);
}

void Factorisation::operator()(Panel &to_factor)
{
    panel = &to_factor;
    factor(0, panel->width);
    panel->seal();
    assay::ran();
}

void Factorisation::factor(int column, int count)
{
    if (count <= least) {
        factor_directly(column, count);
        return;
    }
    int blocks = (count - 1) / least + 1;
    int part = ((blocks - 1) / divisions + 1) * least;
    for (int done = 0; done < count; done += part) {
        int now = std::min(part, count - done), rest = count - done - now;
        factor(column + done, now);
        if (rest > 0)
            update(column + done, now, column + done + now, rest);
    }
}

// The first row of the panel that is still in it when all columns before this one are factored.
int Factorisation::first_active_row(int column) const
{
    return panel->diagonal_rows > 0 ? column : 0;
}

// The columns from `right` on, by those that were factored just now.
void Factorisation::update(int column, int count, int right, int right_count)
{
    const Panel &p = *panel;
    const double *l = p.top + static_cast<std::size_t>(column) * p.width + column;
    double *u = p.top + static_cast<std::size_t>(right) * p.width + column;
    blas_solve_unit_lower(count, right_count, l, p.width, u, p.width);
    int begin = first_active_row(column + count);
    blas_subtract_product(p.rows - begin, right_count, count,
                          p.lower + static_cast<std::size_t>(column) * p.ld + begin, p.ld, u,
                          p.width, p.lower + static_cast<std::size_t>(right) * p.ld + begin, p.ld);
}

void Factorisation::factor_directly(int column, int count)
{
    Candidate candidate = search(column);
    for (int j = column; j < column + count; j++) {
        interchange(j, candidate);
        candidate = eliminate(j, column + count);
    }
}

Factorisation::Candidate Factorisation::search(int column) const
{
    const double *values = panel->lower + static_cast<std::size_t>(column) * panel->ld;
    int row = first_active_row(column);
    if (row >= panel->rows)
        return { 0, -1 };
    std::uint64_t size = greatest_size(values + row, panel->rows - row);
    while (size_of(values[row]) != size)
        row++;
    return { size, row };
}

// Divides the column by its pivot, takes its part from the columns up to `end`, and searches the
// next one for a pivot, all in one pass.
Factorisation::Candidate Factorisation::eliminate(int column, int end) const
{
    const Panel &p = *panel;
    const double *u = p.top + column; // the pivot's row
    auto element_of_u = [&](int j) { return u[static_cast<std::size_t>(j) * p.width]; };
    const double pivot = element_of_u(column);
    const double factor = pivot != 0 ? 1 / pivot : 1;
    std::uint64_t greatest = 0;
    int found = -1; // the chunk that has it
    for (int begin = first_active_row(column + 1); begin < p.rows; begin += CHUNK) {
        int length = std::min(CHUNK, p.rows - begin);
        double *__restrict l = p.lower + static_cast<std::size_t>(column) * p.ld + begin;
#pragma omp simd
        for (int i = 0; i < length; i++)
            l[i] *= factor;
        for (int j = column + 1; j < end; j++) {
            double *__restrict x = p.lower + static_cast<std::size_t>(j) * p.ld + begin;
            const double by = element_of_u(j);
#pragma omp simd
            for (int i = 0; i < length; i++)
                x[i] -= l[i] * by;
        }
        if (column + 1 == end)
            continue;
        std::uint64_t size = greatest_size(l + p.ld, length);
        if (found < 0 || size > greatest) {
            greatest = size;
            found = begin;
        }
    }
    if (found < 0)
        return { 0, -1 };
    const double *next = p.lower + static_cast<std::size_t>(column + 1) * p.ld;
    while (size_of(next[found]) != greatest)
        found++;
    return { greatest, found };
}

// Chooses the pivot of a column among the candidates of the process rows, and interchanges: the
// pivot's row goes to `top`, the row whose place that is goes to the pivot's.
void Factorisation::interchange(int column, Candidate candidate)
{
    Panel &p = *panel;
    const int width = p.width;
    auto read = [&p, width](int row, double *to) {
        for (int j = 0; j < width; j++)
            to[j] = p.lower[static_cast<std::size_t>(j) * p.ld + row];
    };
    double *pivot_row = message.data() + HEADER, *top_row = pivot_row + width;
    message[WIDTH] = width;
    message[ROW] = NO_ROW;
    message[SIZE] = 0;
    message[HAS_TOP] = p.diagonal_rows > 0;
    if (p.diagonal_rows > 0)
        read(column, top_row);
    if (candidate.row >= 0) {
        std::memcpy(&message[SIZE], &candidate.size, sizeof(double));
        message[ROW] = row_map.global(p.first_row + candidate.row, grid.row);
        read(candidate.row, pivot_row);
    }
    if (grid.rows > 1)
        MPI_Allreduce(MPI_IN_PLACE, message.data(), 1, message_type, better_pivot,
                      grid.column_comm);

    int global = static_cast<int>(message[ROW]);
    p.pivots[column] = global;
    bool top_is_here = p.diagonal_rows > 0, pivot_is_here = row_map.owner(global) == grid.row;
    int pivot_index = row_map.local(global) - p.first_row;
    for (int j = 0; j < width; j++) {
        p.top[static_cast<std::size_t>(j) * width + column] = pivot_row[j];
        if (pivot_is_here && !(top_is_here && pivot_index == column))
            p.lower[static_cast<std::size_t>(j) * p.ld + pivot_index] = top_row[j];
    }
}

} // namespace hpl
