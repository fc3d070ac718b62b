#include "matrix.hpp"

#include <cstdint>

namespace hpl {

namespace {

// The step of the generator, x -> multiplier * x + increment modulo 2^64, and compositions of it.
struct Step {
    std::uint64_t multiplier, increment;

    std::uint64_t operator()(std::uint64_t x) const { return multiplier * x + increment; }

    // This step after `other`.
    Step operator*(Step other) const
    {
        return { multiplier * other.multiplier, multiplier * other.increment + increment };
    }

    Step power(std::uint64_t times) const
    {
        Step result = { 1, 0 };
        for (Step square = *this; times > 0; times >>= 1, square = square * square)
            if (times & 1)
                result = square * result;
        return result;
    }
};

constexpr Step STEP = { 6364136223846793005, 1 };
constexpr std::uint64_t SEED = 100; // HPL's own, or the matrix would be another

double element(std::uint64_t x)
{
    return 0.5 - static_cast<double>(x) * 0x1p-64;
}

} // namespace

Matrix::Matrix(const Grid &process_grid, int order, int block)
    : grid(process_grid), n(order), row_map{ block, grid.rows }, column_map{ block, grid.columns },
      rows(row_map.below(n, grid.row)), columns(column_map.below(n + 1, grid.column)),
      ld(leading_dimension(rows)), values(static_cast<std::size_t>(ld) * columns)
{
}

// The sequence runs down the columns of the whole matrix, one column after the other.
void Matrix::generate()
{
    const std::uint64_t order = n;
    const Step to_next_block =
        STEP.power(static_cast<std::uint64_t>(row_map.parts - 1) * row_map.block);
    const std::uint64_t first_row = row_map.global(0, grid.row);
#pragma omp parallel for schedule(static)
    for (int column = 0; column < columns; column++) {
        std::uint64_t global_column = column_map.global(column, grid.column);
        std::uint64_t x = STEP.power(1 + first_row + global_column * order)(SEED);
        double *to = at(0, column);
        for (int begin = 0; begin < rows; begin += row_map.block) {
            int end = rows - begin < row_map.block ? rows : begin + row_map.block;
            for (int row = begin; row < end; row++) {
                to[row] = element(x);
                x = STEP(x);
            }
            x = to_next_block(x);
        }
    }
}

double Matrix::bytes(const Grid &grid, int n, int block)
{
    Cyclic row_map{ block, grid.rows }, column_map{ block, grid.columns };
    return sizeof(double) * static_cast<double>(leading_dimension(row_map.below(n, grid.row))) *
           column_map.below(n + 1, grid.column);
}

} // namespace hpl
