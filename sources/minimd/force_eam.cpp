// Embedded atoms: densities and their embedding energies first, then forces.
//
// Each rank keeps pairs of an own atom and a ghost itself (no ghost newton), so that only the
// derivative of the embedding energy has to be sent, in the fourth column of the positions.
#include <cmath>

#include "application.hpp"
#include "eam_potential.hpp"
#include "force.hpp"

namespace minimd {

namespace {

using Whole = int __attribute__((vector_size(32)));

Lanes square_root(Lanes v)
{
    for (int l = 0; l < LANES; l++)
        v[l] = std::sqrt(v[l]);
    return v;
}

// Eight places in a table: their intervals, and where in them they are.
struct Places {
    Whole interval;
    Lanes t;

    Places(const Spline &spline, Lanes at)
    {
        Lanes scaled = at * spline.per_length;
        Lanes last = all(spline.intervals - 1);
        Lanes bounded = scaled < last ? scaled : last; // nobody is far beyond the table
        interval = __builtin_convertvector(bounded, Whole);
        t = scaled - __builtin_convertvector(interval, Lanes);
        t = t < all(1) ? t : all(1);
    }
};

Lanes value(const Columns &c, Lanes t)
{
    return ((c.c0 * t + c.c1) * t + c.c2) * t + c.c3;
}

Lanes slope(const Columns &c, Lanes t)
{
    return (3 * c.c0 * t + 2 * c.c1) * t + c.c2;
}

class EmbeddedAtom : public Force {
public:
    explicit EmbeddedAtom(EamPotential made) : potential(std::move(made)) {}

    void compute(Atoms &atoms, const Neighbours &neighbours, Ghosts &ghosts) override
    {
        run<false>(atoms, neighbours, ghosts);
        assay::ran();
    }

    Sums compute_with_sums(Atoms &atoms, const Neighbours &neighbours, Ghosts &ghosts) override
    {
        Sums sums = run<true>(atoms, neighbours, ghosts);
        assay::ran();
        return sums;
    }

    // Of a pair in a list: 8 for the squared distance, twice. Within the cut-off, for the density:
    // 1 root, 2 for the place in the table, 6 for the cubic, 1 sum, and in half lists another one;
    // for the force: 1 root, 2 for the place, 1 reciprocal, 7 for the density's slope, 6 and 7 for
    // the pair energy and its slope, 7 for the force over r, 6 to add its components to one atom,
    // and in half lists 3 to take them from the other.
    double operations(const Pairs &pairs, const Neighbours &neighbours) const override
    {
        return 16 * pairs.listed + (neighbours.half() ? 51 : 47) * pairs.inside;
    }

    double cut() const override { return potential.cut; }

    const EamPotential *embedded_atoms() const override { return &potential; }

    double energy_at_cut() const override { return pair_energy(potential.cut); }

    double crystal_energy(const std::vector<double> &distances) const override
    {
        double density = 0, energy = 0;
        for (double r : distances) {
            if (r >= potential.cut)
                continue;
            density += potential.density(r);
            energy += 0.5 * (pair_energy(r) - energy_at_cut());
        }
        return energy + potential.embedding(density);
    }

private:
    double pair_energy(double r) const { return potential.pair_times_radius(r) / r; }

    template <bool SUMS>
    Sums run(Atoms &atoms, const Neighbours &neighbours, Ghosts &ghosts);
    template <bool HALF>
    void densities_of_part(const double *x, double *to, const Neighbours &neighbours,
                           int thread) const;
    void embed(Atoms &atoms);
    template <bool SUMS, bool HALF>
    Sums forces_of_part(const double *x, double *f, int own, const Neighbours &neighbours,
                        int thread) const;

