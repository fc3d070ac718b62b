// HPL: solves a random dense system of linear equations by LU factorisation with partial pivoting,
// on a block-cyclic distribution over a grid of processes. Reads HPL.dat, prints HPL's report.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include "application.hpp"
#include "blas.h"
#include "input.hpp"
#include "report.hpp"
#include "residual.hpp"
#include "solver.hpp"

namespace {

using namespace hpl;

constexpr const char *HELP =
    "usage: hpl [--help] [--version]\n"
    "\n"
    "Solves A x = b for a random matrix A of order N and prints time, Gflop/s and the scaled\n"
    "residual. What to run stands in HPL.dat in the working directory, in the format of HPL 2.3:\n"
    "lists of N, NB, P x Q and variants, of which all combinations are run.\n"
    "\n"
    "Threads: OMP_NUM_THREADS for each rank. A run takes 8 N^2 bytes over all ranks.\n"
    "Exit code: 0, 1 if a residual is too large, 2 for wrong input, 4 if the system fails.\n"
    "\n"
    "examples:\n"
    "  mpirun -n 4 hpl                      with P = 2 and Q = 2 in HPL.dat\n"
    "  OMP_NUM_THREADS=8 mpirun -n 2 hpl    with P = 1 and Q = 2\n";

// The blocks that this N is cut into: longer ones would be one block all the same.
int block_of(const Test &test)
{
    return std::min(test.nb, test.n + 1);
}

// All combinations for one process grid, in HPL's order.
std::vector<Test> tests_of(const Input &input, std::size_t grid)
{
    std::vector<Test> tests;
    for (int n : input.n)
        for (int nb : input.nb)
            for (int depth : input.depth)
                for (int bcast : input.bcast)
                    for (int rfact : input.rfact)
                        for (int pfact : input.pfact)
                            for (int nbmin : input.nbmin)
                                for (int ndiv : input.ndiv)
                                    tests.push_back({ n, nb, input.p[grid], input.q[grid], depth,
                                                      bcast, rfact, ndiv, pfact, nbmin });
    return tests;
}

// The limit is measured with at most so large a matrix: memory is well outside the caches then.
constexpr int LARGEST_LIMIT = 4096;
// Operations of a thread in a slice of it: some 50 ms.
constexpr double LIMIT_OPERATIONS = 2.5e9;

struct LimitSize {
    int n, k;
};

LimitSize limit_size(const Test &test)
{
    int n = std::clamp(test.n / std::max(test.p, test.q), 1, LARGEST_LIMIT);
    return { n, std::min(test.nb, n) };
}

// Collective: the same on all ranks, of which some may have fewer threads.
int limit_products(const LimitSize &size, int threads, MPI_Comm comm)
{
    MPI_Allreduce(MPI_IN_PLACE, &threads, 1, MPI_INT, MPI_MIN, comm);
    double operations = 2.0 * size.n * size.n * size.k;
    return static_cast<int>(std::clamp(LIMIT_OPERATIONS * threads / operations, 3.0, 50.0));
}

const Test &largest_of(const std::vector<Test> &tests)
{
    return *std::max_element(tests.begin(), tests.end(),
                             [](const Test &a, const Test &b) { return a.n < b.n; });
}

void require_memory(const Input &input, int threads)
{
    double most = 0;
    for (std::size_t i = 0; i < input.p.size(); i++) {
        Grid grid(input.p[i], input.q[i], input.row_major);
        if (!grid.inside())
            continue;
        const std::vector<Test> tests = tests_of(input, i);
        LimitSize limit = limit_size(largest_of(tests));
        for (const Test &test : tests) {
            int block = block_of(test);
            most = std::max(most, limit_dgemm_bytes(limit.n, limit.k) +
                                      Matrix::bytes(grid, test.n, block) +
                                      solve_bytes(grid, test.n, block, threads));
        }
    }
    int n = *std::max_element(input.n.begin(), input.n.end());
    char remedy[128];
    std::snprintf(remedy, sizeof remedy,
                  "use an N smaller than %d in line 6 of HPL.dat, or more hosts", n);
    assay::require_memory(most, remedy);
}

double greatest(double value, MPI_Comm comm)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, comm);
    return value;
}

// What the times are held against: without `greatest`, which these rest on.
double greatest_of_all(double value, MPI_Comm comm)
{
    int ranks;
    MPI_Comm_size(comm, &ranks);
    std::vector<double> all(ranks);
    MPI_Allgather(&value, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, comm);
    return *std::max_element(all.begin(), all.end());
}

void take_slowest(Timing &timing, MPI_Comm comm)
{
    Phases &phases = timing.phases;
    timing.parts = greatest_of_all(phases.factor.seconds + phases.wait.seconds +
                                       phases.update.seconds + phases.substitute.seconds,
                                   comm);
    for (assay::Time *time :
         { &timing.whole, &phases.factor, &phases.wait, &phases.update, &phases.substitute }) {
        time->seconds = greatest(time->seconds, comm);
        time->least = greatest_of_all(time->least, comm);
        time->most = greatest_of_all(time->most, comm);
    }
}

// Where ranks are, and what their broadcasts did: what was asked for shows in neither answer nor time.
void take_ways(Timing &timing, const Grid &grid)
{
    int ranks;
    MPI_Comm_size(grid.all, &ranks);
    timing.place[0] = grid.row;
    timing.place[1] = grid.column;
    MPI_Bcast(timing.place, 2, MPI_INT, std::min(1, ranks - 1), grid.all);
    std::vector<long> &sent = timing.phases.passed_on;
    MPI_Allreduce(MPI_IN_PLACE, sent.data(), static_cast<int>(sent.size()), MPI_LONG, MPI_SUM,
                  grid.all);
}

