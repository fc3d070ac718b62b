#include "atoms.hpp"

#include <mpi.h>

#include <cmath>
#include <cstdint>

namespace minimd {

namespace {

// The minimal standard generator of S. K. Park and K. W. Miller, Random number generators: good
// ones are hard to find, Comm. ACM 31 (1988) 1192: seed <- 16807 seed mod (2^31 - 1).
class MinimalStandard {
public:
    explicit MinimalStandard(std::int64_t seed) : seed((seed - 1) % (modulus - 1) + 1) {}

    double next()
    {
        seed = 16807 * seed % modulus;
        return static_cast<double>(seed) * (1.0 / static_cast<double>(modulus));
    }

    // Sites next to each other have seeds next to each other: some numbers apart they differ.
    double later()
    {
        for (int i = 0; i < 5; i++)
            next();
        return next();
    }

private:
    static constexpr std::int64_t modulus = 2147483647;
    std::int64_t seed;
};

struct Range {
    int first, last;
};

// Half cells that may lie in this rank's part, rather one too many.
Range half_cells(const Settings &settings, const Domain &domain, double half, int d)
{
    int first = static_cast<int>(domain.low[d] / half) - 1;
    int last = static_cast<int>(domain.high[d] / half) + 1;
    return { std::max(first, 0), std::min(last, 2 * settings.cells[d] - 1) };
}

void fill_lattice(const Settings &settings, const Domain &domain, Atoms &atoms)
{
    double half = 0.5 * lattice_constant(settings.density);
    Range range[3];
    for (int d = 0; d < 3; d++)
        range[d] = half_cells(settings, domain, half, d);
    std::int64_t width = 2 * settings.cells[0], depth = 2 * settings.cells[1];
    auto inside = [&](double at, int d) { return at >= domain.low[d] && at < domain.high[d]; };

    int count = 0;
    for (int k = range[2].first; k <= range[2].last; k++)
        for (int j = range[1].first; j <= range[1].last; j++)
            for (int i = range[0].first; i <= range[0].last; i++) {
                double at[3] = { half * i, half * j, half * k };
                if ((i + j + k) % 2 || !inside(at[0], 0) || !inside(at[1], 1) || !inside(at[2], 2))
                    continue;
                atoms.x.reserve(ROW * (count + 1), ROW * count);
                atoms.v.reserve(ROW * (count + 1), ROW * count);
                MinimalStandard random((k * depth + j) * width + i + 1);
                for (int d = 0; d < 3; d++) {
                    atoms.x[ROW * count + d] = at[d];
                    atoms.v[ROW * count + d] = random.later();
                }
                atoms.x[ROW * count + 3] = atoms.v[ROW * count + 3] = 0;
                count++;
            }
    atoms.local = count;
    atoms.ghosts = 0;
    atoms.total = 4L * settings.cells[0] * settings.cells[1] * settings.cells[2];
}

void scale_velocities(const Settings &settings, const Units &units, Atoms &atoms)
{
    double mean[3] = {};
    for (int i = 0; i < atoms.local; i++)
        for (int d = 0; d < 3; d++)
            mean[d] += atoms.v[ROW * i + d];
    MPI_Allreduce(MPI_IN_PLACE, mean, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < atoms.local; i++)
        for (int d = 0; d < 3; d++)
            atoms.v[ROW * i + d] -= mean[d] / static_cast<double>(atoms.total);

    double factor = std::sqrt(settings.temperature / temperature(atoms, units));
    for (int i = 0; i < ROW * atoms.local; i++)
        atoms.v[i] *= factor;
}

} // namespace

void Atoms::reserve(int rows)
{
    std::size_t wanted = ROW * (static_cast<std::size_t>(rows) + 1);
    x.reserve(wanted, ROW * static_cast<std::size_t>(all()));
    v.reserve(wanted, ROW * static_cast<std::size_t>(local));
    f.reserve(wanted);
}

void Atoms::place_nobody()
{
    double *row = x.data() + ROW * static_cast<std::size_t>(nobody());
    row[0] = row[1] = row[2] = 1e10; // its square, and that one's reciprocal cubed, are numbers
    row[3] = 0;
}

// Metal: ps, Angstrom, eV, g/mol, K, bar.
Units units_of(const Settings &settings)
{
    if (!settings.metal)
        return { 1, 1, 1, 1 };
    // What miniMD prints as U in these units is no eV: twice 524287.985533 of them. The same here,
    // so that tables can be compared.
    return { 1.036427e-04, 8.617343e-05, 1.602176e+06, 2 * 524287.985533 };
}

double mass_velocity2(const Atoms &atoms)
{
    double total = 0;
    const double *v = atoms.v.data();
#pragma omp parallel for reduction(+ : total) schedule(static)
    for (int i = 0; i < atoms.local; i++) {
        const double *at = v + ROW * static_cast<std::size_t>(i);
        total += (at[0] * at[0] + at[1] * at[1] + at[2] * at[2]) * atoms.mass;
    }
    MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

double temperature(const Atoms &atoms, const Units &units)
{
    // The mean velocity is none of the degrees of freedom.
    double freedom = 3 * static_cast<double>(atoms.total) - 3;
    return units.mass_velocity2_to_energy * mass_velocity2(atoms) / (freedom * units.boltzmann);
}

void create_atoms(const Settings &settings, const Domain &domain, const Units &units, Atoms &atoms)
{
    fill_lattice(settings, domain, atoms);
    scale_velocities(settings, units, atoms);
}

} // namespace minimd
