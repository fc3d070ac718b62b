// minimd: molecular dynamics in the style of miniMD (see docs/minimd.md).
#include <mpi.h>
#include <omp.h>

#include <climits>
#include <cstdio>
#include <memory>
#include <string>

#include "application.hpp"
#include "settings.hpp"
#include "simulation.hpp"

namespace minimd {

namespace {

struct Spread {
    double least, mean, most;
};

Spread over_ranks(double value, int ranks)
{
    Spread spread{ value, value, value };
    MPI_Allreduce(MPI_IN_PLACE, &spread.least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &spread.mean, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &spread.most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    spread.mean /= ranks;
    return spread;
}

// Before anything large is allocated.
void require_room(const Settings &settings, const Domain &domain, int ranks)
{
    double own = settings.density, all = settings.density, box = settings.density;
    for (int d = 0; d < 3; d++) {
        box *= domain.period[d];
        own *= domain.high[d] - domain.low[d];
        all *= domain.high[d] - domain.low[d] + 2 * settings.neighbour_cut;
    }
    int threads = omp_get_max_threads();
    double rows = sizeof(double) * ROW * all;
    double bytes = 6 * rows + 4 * sizeof(int) * all +
                   Neighbours::bytes(settings, domain, own, all, threads);
    if (settings.half && threads > 1)
        bytes += 2 * rows; // what threads sum by themselves
    bytes += Replay::bytes(settings, box, ranks);
    assay::require_memory(bytes, "use a smaller --size or more hosts");

    double grid = Neighbours::bins_of(settings, domain);
    double most = std::max(all, grid);
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (most > INT_MAX / 2)
        assay::refuse("a rank would have %.3g atoms or bins, more than it can count; use more "
                      "ranks",
                      most);
}

void print_setup(const Settings &settings, const Domain &domain, const Atoms &atoms,
                 const Spread &threads, int ranks, const std::string &potential)
{
    const double *period = domain.period;
    const int *cells = settings.cells, *bins = settings.bins;
    std::printf("# Run Settings:\n");
    std::printf("\t# MPI processes: %d\n", ranks);
    if (threads.least == threads.most)
        std::printf("\t# OpenMP threads: %.0f\n", threads.most);
    else
        std::printf("\t# OpenMP threads: %.0f (least %.0f, of all ranks %.0f)\n", threads.most,
                    threads.least, threads.mean * ranks);
    std::printf("\t# Rank grid: %d %d %d\n", domain.grid[0], domain.grid[1], domain.grid[2]);
    std::printf("\t# Inputfile: %s\n", settings.input[0] ? settings.input : "None");
    std::printf("\t# Datafile: None\n");
    std::printf("# Physics Settings:\n");
    std::printf("\t# ForceStyle: %s\n", settings.eam ? "EAM" : "LJ");
    if (settings.eam)
        std::printf("\t# Potential: %s\n", potential.c_str());
    std::printf("\t# Force Parameters: %2.2f %2.2f\n", settings.epsilon, settings.sigma);
    std::printf("\t# Units: %s\n", settings.metal ? "METAL" : "LJ");
    std::printf("\t# Atoms: %ld\n", atoms.total);
    std::printf("\t# System size: %2.2f %2.2f %2.2f (unit cells: %d %d %d)\n", period[0], period[1],
                period[2], cells[0], cells[1], cells[2]);
    std::printf("\t# Density: %f\n", settings.density);
    std::printf("\t# Force cutoff: %f\n", settings.force_cut);
    std::printf("\t# Timestep size: %f\n", settings.timestep);
    std::printf("# Technical Settings:\n");
    std::printf("\t# Neigh cutoff: %f\n", settings.neighbour_cut);
    std::printf("\t# Half neighborlists: %d\n", settings.half);
    std::printf("\t# Neighbor bins: %d %d %d\n", bins[0], bins[1], bins[2]);
    std::printf("\t# Neighbor frequency: %d\n", settings.neighbour_every);
    std::printf("\t# Sorting frequency: %d\n", settings.sort_every);
    std::printf("\t# Thermo frequency: %d\n", settings.thermo_every);
    std::printf("\t# Ghost Newton: %d\n", settings.ghost_newton);
    std::printf("\t# Size of float: %zu\n\n", sizeof(double));
}

// Collective.
void print_performance(const Settings &settings, Simulation &simulation, const Atoms &atoms,
                       const Spread &threads, const assay::Job &job)
{
    const Times &own = simulation.times();
    double total = own.total.seconds;
    MPI_Bcast(&total, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    Spread force = over_ranks(own.force.seconds, job.ranks);
    Spread lists = over_ranks(own.neighbours.seconds, job.ranks);
    Spread messages = over_ranks(own.communication.seconds, job.ranks);
    Spread moving = over_ranks(own.moving.seconds, job.ranks);
    Spread atoms_of_ranks = over_ranks(atoms.local, job.ranks);
    Spread ghosts_of_ranks = over_ranks(atoms.ghosts, job.ranks);

    // Counted once, of the last state: lists and distances change little after the first steps.
    Pairs pairs = simulation.pairs();
    double sums[] = { pairs.listed, pairs.inside, simulation.operations(pairs) };
    MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (job.rank == 0) {
        double other = total - force.mean - lists.mean - messages.mean;
        double rate = static_cast<double>(atoms.total) * settings.steps / total;
        std::printf("\n\n# Performance Summary:\n");
        std::printf("# MPI_proc OMP_threads nsteps natoms t_total t_force t_neigh t_comm t_other "
                    "performance perf/thread grep_string t_extra\n");
        std::printf("%d %.0f %d %ld %f %f %f %f %f %f %f PERF_SUMMARY %f\n\n", job.ranks,
                    threads.most, settings.steps, atoms.total, total, force.mean, lists.mean,
                    messages.mean, other, rate, rate / (threads.mean * job.ranks), moving.mean);
        auto spread = [](const char *name, const Spread &of) {
            std::printf("# %s of ranks: least %g mean %g most %g\n", name, of.least, of.mean,
                        of.most);
        };
        spread("Force time", force);
        spread("Neighbour time", lists);
        spread("Communication time", messages);
        spread("Atoms", atoms_of_ranks);
        spread("Ghosts", ghosts_of_ranks);
        std::printf("# Pairs: %.0f in lists, %.0f within the cut-off, %.6g operations a step\n\n",
                    sums[0], sums[1], sums[2]);
    }
    assay::print_time("total", own.total, MPI_OP_NULL);
    assay::print_time("force", own.force, MPI_SUM);
    assay::print_time("force of the slowest", own.force, MPI_MAX);
    assay::print_time("force with sums", own.force_with_sums, MPI_SUM);
    assay::print_time("neighbour", own.neighbours, MPI_SUM);
    assay::print_time("communication", own.communication, MPI_SUM);
    for (const auto &[step, time] : simulation.rows())
        assay::print_time(("table to step " + std::to_string(step)).c_str(), time, MPI_OP_NULL);
    const assay::Bouts &windows = simulation.windows();
    auto count = static_cast<double>(atoms.total);
    const double interrupted = over_ranks(own.interrupted, job.ranks).mean;
    if (job.rank == 0)
        std::printf("Interruptions of the force: %.6f s\n", interrupted);
    assay::print_windows("force", "atom-steps/s", windows.windows(FORCE), count);
    assay::print_windows("whole force", "atom-steps/s", windows.windows(WHOLE_FORCE), count);
    assay::print_windows("neighbour", "atom-lists/s", windows.windows(NEIGHBOURS), count);
    assay::print_limit("force", "vector", "Gflop/s", windows.of_limit(sums[2]));
}

} // namespace

} // namespace minimd

int main(int argc, char **argv)
{
    using namespace minimd;
    auto job = assay::start(&argc, &argv, "minimd", help);
    Settings settings = read_settings(argc, argv);
    Domain domain = divide(settings, job.rank, job.ranks);
    require_room(settings, domain, job.ranks);
    Units units = units_of(settings);

    if (job.rank == 0)
        std::printf("# miniMD Implementation: assay %s (MPI+OpenMP)\n# Create System:\n",
                    assay::version());
    Atoms atoms;
    std::string potential;
    std::unique_ptr<Force> force = settings.eam ? make_eam(settings, atoms, potential)
                                                : make_lennard_jones(settings);
    create_atoms(settings, domain, units, atoms);
    Spread threads = over_ranks(omp_get_max_threads(), job.ranks);
    if (job.rank == 0) {
        std::printf("# Done ....\n");
        print_setup(settings, domain, atoms, threads, job.ranks, potential);
    }

    Simulation simulation(settings, domain, units, *force, atoms, job.rank);
    simulation.run();
    print_performance(settings, simulation, atoms, threads, job);
    return assay::finish(simulation.verdict().print());
}
