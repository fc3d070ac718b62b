#include "solver.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "application.hpp"
#include "threads.hpp"

namespace minife {

namespace {

constexpr int PRINT_EVERY = MOST_ITERATIONS / 10;

// Adds the time from its birth to its death.
class Stopwatch {
public:
    explicit Stopwatch(assay::Time &total) : total(total), start(assay::Instant::now()) {}
    Stopwatch(const Stopwatch &) = delete;
    ~Stopwatch()
    {
        const long before = total.runs;
        total.add(start, assay::Instant::now());
        assay::require_runs("a kernel of CG", total, before + 1);
    }

private:
    assay::Time &total;
    assay::Instant start;
};

// w[i] = value(i), by the threads that have the data.
template <typename Value>
void set(std::int64_t count, Vector &vector, Value value)
{
#pragma omp parallel
    {
        Part part = own_part(count);
        double *w = vector.data();
#pragma omp simd
        for (std::int64_t i = part.begin; i < part.end; i++)
            w[i] = value(i);
    }
    assay::ran();
}

// Two vectors whose product is this small are taken as orthogonal: nothing is left to solve along p.
bool orthogonal(std::int64_t count, double product, const Vector &p, const Vector &q)
{
    double norms = std::sqrt(dot(count, p, p)) * std::sqrt(dot(count, q, q));
    return std::fabs(product) <= 100 * norms * std::numeric_limits<double>::epsilon();
}

} // namespace

void advance(std::int64_t count, double alpha, const Vector &p_vector, const Vector &q_vector,
             Vector &x_vector, Vector &r_vector)
{
#pragma omp parallel
    {
        Part part = own_part(count);
        const double *p = p_vector.data(), *q = q_vector.data();
        double *x = x_vector.data(), *r = r_vector.data();
#pragma omp simd
        for (std::int64_t i = part.begin; i < part.end; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
    }
    assay::ran();
}

// Partial sums are added in the order of threads: the same answer in every run.
double own_dot(std::int64_t count, const Vector &x_vector, const Vector &y_vector)
{
    struct alignas(64) Partial {
        double sum;
    };
    static std::vector<Partial> partials(omp_get_max_threads());
#pragma omp parallel
    {
        Part part = own_part(count);
        const double *x = x_vector.data(), *y = y_vector.data();
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = part.begin; i < part.end; i++)
            sum += x[i] * y[i];
        partials[omp_get_thread_num()].sum = sum;
    }
    double result = 0;
    for (const Partial &partial : partials)
        result += partial.sum;
    assay::ran();
    return result;
}

double dot(std::int64_t count, const Vector &x, const Vector &y)
{
    double result = own_dot(count, x, y);
    MPI_Allreduce(MPI_IN_PLACE, &result, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return result;
}

Solution solve(const Mesh &mesh, Product &product, const Vector &b, assay::Bouts &bouts, bool print)
{
    constexpr double EPSILON = std::numeric_limits<double>::epsilon();
    const assay::Instant start = assay::Instant::now();
    const std::int64_t rows = mesh.own();
    Solution solution;
    solution.x = zeros(rows);
    solution.r = zeros(rows);
    solution.p = zeros(rows + mesh.ghosts());
    Vector q = zeros(rows); // A p
    solution.squares.reserve(MOST_ITERATIONS);
    solution.curvatures.reserve(MOST_ITERATIONS);
    Vector &x = solution.x, &r = solution.r, &p = solution.p;
    SolverTimes &times = solution.times;
    auto multiply = [&] {
        Stopwatch stopwatch(times.matvec);
        product(p, q);
    };
    auto timed_dot = [&](const Vector &u, const Vector &v) {
        Stopwatch stopwatch(times.dot);
        return dot(rows, u, v);
    };
    // r is p less a multiple of the direction before, which A makes orthogonal to p: else beta was
    // not that of CG. And r is orthogonal to that direction, of which p has as much as beta says.
    auto checking_dot = [&](const Vector &u, const Vector &v) {
        Stopwatch stopwatch(times.checked);
        return dot(rows, u, v);
    };
    double length = 0; // p p
    auto check_direction = [&](double curvature, double rest, double beta) {
        const double expected = rest + beta * beta * length;
        length = checking_dot(p, p);
        for (double overlap : { std::fabs(checking_dot(r, q) - curvature) / curvature,
                                std::fabs(length - expected) / length })
            if (!(overlap <= solution.overlap)) // no number is the greatest
                solution.overlap = overlap;
    };

    {
        Stopwatch stopwatch(times.waxpy);
        set(rows, p, [from = x.data()](std::int64_t i) { return from[i]; });
    }
    multiply();
    {
        Stopwatch stopwatch(times.waxpy);
        set(rows, r,
            [from = b.data(), minus = q.data()](std::int64_t i) { return from[i] - minus[i]; });
    }
    double rr = timed_dot(r, r);
    solution.residual = std::sqrt(rr);
    if (print)
        std::printf("Initial Residual = %g\n", solution.residual);

    times.first_waxpy = times.waxpy;
    times.first_dot = times.dot;
    times.first_matvec = times.matvec;
    double smallest = EPSILON; // of p A p, before it is looked at
    for (int k = 1; k <= MOST_ITERATIONS && solution.residual > EPSILON; k++) {
        bouts.before(k - 1);
        const SolverTimes before_all = times;
        const assay::Instant began = assay::Instant::now();
        double beta = 0;
        if (k > 1) {
            double before = rr;
            rr = timed_dot(r, r);
            beta = rr / before;
        }
        solution.residual = std::sqrt(rr);
        if (rr == 0) // exactly solved, and nowhere left to go
            break;
        {
            Stopwatch stopwatch(times.waxpy);
            const double *from = r.data(), *own = p.data();
            if (k == 1)
                set(rows, p, [=](std::int64_t i) { return from[i]; });
            else
                set(rows, p, [=](std::int64_t i) { return from[i] + beta * own[i]; });
        }
        if (print && k % PRINT_EVERY == 0)
            std::printf("Iteration = %d   Residual = %g\n", k, solution.residual);

        multiply();
        double pq = timed_dot(p, q);
        // Written so that NaN is caught as well.
        if (!(pq >= smallest)) {
            if (!(pq >= 0) || orthogonal(rows, pq, p, q)) {
                solution.broken = true;
                break;
            }
            smallest = 0.1 * pq;
        }
        // By what was left before, and not by the beta that was taken.
        check_direction(pq, rr, k > 1 ? rr / solution.squares.back() : 0);
        {
            Stopwatch stopwatch(times.waxpy);
            advance(rows, rr / pq, p, q, x, r);
        }
        solution.iterations = k;
        solution.squares.push_back(rr);
        solution.curvatures.push_back(pq);
        bouts.add(MATVEC, times.matvec.seconds - before_all.matvec.seconds);
        bouts.add(DOT, times.dot.seconds - before_all.dot.seconds);
        bouts.add(WAXPY, times.waxpy.seconds - before_all.waxpy.seconds);
        times.iterations.add(began, assay::Instant::now());
        bouts.add(ITERATION, times.iterations.seconds - before_all.iterations.seconds -
                                 (times.checked.seconds - before_all.checked.seconds));
    }
    times.iterations.subtract(times.checked);
    times.total.add(start, assay::Instant::now());
    times.total.subtract(bouts.paused());
    times.total.subtract(times.checked);
    bouts.end();
    const long least = times.matvec.runs + times.dot.runs + times.waxpy.runs;
    // The test for orthogonality may have run some more.
    assay::require_runs("CG", times.total, std::max(least, times.total.runs));
    const long of_iterations = std::max(5L * solution.iterations - 1, 0L);
    assay::require_runs("the iterations", times.iterations,
                        std::max(of_iterations, times.iterations.runs));
    if (print)
        std::printf("Final Resid Norm: %g\n", solution.residual);
    return solution;
}

} // namespace minife
