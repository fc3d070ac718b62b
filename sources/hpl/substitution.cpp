#include "substitution.hpp"

#include <omp.h>

#include <algorithm>
#include <vector>

#include "application.hpp"
#include "blas.h"

namespace hpl {

namespace {

// y -= A[begin, end) x for some columns of a block, the rows shared among the threads.
void subtract(const Matrix &matrix, int begin, int end, int column, int width, const double *x,
              double *y)
{
    constexpr int WORTH_SHARING = 2048; // rows for each thread
    int threads = std::clamp((end - begin) / WORTH_SHARING, 1, omp_get_max_threads());
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int part = 0; part < threads; part++) {
        long rows = end - begin;
        int from = begin + static_cast<int>(rows * part / threads);
        int to = begin + static_cast<int>(rows * (part + 1) / threads);
        blas_add_product_vector(to - from, width, -1, matrix.at(from, column), matrix.ld, x,
                                y + from);
    }
}

} // namespace

// Each process column sums up, for all of its rows, what its own part of x takes from y; a block of
// x is solved for where the diagonal block is, from the sum over process columns. Behind it only
// the rows of the next block are brought up to date at once, so that the next process column can go
// on; the other rows follow while it does.
Buffer substitute(const Matrix &matrix)
{
    const Grid &grid = matrix.grid;
    const int n = matrix.n, block = matrix.row_map.block;
    const int b_owner = matrix.column_map.owner(n);

    Buffer x(matrix.columns);
    std::vector<double> sums(matrix.rows), right_side(block);
    if (grid.column == b_owner)
        std::copy_n(matrix.at(0, matrix.columns - 1), matrix.rows, sums.begin());
    int pending_rows = 0, pending_column = 0, pending_width = 0;
    auto catch_up = [&] {
        subtract(matrix, 0, pending_rows, pending_column, pending_width, x.data() + pending_column,
                 sums.data());
        pending_rows = 0;
    };

    for (int first = n == 0 ? -1 : (n - 1) / block * block; first >= 0; first -= block) {
        const int width = std::min(block, n - first);
        const int row_owner = matrix.row_map.owner(first);
        const int column_owner = matrix.column_map.owner(first);
        const int row = matrix.row_map.below(first, grid.row);
        if (grid.row == row_owner)
            MPI_Reduce(sums.data() + row, right_side.data(), width, MPI_DOUBLE, MPI_SUM,
                       column_owner, grid.row_comm);
        catch_up();
        if (grid.column != column_owner)
            continue;

        const int column = matrix.column_map.local(first);
        double *solved = x.data() + column;
        if (grid.row == row_owner) {
            std::copy_n(right_side.begin(), width, solved);
            blas_solve_upper(width, matrix.at(row, column), matrix.ld, solved);
        }
        MPI_Bcast(solved, width, MPI_DOUBLE, row_owner, grid.column_comm);
        // Of the local rows above, the next block's are the last ones where it is here.
        int above = matrix.row_map.below(first - std::min(first, block), grid.row);
        subtract(matrix, above, row, column, width, solved, sums.data());
        pending_rows = above;
        pending_column = column;
        pending_width = width;
    }
    assay::ran();
    return x;
}

} // namespace hpl