// Collective over the grid. Returns the Gflop/s.
double run(const Test &test, const Input &input, const Grid &grid, assay::Bouts &bouts,
           long first_step, Report &report, Tally &tally)
{
    Matrix matrix(grid, test.n, block_of(test));
    matrix.generate();

    Algorithm algorithm = { test.depth, static_cast<Topology>(test.bcast), test.nbmin, test.ndiv };
    Timing timing = {};
    MPI_Barrier(grid.all);
    timing.began = std::time(nullptr);
    const double paused_before = bouts.paused().seconds;
    const assay::Instant start = assay::Instant::now();
    Buffer x = solve(matrix, algorithm, timing.phases, bouts, first_step);
    timing.whole.add(start, assay::Instant::now());
    const double paused = bouts.paused().seconds - paused_before;
    timing.whole.subtract({ paused, paused, paused });
    const Phases &phases = timing.phases;
    assay::require_runs("all phases", timing.whole,
                        phases.factor.runs + phases.wait.runs + phases.update.runs +
                            phases.substitute.runs);
    // Each panel is waited for, and before it until its memory is free.
    assay::require_runs("the waits", phases.wait, 2L * panels_of(test.n, block_of(test)));
    take_slowest(timing, grid.all);
    take_ways(timing, grid);
    timing.ended = std::time(nullptr);
    report.result(test, timing);

    bool passed = true;
    if (input.threshold > 0) {
        Residual residual = check(matrix, x.data());
        passed = residual.scaled < input.threshold; // false, too, of what is no number
        report.verdict(residual, greatest_multiplier(matrix, algorithm), passed);
    }
    (passed ? tally.passed : tally.failed)++;
    return gflops(test.n, timing.whole.seconds);
}

std::FILE *open_report(const Input &input, int rank)
{
    std::FILE *file = nullptr;
    if (rank == 0)
        file = input.device == 6   ? stdout
               : input.device == 7 ? stderr
                                   : std::fopen(input.output_file.c_str(), "w");
    int error = rank == 0 && !file ? errno : 0;
    MPI_Bcast(&error, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (error)
        assay::refuse("HPL.dat, line 3: cannot write the output file %s: %s",
                      input.output_file.c_str(), std::strerror(error));
    return file;
}

// What the tests on a grid reached.
struct Reached {
    double gflops = 0; // of the fastest test
    assay::Windows factorisation, update;
    assay::Work factorised, updated;
    assay::OfLimit limit;
};

// Collective over the grid. All tests, with DGEMM in between on the same ranks and with blocks of the
// same size.
Reached run_all(const std::vector<Test> &tests, const Input &input, const Grid &grid,
                const assay::Job &job, Report &report, Tally &tally)
{
    const LimitSize size = limit_size(largest_of(tests));
    const int products = limit_products(size, job.threads, grid.all);
    std::unique_ptr<dgemm, void (*)(dgemm *)> limit(dgemm_make(size.n, size.k), dgemm_free);
    if (!limit)
        assay::fail("cannot allocate three matrices of order %d to measure the limit", size.n);
    long steps = 0;
    for (const Test &test : tests)
        steps += panels_of(test.n, block_of(test));
    assay::Bouts bouts(grid.all, steps,
                       [&] { return limit_dgemm(grid.all, limit.get(), products); });

    long step = 0;
    Reached reached;
    for (const Test &test : tests) {
        double gflops = run(test, input, grid, bouts, step, report, tally);
        reached.gflops = std::max(reached.gflops, gflops);
        step += panels_of(test.n, block_of(test));
    }
    bouts.end();
    reached.factorisation = bouts.windows(FACTORISATION);
    reached.update = bouts.windows(UPDATE);
    reached.factorised = bouts.work(FACTORISATION);
    reached.updated = bouts.work(UPDATE);
    reached.limit = bouts.of_limit(1);
    return reached;
}

} // namespace

int main(int argc, char **argv)
{
    assay::Job job = assay::start(&argc, &argv, "hpl", HELP);
    if (argc > 1)
        assay::refuse("unknown argument %s: what to run stands in HPL.dat (see --help)", argv[1]);
    if (const char *why = blas_start())
        assay::fail("%s", why);
    const Input input = read_input(job.ranks);
    require_memory(input, job.threads);

    std::FILE *file = open_report(input, job.rank);
    Report report(file, input);
    report.parameters(job.ranks, job.threads, blas_name());
    Tally tally;
    Reached best;
    for (std::size_t i = 0; i < input.p.size(); i++) {
        Grid grid(input.p[i], input.q[i], input.row_major);
        if (!grid.inside())
            continue;
        Reached reached = run_all(tests_of(input, i), input, grid, job, report, tally);
        if (reached.gflops > best.gflops)
            best = reached;
    }
    MPI_Bcast(&tally, sizeof tally, MPI_BYTE, 0, MPI_COMM_WORLD);
    report.summary(tally);
    if (file && file != stdout && file != stderr)
        std::fclose(file);
    assay::print_windows("factorisation", "Gflop/s", best.factorisation, 1e-9);
    assay::print_windows("update", "Gflop/s", best.update, 1e-9);
    assay::print_work("factorisation", best.factorised);
    assay::print_work("update", best.updated);
    assay::print_limit("HPL", "DGEMM", "Gflop/s", best.limit);
    return assay::finish(tally.failed == 0);
}
