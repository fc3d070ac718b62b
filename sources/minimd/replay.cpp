#include "replay.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>

#include "eam_potential.hpp"

namespace minimd {

namespace {

std::size_t three(int i)
{
    return 3 * static_cast<std::size_t>(i);
}

double squared_distance(const double *a, const double *b, const double *shift)
{
    double squared = 0;
    for (int d = 0; d < 3; d++) {
        double difference = a[d] - (b[d] + shift[d]);
        squared += difference * difference;
    }
    return squared;
}

Motion over_ranks(Motion own)
{
    double sums[Motion::NUMBERS] = { own.atoms, own.mass_velocity2 };
    std::copy_n(own.waves, Motion::WAVES, sums + 2);
    MPI_Allreduce(MPI_IN_PLACE, sums, Motion::NUMBERS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    Motion all{ sums[0], sums[1] };
    std::copy_n(sums + 2, Motion::WAVES, all.waves);
    return all;
}

} // namespace

void Motion::add(const double (&period)[3], double mass, const double *at, const double *speed)
{
    double phase = 0;
    for (int d = 0; d < 3; d++) {
        double turns = std::floor(period[d] / (1 + 0.3 * d)) + 1;
        phase += turns * at[d] / period[d];
        mass_velocity2 += mass * speed[d] * speed[d];
    }
    phase *= 2 * std::acos(-1.0);
    atoms++;
    waves[0] += std::cos(phase);
    waves[1] += std::sin(phase);
    for (int d = 0; d < 3; d++)
        waves[2 + d] += speed[d] * std::cos(phase);
}

double Motion::difference(const Motion &other, double mass) const
{
    double speed = std::sqrt(other.mass_velocity2 / mass / other.atoms);
    double sum = std::fabs(mass_velocity2 / other.mass_velocity2 - 1);
    for (int w = 0; w < WAVES; w++)
        sum += std::fabs(waves[w] - other.waves[w]) / other.atoms / (w < 2 ? 1 : speed);
    return atoms == other.atoms ? sum : INFINITY;
}

Motion motion_of(const Atoms &atoms, const Domain &domain, const std::vector<char> &chosen)
{
    Motion motion;
    for (std::size_t i = 0; i < static_cast<std::size_t>(atoms.local); i++)
        if (chosen.empty() || chosen[i])
            motion.add(domain.period, atoms.mass, &atoms.x[ROW * i], &atoms.v[ROW * i]);
    return over_ranks(motion);
}

Replay::Replay(const Settings &settings, const Domain &domain, const Atoms &atoms,
               const Force &force, const Units &units)
    : settings(settings), eam(force.embedded_atoms()), cut(force.cut()),
      mass(eam ? eam->mass : atoms.mass), inertia(mass * units.mass_velocity2_to_energy)
{
    double edge = std::cbrt(MOST_ATOMS / settings.density);
    for (int d = 0; d < 3; d++) {
        period[d] = domain.period[d];
        half_edge[d] = static_cast<double>(atoms.total) > MOST_ATOMS && edge < period[d] ? edge / 2
                                                                                         : 0;
    }
    gather(atoms);
    make_lists();
    forces();
}

double Replay::bytes(const Settings &settings, double atoms, int ranks)
{
    double sphere = 4.0 / 3.0 * std::acos(-1.0) * std::pow(settings.neighbour_cut, 3);
    double others = settings.density * sphere * 1.1;
    double all = std::min(atoms, MOST_ATOMS), own = all / ranks + 1;
    // Vectors that grow have up to twice what is in them, and the half of it while they move.
    return 3 * (all * (10 * sizeof(double) + sizeof(int)) +
                own * (15 * sizeof(double) + others * sizeof(Pair)));
}

// Whether a place is in the cube, and so far from its end.
bool Replay::followed(const double *at, double depth) const
{
    for (int d = 0; d < 3; d++)
        if (half_edge[d] > 0 && std::fabs(at[d] - period[d] / 2) >= half_edge[d] - depth)
            return false;
    return true;
}

void Replay::gather(const Atoms &atoms)
{
    // A force is felt one list further with each computation; through the densities, two.
    const double depth = (STEPS + 1) * (eam ? 2 : 1) * settings.neighbour_cut;
    std::vector<double> own;
    for (int i = 0; i < atoms.local; i++) {
        const double *at = &atoms.x[ROW * static_cast<std::size_t>(i)];
        const double *speed = &atoms.v[ROW * static_cast<std::size_t>(i)];
        compared.push_back(followed(at, depth));
        if (followed(at, 0)) {
            own.insert(own.end(), at, at + 3);
            own.insert(own.end(), speed, speed + 3);
        }
    }
    int rank, ranks, values = static_cast<int>(own.size());
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    counts.resize(ranks);
    starts.resize(ranks);
    MPI_Allgather(&values, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
    int all = 0;
    for (int r = 0; r < ranks; r++) {
        starts[r] = all;
        all += counts[r];
    }
    std::vector<double> rows(static_cast<std::size_t>(all));
    MPI_Allgatherv(own.data(), values, MPI_DOUBLE, rows.data(), counts.data(), starts.data(),
                   MPI_DOUBLE, MPI_COMM_WORLD);

    int total = all / 6;
    auto share = [&](int r) { return static_cast<int>(static_cast<long>(total) * r / ranks); };
    for (int r = 0; r < ranks; r++) {
        starts[r] = 3 * share(r);
        counts[r] = 3 * (share(r + 1) - share(r));
    }
    first = share(rank);
    last = share(rank + 1);
    for (int i = 0; i < total; i++) {
        const double *row = &rows[2 * three(i)];
        x.insert(x.end(), row, row + 3);
        if (i >= first && i < last) {
            v.insert(v.end(), row + 3, row + 6);
            inside.push_back(followed(row, depth));
        }
    }
    f.resize(v.size());
    embedded.resize(static_cast<std::size_t>(total));
}

// The atoms of each cell, no smaller than the lists' reach where there is more than one.
struct Replay::Cells {
    int count[3];
    double low[3], edge[3];
    std::vector<std::vector<int>> atoms;

    Cells(const Replay &of)
    {
        for (int d = 0; d < 3; d++) {
            bool whole = of.half_edge[d] == 0;
            double length = whole ? of.period[d] : 2 * of.half_edge[d];
            low[d] = whole ? 0 : of.period[d] / 2 - of.half_edge[d];
            count[d] = std::max(1, static_cast<int>(length / of.settings.neighbour_cut));
            edge[d] = length / count[d];
        }
        atoms.resize(static_cast<std::size_t>(count[0]) * count[1] * count[2]);
        for (int i = 0; 3 * static_cast<std::size_t>(i) < of.x.size(); i++) {
            const double *at = &of.x[three(i)];
            atoms[index(place(at, 0), place(at, 1), place(at, 2))].push_back(i);
        }
    }
    int place(const double *at, int d) const
    {
        return std::clamp(static_cast<int>((at[d] - low[d]) / edge[d]), 0, count[d] - 1);
    }
    std::size_t index(int a, int b, int c) const
    {
        return (static_cast<std::size_t>(c) * count[1] + b) * count[0] + a;
    }
};

// Of each atom of the share all others, and images of itself, within reach.
void Replay::make_lists()
{
    start.clear();
    pairs.clear();
    images.clear();
    Cells cells(*this);
    int reach[3];
    for (int d = 0; d < 3; d++)
        reach[d] = static_cast<int>(std::ceil(settings.neighbour_cut / cells.edge[d]));
    auto image_of = [&](const int (&turns)[3]) {
        double shift[3];
        for (int d = 0; d < 3; d++)
            shift[d] = turns[d] * period[d];
        for (std::size_t known = 0; known < images.size(); known += 3)
            if (std::equal(shift, shift + 3, &images[known]))
                return static_cast<int>(known / 3);
        images.insert(images.end(), shift, shift + 3);
        return static_cast<int>(images.size() / 3) - 1;
    };
    const double squared_cut = settings.neighbour_cut * settings.neighbour_cut;
    for (int i = first; i < last; i++) {
        start.push_back(pairs.size());
        const double *at = &x[three(i)];
        int by[3];
        for (by[2] = -reach[2]; by[2] <= reach[2]; by[2]++)
            for (by[1] = -reach[1]; by[1] <= reach[1]; by[1]++)
                for (by[0] = -reach[0]; by[0] <= reach[0]; by[0]++) {
                    int place[3], turns[3];
                    bool exists = true;
                    for (int d = 0; d < 3; d++) {
                        int far = cells.place(at, d) + by[d];
                        turns[d] = static_cast<int>(std::floor(1.0 * far / cells.count[d]));
                        place[d] = far - turns[d] * cells.count[d];
                        exists = exists && (turns[d] == 0 || half_edge[d] == 0);
                    }
                    if (!exists)
                        continue;
                    int image = image_of(turns);
                    bool same = turns[0] == 0 && turns[1] == 0 && turns[2] == 0;
                    for (int j : cells.atoms[cells.index(place[0], place[1], place[2])])
                        if (!(same && j == i) &&
                            squared_distance(at, &x[three(j)], &images[three(image)]) <=
                                squared_cut)
                            pairs.push_back({ j, image });
                }
    }
    start.push_back(pairs.size());
}

// Collective. In place the first count and type mean nothing, but MUST 1.9 holds them against what the
// other ranks receive.
static void gather_parts(std::vector<double> &values, int own, const std::vector<int> &counts,
                         const std::vector<int> &starts)
{
    MPI_Allgatherv(MPI_IN_PLACE, own, MPI_DOUBLE, values.data(), counts.data(), starts.data(),
                   MPI_DOUBLE, MPI_COMM_WORLD);
}

// Collective.
void Replay::embed()
{
#pragma omp parallel for schedule(static)
    for (int i = 0; i < last - first; i++) {
        double density = 0;
        for (std::size_t p = start[i]; p < start[i + 1]; p++) {
            double squared = squared_distance(&x[three(first + i)], &x[three(pairs[p].other)],
                                              &images[three(pairs[p].image)]);
            if (squared < cut * cut)
                density += eam->density(std::sqrt(squared));
        }
        embedded[first + i] = eam->embedding.slope(density);
    }
    std::vector<int> atoms, from;
    for (std::size_t r = 0; r < counts.size(); r++) {
        atoms.push_back(counts[r] / 3);
        from.push_back(starts[r] / 3);
    }
    gather_parts(embedded, last - first, atoms, from);
}

double Replay::force_over_distance(double squared, double embedded_of_both) const
{
    if (eam) {
        double r = std::sqrt(squared), pair = eam->pair_times_radius(r) / r;
        double pair_slope = (eam->pair_times_radius.slope(r) - pair) / r;
        return -(embedded_of_both * eam->density.slope(r) + pair_slope) / r;
    }
    double ratio = settings.sigma * settings.sigma / squared;
    double power6 = ratio * ratio * ratio;
    return 24 * settings.epsilon * (2 * power6 * power6 - power6) / squared;
}

// Collective.
void Replay::forces()
{
    if (eam)
        embed();
    const double squared_cut = cut * cut;
    double twice_virial = 0;
#pragma omp parallel for schedule(static) reduction(+ : twice_virial)
    for (int i = 0; i < last - first; i++) {
        const double *at = &x[three(first + i)];
        double force[3] = {};
        for (std::size_t p = start[i]; p < start[i + 1]; p++) {
            const double *other = &x[three(pairs[p].other)];
            const double *shift = &images[three(pairs[p].image)];
            double squared = squared_distance(at, other, shift);
            if (!(squared < squared_cut))
                continue;
            double of_both = embedded[first + i] + embedded[pairs[p].other];
            double over_distance = force_over_distance(squared, of_both);
            twice_virial += over_distance * squared;
            for (int d = 0; d < 3; d++)
                force[d] += over_distance * (at[d] - (other[d] + shift[d]));
        }
        std::copy(force, force + 3, &f[three(i)]);
    }
    own_virial = twice_virial / 2;
}

double Replay::virial() const
{
    double all;
    MPI_Allreduce(&own_virial, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

// Velocity Verlet, in the form that needs the acceleration alone.
void Replay::step(bool renews)
{
    const double dt = settings.timestep;
    std::vector<double> before = f;
    for (std::size_t c = 0; c < v.size(); c++)
        x[three(first) + c] += dt * v[c] + dt * dt / (2 * inertia) * f[c];
    gather_parts(x, 3 * (last - first), counts, starts);
    if (renews) { // places in the box again
        for (std::size_t c = 0; c < x.size(); c++)
            x[c] -= period[c % 3] * std::floor(x[c] / period[c % 3]);
        make_lists();
    }
    forces();
    for (std::size_t c = 0; c < v.size(); c++)
        v[c] += dt / (2 * inertia) * (before[c] + f[c]);
}

Motion Replay::motion() const
{
    Motion motion;
    for (int i = 0; i < last - first; i++)
        if (inside[i])
            motion.add(period, mass, &x[three(first + i)], &v[three(i)]);
    return over_ranks(motion);
}

} // namespace minimd
