// miniFE: the course of a run.
//
// The equations of steady heat conduction with a source, -laplacian(u) = 1 on the unit cube, u = 1 at
// the face x = 1 and u = 0 at the others, are assembled element by element and solved by conjugate
// gradients. Each phase is timed. Between bouts of iterations the machine's bandwidth is measured, which
// is what the product of matrix and vector is held against; afterwards the answer is checked.
#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>

#include "application.hpp"
#include "assembly.hpp"
#include "halo.hpp"
#include "matvec.hpp"
#include "mesh.hpp"
#include "node_limits.h"
#include "oracle.hpp"
#include "partition.hpp"
#include "report.hpp"
#include "settings.hpp"
#include "solver.hpp"

using namespace minife;

namespace {

constexpr double GIB = 1 << 30, MIB = 1 << 20;

constexpr int LIMIT_WINDOWS = 8; // of a slice

// Before anything large is allocated.
void refuse_what_cannot_run(const assay::Job &job, const Settings &settings,
                            const std::vector<Box> &boxes)
{
    const std::array<int, AXES> &n = settings.elements;
    if (std::any_of(boxes.begin(), boxes.end(), [](const Box &box) { return box.volume() == 0; }))
        assay::refuse(
            "%d x %d x %d elements are too few for %d ranks, some would have none; use fewer "
            "ranks or a larger mesh",
            n[X], n[Y], n[Z], job.ranks);
    Box nodes = own_nodes(n, boxes[job.rank]);
    Box wider = with_layer(n, nodes);
    double rows = static_cast<double>(nodes.volume()),
           numbered = static_cast<double>(wider.volume());
    double matrix = 27 * rows * (sizeof(double) + sizeof(int)) + rows * sizeof(std::int64_t);
    double bytes = matrix + 5 * rows * sizeof(double) + numbered * sizeof(int) + // vectors, mesh
                   (numbered - rows) * (2 * sizeof(double) + 2 * sizeof(int)); // halo
    assay::require_memory(bytes + limit_triad_bytes(matrix), "use a smaller mesh");
    if (spread_over_ranks(numbered, job.ranks).high > INT_MAX)
        assay::refuse(
            "%d x %d x %d elements on %d ranks are more than 2^31 nodes on one rank; use more "
            "ranks",
            n[X], n[Y], n[Z], job.ranks);
}

// Of the rank that took longest; prints it beside the system's clock.
void take_slowest(const char *what, assay::Time &time)
{
    assay::print_time(what, time, MPI_MAX);
    MPI_Allreduce(MPI_IN_PLACE, &time.seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

// Does a phase, which is one run, and tells how long it took.
template <typename Phase>
assay::Time timed(const char *name, Phase &&phase)
{
    assay::Time time;
    const assay::Instant start = assay::Instant::now();
    phase();
    time.add(start, assay::Instant::now());
    assay::require_runs(name, time, 1);
    take_slowest(name, time);
    return time;
}

MatrixFacts facts_of(const Matrix &matrix, const Halo &halo, int ranks)
{
    MatrixFacts facts;
    facts.rows_per_rank = spread_over_ranks(static_cast<double>(matrix.rows), ranks);
    facts.nonzeros_per_rank = spread_over_ranks(static_cast<double>(matrix.nonzeros), ranks);
    facts.rows = std::round(facts.rows_per_rank.mean * ranks);
    facts.nonzeros = std::round(facts.nonzeros_per_rank.mean * ranks);
    facts.gigabytes =
        (facts.rows * sizeof(std::int64_t) + facts.nonzeros * (sizeof(double) + sizeof(int))) / GIB;
    Spread halo_bytes = spread_over_ranks(static_cast<double>(halo.bytes()), ranks);
    facts.halo_megabytes = halo_bytes.mean * ranks / MIB;
    return facts;
}

double resident_kilobytes()
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss);
}

// Returns whether all is well.
bool say_verdict(const Solution &solution, const ResidualCheck &residual,
                 const std::optional<CentreCheck> &centre, bool print)
{
    auto word = [](bool passed) { return passed ? "PASSED" : "FAILED"; };
    bool passed = !solution.broken && residual.passed() && (!centre || centre->passed());
    if (!print)
        return passed;
    if (solution.broken)
        std::printf(
            "CG broke down after %d iterations, the matrix is not positive definite: FAILED\n",
            solution.iterations);
    if (!residual.halo_intact)
        std::printf("Halo, what arrived is not what was sent: FAILED\n");
    std::printf("True residual %g, difference to that of CG %g (tolerance %g): %s\n", residual.norm,
                residual.difference, residual.tolerance, word(residual.passed()));
    if (centre)
        std::printf(
            "Solution at the centre, difference to the analytic one %g (tolerance %g): %s\n",
            centre->error, centre->tolerance, word(centre->passed()));
    std::printf("Verdict: %s\n", word(passed));
    return passed;
}

// A copy of what the kernels work on. p is small whole numbers and x a multiple of it, so that sums
// are exact; the matrix is assembled anew on top of itself.
struct InCaches {
    Matrix matrix;
    Vector b, x, p, q;
    std::optional<Product> product;
    double times = 0; // x is so many p
};

double whole_number(std::int64_t i)
{
    return static_cast<double>(i % 7) - 3;
}

// Takes the job down where a kernel left out some of its rows. `once`: the matrix assembled once.
void require_right(InCaches &copy, const Matrix &once)
{
    const Matrix &matrix = copy.matrix;
    (*copy.product)(copy.p, copy.q);
    const double assembled = std::round(matrix.values[0] / once.values[0]);
    bool right = true;
    for (std::int64_t row = 0; row < matrix.rows; row++) {
        double product = 0, size = 0;
        for (std::int64_t i = matrix.starts[row]; i < matrix.starts[row + 1]; i++) {
            const double value = matrix.values[i], term = value * copy.p[matrix.columns[i]];
            product += term;
            size += std::fabs(term);
            right &= std::fabs(value - assembled * once.values[i]) <=
                     1e-9 * assembled * once.values[0];
        }
        right &= std::fabs(product - copy.q[row]) <= 1e-12 * size;
        right &= copy.x[row] == copy.times * copy.p[row];
    }
    if (!right)
        assay::fail("a kernel in caches left out some of its rows");
}

// The kernels on a mesh of a few elements for each thread, which is each rank's own.
void print_in_caches(const assay::Job &job)
{
    const std::array<int, AXES> n = { 8, 8, 8 * job.threads };
    const Mesh mesh(n, { { { 0, 0, 0 }, n } }, 0);
    Halo halo(mesh);
    std::array<InCaches, assay::COPIES_IN_CACHES> copies;
    for (InCaches &copy : copies) {
        copy.matrix = matrix_structure(mesh);
        for (Vector *vector : { &copy.b, &copy.x, &copy.p, &copy.q })
            *vector = zeros(copy.matrix.rows);
        assemble(mesh, copy.matrix, copy.b);
        copy.product.emplace(copy.matrix, mesh, halo, false);
        for (std::int64_t i = 0; i < copy.matrix.rows; i++)
            copy.p[i] = whole_number(i);
    }
    Matrix once = matrix_structure(mesh);
    Vector source = zeros(once.rows);
    assemble(mesh, once, source);
    const double square = own_dot(once.rows, copies[0].p, copies[0].p);
    const std::int64_t rows = copies[0].matrix.rows;
    const Flops flops = flops_of_iteration(n, static_cast<double>(copies[0].matrix.nonzeros));
    double wrong = 0;
    const auto n_rows = static_cast<double>(rows);
    const double elements = static_cast<double>(n[X]) * n[Y] * n[Z];
    assay::print_in_caches({
        { "MATVEC in caches", "Gflop/s", 1e-9 * flops.matvec, flops.matvec,
          [&](int i) { (*copies[i].product)(copies[i].p, copies[i].q); } },
        { "DOT in caches", "Gflop/s", 1e-9 * 2 * n_rows, 2 * n_rows,
          [&](int i) {
              wrong += own_dot(rows, copies[i].p, copies[i].x) != copies[i].times * square;
          } },
        { "WAXPY in caches", "Gflop/s", 1e-9 * 4 * n_rows, 4 * n_rows,
          [&](int i) {
              InCaches &copy = copies[i];
              advance(rows, 1.0, copy.p, copy.q, copy.x, copy.b);
              copy.times++;
          } },
        // An addition for each pair of an element's nodes.
        { "assembly in caches", "Melement/s", 1e-6 * elements, 8 * 8 * elements,
          [&](int i) { assemble(mesh, copies[i].matrix, copies[i].b); } },
    });
    if (wrong > 0)
        assay::fail("%g scalar products in caches are wrong", wrong);
    for (InCaches &copy : copies)
        require_right(copy, once);
}

} // namespace

