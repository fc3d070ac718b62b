// Solves [A | b]: LU factorisation with look-ahead, then back substitution.
#ifndef HPL_SOLVER_HPP
#define HPL_SOLVER_HPP

#include <vector>

#include "application.hpp"
#include "broadcast.hpp"
#include "matrix.hpp"

namespace hpl {

struct Algorithm {
    int depth;           // of the look-ahead: 0, or 1 for anything above
    Topology topology;   // of the panels' broadcasts
    int least, divisions; // of the panels' recursion
};

struct Phases {
    assay::Time factor;     // panels
    assay::Time wait;       // for panels of others
    assay::Time update;     // interchanges, U, and the trailing matrix
    assay::Time substitute;
    std::vector<long> passed_on; // messages of broadcasts, as Broadcast has them
};

// Of the loop's bouts: windows are the steps of the first half, in seconds of an operation.
enum Kernel { FACTORISATION, UPDATE };

// How many panels a matrix of that order has.
int panels_of(int n, int block);

// Collective over the grid. Overwrites the matrix; returns the part of x that belongs to this rank's
// columns, the same on all process rows. The times are this rank's. Panels are steps of `bouts`, from
// `first_step` on.
Buffer solve(Matrix &matrix, const Algorithm &algorithm, Phases &phases, assay::Bouts &bouts,
             long first_step);

// Collective over the grid. Factors the first panel of a matrix that was generated anew; returns the
// greatest multiplier of all rows, which is 1 at most where the pivots are the greatest elements.
double greatest_multiplier(const Matrix &matrix, const Algorithm &algorithm);

// Bytes that it needs on this rank.
double solve_bytes(const Grid &grid, int n, int block, int threads);

} // namespace hpl

#endif
