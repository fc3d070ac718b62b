// Independent checks of the answer, outside of what is timed.
#ifndef MINIFE_ORACLE_HPP
#define MINIFE_ORACLE_HPP

#include "halo.hpp"
#include "mesh.hpp"
#include "solver.hpp"

namespace minife {

// The residual once more from the solution, without the matrix: on a mesh of equal bricks the equation
// of a node is a product of one-dimensional ones. What CG carried along has to agree with it, or the
// matrix, a message of the halo or the recurrence was wrong.
struct ResidualCheck {
    double norm;       // of the true residual
    double difference; // norm of the difference to the recurrence's
    double tolerance;
    bool halo_intact;  // of the exchange that the check itself needs
    bool passed() const { return halo_intact && difference <= tolerance; }
};

// Collective. Overwrites solution.p.
ResidualCheck check_residual(const Mesh &mesh, Halo &halo, Solution &solution, double norm_of_b);

// What the reader of the output computes once more, or holds against each other.
struct Fingerprint {
    double b_b, b_x, x_x, r_x;
    double of_steps; // r r / p A p * r r of each iteration: b x + r x, if each was a step of CG
};

// Collective. With sums of its own, not CG's.
Fingerprint take_fingerprint(const Vector &b, const Solution &solution);

// Rank 0 prints it, and the norms of the first residuals, to the last digit.
void print_fingerprint(const Fingerprint &fingerprint, const Solution &solution);

// The solution at the nodes around the centre of the mesh against the analytic one.
struct CentreCheck {
    double error; // greatest, absolute
    double tolerance;
    bool passed() const { return error <= tolerance; }
};

// Collective.
CentreCheck check_centre(const Mesh &mesh, const Solution &solution, double norm_of_b);

} // namespace minife

#endif
