#include "oracle.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "assembly.hpp"
#include "threads.hpp"

namespace minife {

namespace {

// Rounding in 200 iterations stays far below it, at any size and number of ranks.
constexpr double RESIDUAL_TOLERANCE = 1e-12;

// The error of trilinear elements at the centre goes with the square of their largest side. From cubes
// to bricks of 1 : 10 : 10 it was 0.1 to 2.7 of it.
constexpr double DISCRETISATION = 4;
// Where 200 iterations are too few to get there: miniFE's tolerance.
constexpr double CONVERGED = 1e-8, UNCONVERGED_TOLERANCE = 0.06;

// Coefficients between neighbouring nodes in one direction, by their distance of 0 or 1.
struct Line {
    double stiffness[2], mass[2];
};

Line one_dimension(int elements)
{
    double h = 1.0 / elements;
    double square = GAUSS * GAUSS; // the mass is integrated by the same rule as the elements'
    return { { 2 / h, -1 / h }, { h * (1 + square) / 2, h * (1 - square) / 4 } };
}

struct Stencil {
    double coefficient[2][2][2]; // by the distances in z, y, x
    double source;
};

Stencil stencil(const Mesh &mesh)
{
    Line x = one_dimension(mesh.elements[X]), y = one_dimension(mesh.elements[Y]),
         z = one_dimension(mesh.elements[Z]);
    Stencil result;
    for (int dz = 0; dz < 2; dz++)
        for (int dy = 0; dy < 2; dy++)
            for (int dx = 0; dx < 2; dx++)
                result.coefficient[dz][dy][dx] = x.stiffness[dx] * y.mass[dy] * z.mass[dz] +
                                                 x.mass[dx] * y.stiffness[dy] * z.mass[dz] +
                                                 x.mass[dx] * y.mass[dy] * z.stiffness[dz];
    result.source = 1.0 / mesh.elements[X] / mesh.elements[Y] / mesh.elements[Z];
    return result;
}

// Right-hand side less the operator applied to u, at one node.
double residual_at(const Mesh &mesh, const Stencil &stencil, const double *u, int x, int y, int z)
{
    if (mesh.on_boundary(x, y, z))
        return prescribed(mesh, x) - u[*mesh.local(x, y, z)];
    double result = stencil.source;
    for (int dz = -1; dz <= 1; dz++)
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                int i = x + dx, j = y + dy, k = z + dz;
                double value = mesh.on_boundary(i, j, k) ? prescribed_for_neighbours(mesh, i, j, k)
                                                         : u[*mesh.local(i, j, k)];
                result -= stencil.coefficient[std::abs(dz)][std::abs(dy)][std::abs(dx)] * value;
            }
    return result;
}

// Different for another value at a node, and for the same one at another node.
std::uint64_t fingerprint(const Mesh &mesh, const Vector &u, int x, int y, int z)
{
    std::uint64_t bits;
    std::memcpy(&bits, &u[*mesh.local(x, y, z)], sizeof bits);
    return bits * (2 * static_cast<std::uint64_t>(mesh.global(x, y, z)) + 1);
}

// Exchanges the ghosts of u, and tells whether what arrived is what was sent.
bool exchange_and_compare(const Mesh &mesh, Halo &halo, Vector &u)
{
    std::fill(u.data() + mesh.own(), u.data() + mesh.own() + mesh.ghosts(),
              std::numeric_limits<double>::quiet_NaN());
    halo.start(u);
    halo.finish();
    std::uint64_t sum = 0; // of all that was sent, less all that arrived
    for (const Neighbour &neighbour : mesh.neighbours) {
        for_each_node(neighbour.boundary,
                      [&](int x, int y, int z) { sum += fingerprint(mesh, u, x, y, z); });
        for_each_node(neighbour.ghosts,
                      [&](int x, int y, int z) { sum -= fingerprint(mesh, u, x, y, z); });
    }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return sum == 0;
}

// The analytic solution of -laplacian(u) = 1 in the unit cube, with u = 1 at x = 1 and u = 0 at the
// other faces: sines in y and z, for each of which an ordinary equation in x remains.
double analytic(double x, double y, double z)
{
    constexpr int TERMS = 200;
    const double pi = std::acos(-1.0);
    double sum = 0;
    for (int p = 1; p < 2 * TERMS; p += 2)
        for (int q = 1; q < 2 * TERMS; q += 2) {
            double l = pi * std::sqrt(static_cast<double>(p * p + q * q));
            // sinh(lx) / sinh(l), and cosh(l (x - 1/2)) / cosh(l/2), without overflow.
            double face = (std::exp(l * (x - 1)) - std::exp(-l * (x + 1))) / (1 - std::exp(-2 * l));
            double both_faces = (std::exp(l * (x - 1)) + std::exp(-l * x)) / (1 + std::exp(-l));
            double sines = std::sin(p * pi * y) * std::sin(q * pi * z);
            sum += sines / (p * q) * (face + (1 - both_faces) / (l * l));
        }
    return 16 / (pi * pi) * sum;
}

} // namespace