int main(int argc, char **argv)
{
    assay::Job job = assay::start(&argc, &argv, "miniFE", help);
    const assay::Instant start = assay::Instant::now();
    const Settings settings = read_settings(argc, argv);
    const std::array<int, AXES> &n = settings.elements;
    const std::vector<Box> boxes = partition(n, job.ranks, settings.load_imbalance);
    const Imbalance difference = imbalance(boxes);
    refuse_what_cannot_run(job, settings, boxes);
    if (job.rank == 0)
        std::printf("miniFE, Implementation: assay %s\n"
                    "Mesh: %d x %d x %d elements; %d ranks of %d threads\n",
                    assay::version(), n[X], n[Y], n[Z], job.ranks, job.threads);

    PhaseTimes phases;
    MatrixFacts facts;
    Solution solution;
    ResidualCheck residual;
    Fingerprint marks;
    std::optional<CentreCheck> centre;
    double traffic, limit_bytes;
    std::optional<assay::Bouts> bouts;
    {
        std::optional<Mesh> mesh;
        Matrix matrix;
        phases.structure = timed("structure", [&] {
            mesh.emplace(n, boxes, job.rank);
            matrix = matrix_structure(*mesh);
        });
        Vector b = zeros(matrix.rows);
        phases.assembly = timed("assembly", [&] { assemble(*mesh, matrix, b); });
        timed("Dirichlet conditions", [&] { impose_dirichlet(*mesh, matrix, b); });
        Halo halo(*mesh);
        Product product(matrix, *mesh, halo, settings.overlap);
        facts = facts_of(matrix, halo, job.ranks);

        traffic = product.traffic();
        double vectors = 3 * sizeof(double) * static_cast<double>(matrix.rows);
        limit_bytes = limit_triad_bytes(traffic + vectors);
        phases.total.add(start, assay::Instant::now());
        std::unique_ptr<triad_limit, void (*)(triad_limit *)> triad(limit_triad_make(MPI_COMM_WORLD,
                                                                                     limit_bytes),
                                                                    limit_triad_free);
        bouts.emplace(MPI_COMM_WORLD, MOST_ITERATIONS,
                      [&triad] { return limit_triad(triad.get(), LIMIT_WINDOWS); });

        const assay::Instant resumed = assay::Instant::now();
        solution = solve(*mesh, product, b, *bouts, job.rank == 0);
        phases.total.add(resumed, assay::Instant::now());
        phases.total.subtract(bouts->paused());
        phases.total.subtract(solution.times.checked);
        // Structure, assembly and Dirichlet conditions are a run each.
        assay::require_runs("all phases", phases.total, 3 + solution.times.total.runs);
        take_slowest("total", phases.total);

        double norm_of_b = std::sqrt(dot(matrix.rows, b, b));
        marks = take_fingerprint(b, solution);
        residual = check_residual(*mesh, halo, solution, norm_of_b);
        if (settings.verify_solution)
            centre = check_centre(*mesh, solution, norm_of_b);
    }
    SolverTimes &times = solution.times;
    take_slowest("WAXPY", times.waxpy);
    take_slowest("DOT", times.dot);
    take_slowest("MATVEC", times.matvec);
    take_slowest("CG", times.total);
    assay::print_time("iterations", times.iterations, MPI_MAX);
    assay::print_time("first WAXPY", times.first_waxpy, MPI_MAX);
    assay::print_time("first DOT", times.first_dot, MPI_MAX);
    assay::print_time("first MATVEC", times.first_matvec, MPI_MAX);
    // Without what the limit took.
    Spread memory = spread_over_ranks(resident_kilobytes() - limit_bytes / 1024, job.ranks);
    Flops flops = flops_of_iteration(n, facts.nonzeros);
    assay::print_windows("MATVEC", "Gflop/s", bouts->windows(MATVEC), 1e-9 * flops.matvec);
    assay::print_windows("DOT", "Gflop/s", bouts->windows(DOT), 1e-9 * flops.dot);
    assay::print_windows("WAXPY", "Gflop/s", bouts->windows(WAXPY), 1e-9 * flops.waxpy);
    assay::print_windows("CG", "Gflop/s", bouts->windows(ITERATION), 1e-9 * flops.total());
    print_in_caches(job);
    assay::OfLimit limit = bouts->of_limit(spread_over_ranks(traffic, job.ranks).mean * job.ranks);

    bool passed = say_verdict(solution, residual, centre, job.rank == 0);
    if (job.rank == 0) {
        print_fingerprint(marks, solution);
        assay::print_limit("MATVEC", "triad", "GB/s", limit);
        std::string name =
            write_report({ job, settings, difference, facts, phases, solution, residual, centre,
                           limit, memory.mean * job.ranks, memory.high, passed });
        std::printf("Report: %s\n", name.c_str());
    }
    return assay::finish(passed);
}
