#include "residual.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace hpl {

namespace {

// Of numbers that may be no numbers: such a one wins, for it must not be overlooked.
double greatest_magnitude(const double *values, int count)
{
    double greatest = 0;
    for (int i = 0; i < count; i++)
        if (!(std::fabs(values[i]) <= greatest))
            greatest = std::fabs(values[i]);
    return greatest;
}

double greatest_of(double value, MPI_Comm comm)
{
    int ranks;
    MPI_Comm_size(comm, &ranks);
    std::vector<double> all(ranks);
    MPI_Allgather(&value, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, comm);
    return greatest_magnitude(all.data(), ranks);
}

void add_up(std::vector<double> &values, MPI_Comm comm)
{
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM,
                  comm);
}

} // namespace

Residual check(Matrix &matrix, const double *x)
{
    const Grid &grid = matrix.grid;
    matrix.generate();
    const bool has_b = matrix.column_map.owner(matrix.n) == grid.column;
    const int rows = matrix.rows, columns = matrix.columns - has_b;

    std::vector<double> row_sums(rows), column_sums(columns), difference(rows);
    if (has_b)
        std::copy_n(matrix.at(0, columns), rows, difference.begin());
    double b_max = greatest_magnitude(difference.data(), rows);

    // Each thread has rows of its own: so the sums need no lock, and have one order.
    constexpr int STRIP = 512;
#pragma omp parallel
    {
        std::vector<double> sums(columns);
#pragma omp for schedule(static) nowait
        for (int begin = 0; begin < rows; begin += STRIP) {
            int end = std::min(begin + STRIP, rows);
            for (int j = 0; j < columns; j++) {
                const double *a = matrix.at(0, j), of_x = x[j];
                double sum = 0;
#pragma omp simd reduction(+ : sum)
                for (int i = begin; i < end; i++) {
                    difference[i] -= a[i] * of_x;
                    row_sums[i] += std::fabs(a[i]);
                    sum += std::fabs(a[i]);
                }
                sums[j] += sum;
            }
        }
#pragma omp critical
        for (int j = 0; j < columns; j++)
            column_sums[j] += sums[j];
    }
    add_up(row_sums, grid.row_comm);
    add_up(difference, grid.row_comm);
    add_up(column_sums, grid.column_comm);

    Residual r;
    r.difference = greatest_of(greatest_magnitude(difference.data(), rows), grid.all);
    double again = 0;
    for (double of_row : difference)
        again = std::max(again, std::fabs(of_row));
    MPI_Allreduce(&again, &r.difference_again, 1, MPI_DOUBLE, MPI_MAX, grid.all);
    r.a_max = greatest_of(greatest_magnitude(row_sums.data(), rows), grid.all);
    r.a_one = greatest_of(greatest_magnitude(column_sums.data(), columns), grid.all);
    r.b_max = greatest_of(b_max, grid.all);
    r.x_max = greatest_of(greatest_magnitude(x, columns), grid.all);
    r.x_one = std::accumulate(x, x + columns, 0.0,
                              [](double sum, double value) { return sum + std::fabs(value); });
    MPI_Allreduce(MPI_IN_PLACE, &r.x_one, 1, MPI_DOUBLE, MPI_SUM, grid.row_comm);
    r.of_rows = std::accumulate(row_sums.begin(), row_sums.end(), 0.0);
    MPI_Allreduce(MPI_IN_PLACE, &r.of_rows, 1, MPI_DOUBLE, MPI_SUM, grid.column_comm);
    r.of_columns = std::accumulate(column_sums.begin(), column_sums.end(), 0.0);
    MPI_Allreduce(MPI_IN_PLACE, &r.of_columns, 1, MPI_DOUBLE, MPI_SUM, grid.row_comm);
    double corners[2] = { 0, 0 };
    if (grid.row == 0 && grid.column == 0)
        corners[0] = *matrix.at(0, 0);
    if (has_b && matrix.row_map.owner(matrix.n - 1) == grid.row)
        corners[1] = *matrix.at(rows - 1, columns);
    MPI_Allreduce(MPI_IN_PLACE, corners, 2, MPI_DOUBLE, MPI_SUM, grid.all);
    r.first = corners[0];
    r.last = corners[1];
    r.scaled = r.difference / (EPSILON * (r.a_max * r.x_max + r.b_max) * matrix.n);
    return r;
}

} // namespace hpl
