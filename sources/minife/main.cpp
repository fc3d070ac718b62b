// miniFE: the course of a run.
//
// The equations of steady heat conduction with a source, -laplacian(u) = 1 on the unit cube, u = 1 at
// the face x = 1 and u = 0 at the others, are assembled element by element and solved by conjugate
// gradients. Each phase is timed; afterwards the answer is checked, and the machine's bandwidth
// measured, which is what the product of matrix and vector is held against.
#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>

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

// The triad's arrays need not be larger than this to be out of any cache.
constexpr double MOST_LIMIT_BYTES = 8 * GIB;
constexpr double LIMIT_SECONDS = 0.2;

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
    double bytes = 27 * rows * (sizeof(double) + sizeof(int)) +
                   rows * sizeof(std::int64_t) + // matrix
                   5 * rows * sizeof(double) + numbered * sizeof(int) + // vectors, mesh
                   (numbered - rows) * (2 * sizeof(double) + 2 * sizeof(int)); // halo
    assay::require_memory(bytes, "use a smaller mesh");
    if (spread_over_ranks(numbered, job.ranks).high > INT_MAX)
        assay::refuse(
            "%d x %d x %d elements on %d ranks are more than 2^31 nodes on one rank; use more "
            "ranks",
            n[X], n[Y], n[Z], job.ranks);
}

double slowest(double seconds)
{
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

// Does a phase, and tells how long the slowest rank took.
template <typename Phase>
double timed(const assay::Job &job, const char *name, Phase &&phase)
{
    double start = MPI_Wtime();
    phase();
    double seconds = slowest(MPI_Wtime() - start);
    if (job.rank == 0)
        std::printf("%-24s %.6f s\n", name, seconds);
    return seconds;
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

} // namespace

int main(int argc, char **argv)
{
    assay::Job job = assay::start(&argc, &argv, "miniFE", help);
    const double start = MPI_Wtime();
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
    std::optional<CentreCheck> centre;
    double traffic, working_set;
    {
        std::optional<Mesh> mesh;
        Matrix matrix;
        phases.structure = timed(job, "Matrix structure:", [&] {
            mesh.emplace(n, boxes, job.rank);
            matrix = matrix_structure(*mesh);
        });
        Vector b = zeros(matrix.rows);
        phases.assembly = timed(job, "Assembly:", [&] { assemble(*mesh, matrix, b); });
        timed(job, "Dirichlet conditions:", [&] { impose_dirichlet(*mesh, matrix, b); });
        Halo halo(*mesh);
        Product product(matrix, *mesh, halo, settings.overlap);
        facts = facts_of(matrix, halo, job.ranks);

        solution = solve(*mesh, product, b, job.rank == 0);
        phases.total = slowest(MPI_Wtime() - start);

        traffic = product.traffic();
        working_set = traffic + 3 * sizeof(double) * static_cast<double>(matrix.rows);
        double norm_of_b = std::sqrt(dot(matrix.rows, b, b));
        residual = check_residual(*mesh, halo, solution, norm_of_b);
        if (settings.verify_solution)
            centre = check_centre(*mesh, solution, norm_of_b);
    }
    SolverTimes &times = solution.times;
    for (double *seconds :
         { &times.waxpy, &times.dot, &times.matvec, &times.fastest_matvec, &times.total })
        *seconds = slowest(*seconds);
    Spread memory = spread_over_ranks(resident_kilobytes(), job.ranks);

    // Now the matrix's memory is free again for the triad's arrays.
    Limit limit;
    auto limit_bytes = static_cast<std::size_t>(std::min(working_set, MOST_LIMIT_BYTES));
    limit.triad = limit_triad(MPI_COMM_WORLD, limit_bytes, LIMIT_SECONDS);
    // The limit is the best of many repeats as well: a passing disturbance is no slow product.
    limit.achieved = spread_over_ranks(traffic, job.ranks).mean * job.ranks / times.fastest_matvec;

    bool passed = say_verdict(solution, residual, centre, job.rank == 0);
    if (job.rank == 0) {
        assay::print_limit("MATVEC", "triad", "GB/s", 1e-9 * limit.triad, 1e-9 * limit.achieved);
        std::string name =
            write_report({ job, settings, difference, facts, phases, solution, residual, centre,
                           limit, memory.mean * job.ranks, memory.high, passed });
        std::printf("Report: %s\n", name.c_str());
    }
    return assay::finish(passed);
}