ResidualCheck check_residual(const Mesh &mesh, Halo &halo, Solution &solution, double norm_of_b)
{
    Vector &u = solution.p;
    std::copy(solution.x.data(), solution.x.data() + mesh.own(), u.data());
    ResidualCheck check;
    check.halo_intact = exchange_and_compare(mesh, halo, u);
    check.tolerance = RESIDUAL_TOLERANCE * norm_of_b;

    Stencil equation = stencil(mesh);
    double squares[2] = { 0, 0 };
    double true_squares = 0, difference_squares = 0;
#pragma omp parallel for schedule(static) reduction(+ : true_squares, difference_squares)
    for (std::int64_t line = 0; line < mesh.lines(); line++)
        for (int i = 0; i < mesh.nodes.size(X); i++) {
            double residual = residual_at(mesh, equation, u.data(), mesh.nodes.low[X] + i,
                                          mesh.line_y(line), mesh.line_z(line));
            double difference = residual - solution.r[line * mesh.nodes.size(X) + i];
            true_squares += residual * residual;
            difference_squares += difference * difference;
        }
    squares[0] = true_squares;
    squares[1] = difference_squares;
    MPI_Allreduce(MPI_IN_PLACE, squares, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    check.norm = std::sqrt(squares[0]);
    check.difference = std::sqrt(squares[1]);
    return check;
}

Fingerprint take_fingerprint(const Vector &b, const Solution &solution)
{
    double b_b = 0, b_x = 0, x_x = 0, r_x = 0;
    const std::int64_t rows = b.size();
    const double *right = b.data(), *x = solution.x.data(), *r = solution.r.data();
#pragma omp parallel for schedule(static) reduction(+ : b_b, b_x, x_x, r_x)
    for (std::int64_t row = 0; row < rows; row++) {
        b_b += right[row] * right[row];
        b_x += right[row] * x[row];
        x_x += x[row] * x[row];
        r_x += r[row] * x[row];
    }
    double sums[4] = { b_b, b_x, x_x, r_x };
    MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double of_steps = 0;
    for (std::size_t k = 0; k < solution.squares.size(); k++)
        of_steps += solution.squares[k] / solution.curvatures[k] * solution.squares[k];
    return { sums[0], sums[1], sums[2], sums[3], of_steps };
}

void print_fingerprint(const Fingerprint &fingerprint, const Solution &solution)
{
    constexpr std::size_t FIRST = 10;
    std::printf("Fingerprint: b.b %.17g; b.x %.17g; x.x %.17g; r.x %.17g; %zu steps %.17g\n",
                fingerprint.b_b, fingerprint.b_x, fingerprint.x_x, fingerprint.r_x,
                solution.squares.size(), fingerprint.of_steps);
    std::printf("Overlap of directions: %.17g\n", solution.overlap);
    std::printf("First residuals:");
    for (std::size_t k = 0; k < std::min(FIRST, solution.squares.size()); k++)
        std::printf(" %.17g", std::sqrt(solution.squares[k]));
    std::printf("\n");
    if (solution.iterations > 0)
        std::printf("Last residual: %.17g\n", std::sqrt(solution.squares.back()));
}

CentreCheck check_centre(const Mesh &mesh, const Solution &solution, double norm_of_b)
{
    Box around;
    double width = 0; // of the largest side of an element
    for (int axis = X; axis < AXES; axis++) {
        int n = mesh.elements[axis];
        around.low[axis] = std::max(n / 2 - 1, 0);
        around.high[axis] = std::min((n + 1) / 2 + 2, n + 1);
        width = std::max(width, 1.0 / n);
    }
    double error = 0;
    for_each_node(intersection(around, mesh.nodes), [&](int i, int j, int k) {
        double x = static_cast<double>(i) / mesh.elements[X];
        double y = static_cast<double>(j) / mesh.elements[Y];
        double z = static_cast<double>(k) / mesh.elements[Z];
        double expected = mesh.on_boundary(i, j, k) ? prescribed(mesh, i) : analytic(x, y, z);
        double here = std::fabs(solution.x[*mesh.local(i, j, k)] - expected);
        error = here <= error ? error : here; // NaN counts as large
    });
    MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    bool converged = solution.residual <= CONVERGED * norm_of_b;
    return { error, converged ? DISCRETISATION * width * width : UNCONVERGED_TOLERANCE };
}

} // namespace minife