    static constexpr int EMBEDDING = 1; // column
    EamPotential potential;
    Buffer<double> density; // rows; the first column, and the energy that it makes
    SharedRows shared;
};

template <bool SUMS>
Sums EmbeddedAtom::run(Atoms &atoms, const Neighbours &neighbours, Ghosts &ghosts)
{
    const double *x = atoms.x.data();
    double *f = atoms.f.data();
    int rows = atoms.all() + 1;
    density.reserve(ROW * static_cast<std::size_t>(rows));
    std::vector<Sums> sums(static_cast<std::size_t>(neighbours.threads()));
    Sums total;
    if (neighbours.half()) {
        shared.sum(density.data(), neighbours, rows, [&](int thread, double *to) {
            densities_of_part<true>(x, to, neighbours, thread);
        });
        embed(atoms);
        ghosts.forward_fourth(atoms);
        shared.sum(f, neighbours, rows, [&](int thread, double *to) {
            sums[thread] = forces_of_part<SUMS, true>(x, to, atoms.local, neighbours, thread);
        });
    } else {
#pragma omp parallel for schedule(static, 1)
        for (int thread = 0; thread < neighbours.threads(); thread++)
            densities_of_part<false>(x, density.data(), neighbours, thread);
        embed(atoms);
        ghosts.forward_fourth(atoms);
#pragma omp parallel for schedule(static, 1)
        for (int thread = 0; thread < neighbours.threads(); thread++)
            sums[thread] = forces_of_part<SUMS, false>(x, f, atoms.local, neighbours, thread);
    }
    for (const Sums &one : sums) {
        total.energy += one.energy;
        total.virial += one.virial;
        total.inside += one.inside;
    }
    return total;
}

template <bool HALF>
void EmbeddedAtom::densities_of_part(const double *x, double *to, const Neighbours &neighbours,
                                     int thread) const
{
    const Lanes cut_squared = all(potential.cut * potential.cut);
    Neighbours::Range range = neighbours.atoms_of(thread);
    for (int i = range.first; i < range.last; i++) {
        Neighbours::List list = neighbours.of(thread, i);
        const double *at = x + ROW * static_cast<std::size_t>(i);
        const Lanes xi = all(at[0]), yi = all(at[1]), zi = all(at[2]);
        Lanes here{};
        for (int n = 0; n < list.count; n += LANES) {
            Columns other = gather(x, list.names + n);
            Lanes dx = xi - other.c0, dy = yi - other.c1, dz = zi - other.c2;
            Lanes squared = dx * dx + dy * dy + dz * dz;
            Places places(potential.density, square_root(squared));
            Lanes added = value(gather(potential.density.rows.data(), places.interval), places.t);
            added = squared < cut_squared ? added : Lanes{};
            here += added;
            if (HALF)
                subtract(to, list.names + n, -added, Lanes{}, Lanes{});
        }
        double &own = to[ROW * static_cast<std::size_t>(i)];
        own = (HALF ? own : 0) + sum(here);
    }
}

// The energy goes next to the density, its derivative into the fourth column of the positions.
void EmbeddedAtom::embed(Atoms &atoms)
{
    const Spline &spline = potential.embedding;
    double *x = atoms.x.data();
#pragma omp parallel for schedule(static)
    for (int i = 0; i < atoms.local; i++) {
        std::size_t row = ROW * static_cast<std::size_t>(i);
        double scaled = density[row] * spline.per_length;
        int interval = std::min(std::max(static_cast<int>(scaled), 0), spline.intervals - 1);
        double t = std::min(scaled - interval, 1.0);
        const double *c = spline.rows.data() + ROW * static_cast<std::size_t>(interval);
        density[row + EMBEDDING] = ((c[0] * t + c[1]) * t + c[2]) * t + c[3];
        x[row + 3] = ((3 * c[0] * t + 2 * c[1]) * t + c[2]) * spline.per_length;
    }
}

template <bool SUMS, bool HALF>
Sums EmbeddedAtom::forces_of_part(const double *x, double *f, int own, const Neighbours &neighbours,
                                  int thread) const
{
    const Lanes cut_squared = all(potential.cut * potential.cut), one = all(1);
    LongSum energies, virials;
    double insides = 0;
    Neighbours::Range range = neighbours.atoms_of(thread);
    for (int i = range.first; i < range.last; i++) {
        Neighbours::List list = neighbours.of(thread, i);
        const double *at = x + ROW * static_cast<std::size_t>(i);
        const Lanes xi = all(at[0]), yi = all(at[1]), zi = all(at[2]), embedded = all(at[3]);
        Lanes fx{}, fy{}, fz{}, energy{}, virial{}, inside{};
        for (int n = 0; n < list.count; n += LANES) {
            const int *names = list.names + n;
            Columns other = gather(x, names);
            Lanes dx = xi - other.c0, dy = yi - other.c1, dz = zi - other.c2;
            Lanes squared = dx * dx + dy * dy + dz * dz;
            Mask near = squared < cut_squared;
            Lanes distance = square_root(squared), inverse = one / distance;
            Places places(potential.density, distance); // the pair's table has the same ones
            Columns pair = gather(potential.pair_times_radius.rows.data(), places.interval);
            Lanes density_slope =
                slope(gather(potential.density.rows.data(), places.interval), places.t) *
                potential.density.per_length;
            Lanes phi = value(pair, places.t) * inverse;
            Lanes pair_slope = slope(pair, places.t) * potential.density.per_length;
            Lanes phi_slope = (pair_slope - phi) * inverse;
            Lanes force = -((embedded + other.c3) * density_slope + phi_slope) * inverse;
            force = near ? force : Lanes{};
            Lanes px = dx * force, py = dy * force, pz = dz * force;
            fx += px;
            fy += py;
            fz += pz;
            if (HALF)
                subtract(f, names, px, py, pz);
            if (SUMS) {
                Lanes weight = near ? one : Lanes{};
                for (int l = 0; l < LANES; l++)
                    if (!HALF || names[l] >= own)
                        weight[l] *= 0.5;
                energy += weight * (near ? phi : Lanes{});
                virial += weight * squared * force;
                inside += weight;
            }
        }
        if (SUMS) {
            energies.add(sum(energy) + density[ROW * static_cast<std::size_t>(i) + EMBEDDING]);
            virials.add(sum(virial));
            insides += sum(inside);
        }
        double *to = f + ROW * static_cast<std::size_t>(i);
        to[0] = (HALF ? to[0] : 0) + sum(fx);
        to[1] = (HALF ? to[1] : 0) + sum(fy);
        to[2] = (HALF ? to[2] : 0) + sum(fz);
        to[3] = 0;
    }
    return { energies.value(), virials.value(), insides };
}

} // namespace

std::unique_ptr<Force> make_eam(const Settings &settings, Atoms &atoms, std::string &potential)
{
    EamPotential made = make_eam_potential(settings);
    atoms.mass = made.mass;
    potential = made.description;
    return std::make_unique<EmbeddedAtom>(std::move(made));
}

} // namespace minimd
