// Conjugate gradients without preconditioner.
#ifndef MINIFE_SOLVER_HPP
#define MINIFE_SOLVER_HPP

#include <vector>

#include "application.hpp"
#include "matrix.hpp"
#include "matvec.hpp"

namespace minife {

constexpr int MOST_ITERATIONS = 200;

// Of this rank. The limit, which bouts measure, is in none of them.
struct SolverTimes {
    assay::Time waxpy, dot, matvec, total;
    assay::Time first_waxpy, first_dot, first_matvec; // of these: before the first iteration
    assay::Time iterations; // whole ones
    assay::Time checked; // what the check of the directions took, in none of the others
};

// Of the loop's bouts: windows are what an iteration spends with each.
enum Kernel { MATVEC, DOT, WAXPY, ITERATION };

struct Solution {
    Vector x;
    Vector r;             // residual by the recurrence, after the last iteration
    Vector p;             // with room for ghosts; of no further use
    int iterations = 0;
    double residual = 0;  // norm of the recurrence's at the start of the last iteration
    std::vector<double> squares;    // r r of each iteration, as CG used it
    std::vector<double> curvatures; // p A p likewise
    // Greatest of |p A p'| / p A p, where p' is the direction before p, and of the relative error of
    // p p by that of p'.
    double overlap = 0;
    bool broken = false; // the matrix is not positive definite
    SolverTimes times;
};

// Solves A x = b from x = 0 in at most MOST_ITERATIONS steps of `bouts`, and prints the residuals on
// rank 0.
Solution solve(const Mesh &mesh, Product &product, const Vector &b, assay::Bouts &bouts,
               bool print);

// Over all ranks, and of this one.
double dot(std::int64_t count, const Vector &x, const Vector &y);
double own_dot(std::int64_t count, const Vector &x, const Vector &y);

// x += alpha p, r -= alpha q: in one go, as both need alpha.
void advance(std::int64_t count, double alpha, const Vector &p, const Vector &q, Vector &x,
             Vector &r);

} // namespace minife

#endif
