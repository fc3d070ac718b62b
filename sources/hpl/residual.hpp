// The check of the answer, against the matrix generated anew.
#ifndef HPL_RESIDUAL_HPP
#define HPL_RESIDUAL_HPP

#include "matrix.hpp"

namespace hpl {

struct Residual {
    double scaled;     // ||Ax-b|| / (eps (||A|| ||x|| + ||b||) N), in maximum norms
    double difference; // ||Ax-b||
    double a_max, a_one, x_max, x_one, b_max;
    double difference_again; // by another loop and another reduction
    double of_rows, of_columns; // sum of all |a|, row by row and column by column
    double first, last;         // elements of A | b: of its first row and column, and of its last
};

// What the residual is a multiple of: half the distance from 1 to the next number.
constexpr double EPSILON = 0x1p-53;

// Collective over the grid; the same on all ranks. Leaves the matrix as it was generated. `x`: as solve returns it.
Residual check(Matrix &matrix, const double *x);

} // namespace hpl

#endif
