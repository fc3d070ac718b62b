#include "verdict.hpp"

#include <mpi.h>

#include <cmath>
#include <cstdio>

#include "domain.hpp"

namespace minimd {

namespace {

constexpr double CRYSTAL_BOUND = 1e-10; // of the energy; rounding is some 1e-14
constexpr double DRIFT_FACTOR = 0.25;
constexpr double UNSEEN_A_STEP = 5e-6; // of the kinetic energy
constexpr double GRADIENT_BOUND = 1e-4; // tables may jump at the cut-off, where few pairs pass
constexpr double MOMENTUM_BOUND = 1e-10;
// Some hundred terms of an atom, added up in another order.
constexpr double SUMS_BOUND = 1e-9;
// A wave's phase is 2 pi times the edge at most, and rounded as such.
constexpr double REPLAY_BOUND = 1e-14, REPLAY_LEAST = 100;
// Of the pairs, and some more where there are few: fast atoms may cross the skin unseen.
constexpr double PAIRS_BOUND = 1e-3, SOME_PAIRS = 5;

std::size_t row(int i)
{
    return ROW * static_cast<std::size_t>(i);
}

// From an atom of the FCC lattice to the others within a cut-off.
std::vector<double> distances_in_crystal(double density, double cut)
{
    double half = 0.5 * lattice_constant(density);
    int most = static_cast<int>(cut / half) + 1;
    std::vector<double> distances;
    for (int i = -most; i <= most; i++)
        for (int j = -most; j <= most; j++)
            for (int k = -most; k <= most; k++) {
                double distance = half * std::sqrt(i * i + j * j + k * k);
                if ((i + j + k) % 2 == 0 && distance > 0 && distance < cut)
                    distances.push_back(distance);
            }
    return distances;
}

} // namespace

Verdict::Verdict(const Settings &settings, const Units &units, const Force &force)
    : steps(settings.steps), timestep(settings.timestep), to_energy(units.mass_velocity2_to_energy),
      energy_at_cut(force.energy_at_cut()),
      crystal(force.crystal_energy(distances_in_crystal(settings.density, force.cut())))
{
}

void Verdict::state(const Atoms &atoms, double potential, double pairs_inside)
{
    double px = 0, py = 0, pz = 0, force2 = 0;
    const double *v = atoms.v.data(), *f = atoms.f.data();
#pragma omp parallel for reduction(+ : px, py, pz, force2) schedule(static)
    for (int i = 0; i < atoms.local; i++) {
        px += v[row(i)];
        py += v[row(i) + 1];
        pz += v[row(i) + 2];
        for (int d = 0; d < 3; d++)
            force2 += f[row(i) + d] * f[row(i) + d];
    }
    double sums[] = { px, py, pz, force2 };
    MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double velocity2 = mass_velocity2(atoms) / atoms.mass, count = static_cast<double>(atoms.total);
    kinetic = 0.5 * to_energy * atoms.mass * velocity2 / count;
    atoms_wanted = atoms.total;

    // What the equations of motion conserve is the energy of the potential that is 0 at the
    // cut-off: theirs is without the jump that a pair makes when it comes or goes.
    double of_potential = (potential - energy_at_cut * pairs_inside) / count;
    double energy = kinetic + of_potential;
    if (!started) {
        start = energy;
        start_of_potential = of_potential;
    }
    started = true;
    finite = finite && std::isfinite(energy);
    last = energy;
    drift = std::fmax(drift, std::fabs(energy - start));
    double kick = timestep * timestep * sums[3] / (atoms.mass * to_energy) / count;
    stiffness = std::fmax(stiffness, kick / kinetic);
    hottest = std::fmax(hottest, kinetic);
    double mean = std::sqrt(sums[0] * sums[0] + sums[1] * sums[1] + sums[2] * sums[2]) / count;
    momentum = std::fmax(momentum, mean / std::sqrt(velocity2 / count));
}

void Verdict::shown(double twice_kinetic)
{
    double twice = 2 * kinetic * static_cast<double>(atoms_wanted);
    anew(twice, twice_kinetic, twice);
}

void Verdict::finish(const Atoms &atoms, double gradient_error, double pairs_inside,
                     double pairs_anew, long messages_missing)
{
    double pairs[] = { pairs_anew, pairs_inside };
    MPI_Allreduce(MPI_IN_PLACE, pairs, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    pairs_counted = pairs[0];
    pairs_computed = pairs[1];
    long counts[] = { atoms.local, messages_missing };
    MPI_Allreduce(MPI_IN_PLACE, counts, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    atoms_wanted = atoms.total;
    atoms_found = counts[0];
    missing = counts[1];
    gradient = gradient_error;
}

void Verdict::anew(double energy, double sum, double other)
{
    double error = std::fabs(sum - other) / std::fabs(energy);
    sums = error <= sums ? sums : error; // also where it is no number
}

void Verdict::reached(int atoms_and_ghosts, Images images)
{
    double sums[] = { static_cast<double>(atoms_and_ghosts), images.least, images.most };
    MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    in_reach = sums[0];
    in_reach_least = sums[1];
    in_reach_most = sums[2];
}

void Verdict::replayed(double difference, const Domain &domain)
{
    double edge = std::fmax(domain.period[0], std::fmax(domain.period[1], domain.period[2]));
    replay = difference <= replay ? replay : difference; // also where it is no number
    replay_bound = REPLAY_BOUND * (REPLAY_LEAST + edge);
}

bool Verdict::print() const
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    // Verlet's method follows an energy that differs from the true one by
    // dt^2 (v.U''.v / 12 - F^2 / 24 m) in second order, and both terms are F^2 / m in the mean of
    // thermal equilibrium. So the two drift apart by (1/12 + 1/24) dt^2 F^2 / m at most, at the
    // highest temperature of the run, or by what the first term is at the start, where forces are
    // 0; twice that is allowed. And atoms that cross the skin between two makings of the lists do
    // so without a force, again and again.
    double curvature = std::fabs(start_curvature) / static_cast<double>(atoms_wanted);
    double most = DRIFT_FACTOR * std::fmax(stiffness * hottest, curvature) +
                  UNSEEN_A_STEP * steps * hottest + 1e-12 * std::fabs(start);
    bool crystalline = std::fabs(start_of_potential - crystal) <=
                       CRYSTAL_BOUND * std::fabs(crystal);
    bool conserved = finite && drift <= most, still = momentum <= MOMENTUM_BOUND;
    bool consistent = gradient <= GRADIENT_BOUND;
    bool complete = std::fabs(pairs_computed - pairs_counted) <=
                    PAIRS_BOUND * pairs_counted + SOME_PAIRS;
    bool whole = atoms_found == atoms_wanted, arrived = missing == 0;
    bool bordered = in_reach_least <= in_reach && in_reach <= in_reach_most;
    bool summed = sums <= SUMS_BOUND, followed = replay <= replay_bound;
    bool passed = summed && followed && crystalline && conserved && still && consistent &&
                  complete && bordered && whole && arrived;
    if (rank != 0)
        return passed;
    auto word = [](bool good) { return good ? "PASSED" : "FAILED"; };
    std::printf("# Verdict:\n");
    std::printf("\t# Crystal energy per atom: %.12e, from the lattice %.12e: %s\n",
                start_of_potential, crystal, word(crystalline));
    std::printf("\t# Energy per atom: %.9e at the start, %.9e at the end, drift %.3e, bound %.3e: "
                "%s\n",
                start, last, drift, most, word(conserved));
    std::printf("\t# Forces against the gradient of the energy: error %.3e, bound %.0e: %s\n",
                gradient, GRADIENT_BOUND, word(consistent));
    std::printf("\t# Momentum per atom: %.3e of a typical atom's, bound %.0e: %s\n", momentum,
                MOMENTUM_BOUND, word(still));
    std::printf("\t# Pairs within the cut-off at the end: %.0f in the lists, %.0f counted anew: "
                "%s\n",
                pairs_computed, pairs_counted, word(complete));
    std::printf("\t# Energy and virial at the end, anew: error %.3e, bound %.0e: %s\n", sums,
                SUMS_BOUND, word(summed));
    if (replay_bound > 0)
        std::printf("\t# First and last steps against a plain implementation: error %.3e, bound "
                    "%.1e: %s\n",
                    replay, replay_bound, word(followed));
    if (in_reach > 0)
        std::printf(
            "\t# Atoms and ghosts in reach at the end: %.0f, counted anew %.0f to %.0f: %s\n",
            in_reach, in_reach_least, in_reach_most, word(bordered));
    std::printf("\t# Atoms at the end: %ld of %ld: %s\n", atoms_found, atoms_wanted, word(whole));
    std::printf("\t# Messages that did not arrive: %ld: %s\n", missing, word(arrived));
    std::printf("\t# All: %s\n\n", word(passed));
    return passed;
}

} // namespace minimd
