// HPL: solves a random dense system of linear equations by LU factorisation with partial pivoting,
// on a block-cyclic distribution over a grid of processes. Reads HPL.dat, prints HPL's report.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

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
constexpr double LIMIT_SECONDS = 0.5;

int limit_order(const Test &test)
{
    return std::clamp(test.n / std::max(test.p, test.q), 1, LARGEST_LIMIT);
}

void require_memory(const Input &input, int threads)
{
    double most = 0;
    for (std::size_t i = 0; i < input.p.size(); i++) {
        Grid grid(input.p[i], input.q[i], input.row_major);
        for (const Test &test : tests_of(input, i)) {
            if (!grid.inside())
                continue;
            int block = block_of(test), order = limit_order(test);
            most = std::max({ most, limit_dgemm_bytes(order, std::min(test.nb, order)),
                              Matrix::bytes(grid, test.n, block) +
                                  solve_bytes(grid, test.n, block, threads) });
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

// Collective over the grid. Returns the Gflop/s.
double run(const Test &test, const Input &input, const Grid &grid, Report &report, Tally &tally)
{
    Matrix matrix(grid, test.n, block_of(test));
    matrix.generate();

    Algorithm algorithm = { test.depth, static_cast<Topology>(test.bcast), test.nbmin, test.ndiv };
    Timing timing = {};
    MPI_Barrier(grid.all);
    timing.began = std::time(nullptr);
    double start = MPI_Wtime();
    Buffer x = solve(matrix, algorithm, timing.phases);
    timing.seconds = greatest(MPI_Wtime() - start, grid.all);
    timing.ended = std::time(nullptr);
    for (double *phase : { &timing.phases.factor, &timing.phases.wait, &timing.phases.update,
                           &timing.phases.substitute })
        *phase = greatest(*phase, grid.all);
    report.result(test, timing);

    bool passed = true;
    if (input.threshold > 0) {
        Residual residual = check(matrix, x.data());
        passed = residual.scaled < input.threshold; // false, too, of what is no number
        report.verdict(residual, passed);
    }
    (passed ? tally.passed : tally.failed)++;
    return gflops(test.n, timing.seconds);
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

// The fastest test, held against DGEMM on the same ranks, with a block of the same size.
void print_limit(const Test &test, const Input &input, double achieved)
{
    Grid grid(test.p, test.q, input.row_major);
    if (!grid.inside())
        return;
    int n = limit_order(test);
    double limit = limit_dgemm(grid.all, n, std::min(test.nb, n), LIMIT_SECONDS);
    assay::print_limit("HPL", "DGEMM", "Gflop/s", limit * 1e-9, achieved);
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
    struct {
        double gflops;
        Test test;
    } best = { 0, {} };
    for (std::size_t i = 0; i < input.p.size(); i++) {
        Grid grid(input.p[i], input.q[i], input.row_major);
        for (const Test &test : tests_of(input, i)) {
            if (!grid.inside())
                continue;
            double rate = run(test, input, grid, report, tally);
            if (rate > best.gflops)
                best = { rate, test };
        }
    }
    MPI_Bcast(&best, sizeof best, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(&tally, sizeof tally, MPI_BYTE, 0, MPI_COMM_WORLD);
    report.summary(tally);
    if (file && file != stdout && file != stderr)
        std::fclose(file);
    print_limit(best.test, input, best.gflops);
    return assay::finish(tally.failed == 0);
}
