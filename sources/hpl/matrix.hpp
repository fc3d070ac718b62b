// The augmented matrix [A | b] of order N x (N + 1), distributed, with random elements.
#ifndef HPL_MATRIX_HPP
#define HPL_MATRIX_HPP

#include "buffer.hpp"
#include "grid.hpp"

namespace hpl {

class Matrix {
public:
    Matrix(const Grid &grid, int n, int block);

    // Fills it; the elements depend on nothing but N.
    void generate();

    double *at(int local_row, int local_column) const
    {
        return values.data() + static_cast<std::size_t>(local_column) * ld + local_row;
    }

    // Bytes on this rank.
    static double bytes(const Grid &grid, int n, int block);

    const Grid &grid;
    const int n;
    const Cyclic row_map, column_map;
    const int rows, columns; // on this rank; b is the last column of the process column that has it
    const int ld;

private:
    Buffer values;
};

} // namespace hpl

#endif
