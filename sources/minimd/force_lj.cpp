// Lennard-Jones: 4 epsilon ((sigma / r)^12 - (sigma / r)^6), cut off without a shift.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "application.hpp"
#include "force.hpp"

namespace minimd {

namespace {

class LennardJones : public Force {
public:
    explicit LennardJones(const Settings &settings)
        : epsilon(settings.epsilon), sigma6(std::pow(settings.sigma, 6)),
          cut_off(settings.force_cut)
    {
    }

    void compute(Atoms &atoms, const Neighbours &neighbours, Ghosts &) override
    {
        run<false>(atoms, neighbours);
        assay::ran();
    }

    Sums compute_with_sums(Atoms &atoms, const Neighbours &neighbours, Ghosts &) override
    {
        Sums sums = run<true>(atoms, neighbours);
        assay::ran();
        return sums;
    }

    // Of a pair in a list: 3 differences and 5 for the squared distance. Within the cut-off: 1
    // reciprocal, 3 for sigma^6 / r^6, 5 for the force over r, 6 to add its components to one atom,
    // and in half lists 3 to take them from the other (the products are there already).
    double operations(const Pairs &pairs, const Neighbours &neighbours) const override
    {
        return 8 * pairs.listed + (neighbours.half() ? 18 : 15) * pairs.inside;
    }

    double cut() const override { return cut_off; }

    double interruption() const override { return blocks.interruption(); }

    double energy_at_cut() const override { return pair_energy(cut_off); }

    double crystal_energy(const std::vector<double> &distances) const override
    {
        double energy = 0;
        for (double r : distances)
            if (r < cut_off)
                energy += 0.5 * (pair_energy(r) - energy_at_cut());
        return energy;
    }

private:
    double pair_energy(double r) const
    {
        return 4 * epsilon * (sigma6 * sigma6 * std::pow(r, -12) - sigma6 * std::pow(r, -6));
    }

    template <bool SUMS>
    Sums run(Atoms &atoms, const Neighbours &neighbours);
    template <bool SUMS, bool HALF>
    Sums run_part(const double *x, double *f, int own, const Neighbours &neighbours, int thread);

    double epsilon, sigma6, cut_off;
    SharedRows shared;
    Blocks blocks;
};

template <bool SUMS>
Sums LennardJones::run(Atoms &atoms, const Neighbours &neighbours)
{
    const double *x = atoms.x.data();
    double *f = atoms.f.data();
    std::vector<Sums> sums(static_cast<std::size_t>(neighbours.threads()));
    blocks.begin(neighbours.threads());
    if (neighbours.half()) {
        shared.sum(f, neighbours, atoms.all() + 1, [&](int thread, double *rows) {
            sums[thread] = run_part<SUMS, true>(x, rows, atoms.local, neighbours, thread);
        });
    } else {
#pragma omp parallel for schedule(static, 1)
        for (int thread = 0; thread < neighbours.threads(); thread++)
            sums[thread] = run_part<SUMS, false>(x, f, atoms.local, neighbours, thread);
    }
    Sums total;
    for (const Sums &one : sums) {
        total.energy += one.energy;
        total.virial += one.virial;
        total.inside += one.inside;
    }
    return total;
}

template <bool SUMS, bool HALF>
Sums LennardJones::run_part(const double *x, double *f, int own, const Neighbours &neighbours,
                            int thread)
{
    const Lanes cut_squared = all(cut_off * cut_off), s6 = all(sigma6), one = all(1);
    const Lanes repulsion = all(48 * epsilon), half = all(0.5);
    LongSum energies, virials;
    double insides = 0;
    Neighbours::Range range = neighbours.atoms_of(thread);
    for (int first = range.first; first < range.last; first += Blocks::ATOMS) {
        const int last = std::min(first + Blocks::ATOMS, range.last);
        const double start = omp_get_wtime();
        for (int i = first; i < last; i++) {
            Neighbours::List list = neighbours.of(thread, i);
            const double *at = x + ROW * static_cast<std::size_t>(i);
            const Lanes xi = all(at[0]), yi = all(at[1]), zi = all(at[2]);
            Lanes fx{}, fy{}, fz{}, energy{}, virial{}, inside{};
            for (int n = 0; n < list.count; n += LANES) {
                const int *names = list.names + n;
                Columns other = gather(x, names);
                Lanes dx = xi - other.c0, dy = yi - other.c1, dz = zi - other.c2;
                Lanes squared = dx * dx + dy * dy + dz * dz;
                Mask near = squared < cut_squared;
                Lanes inverse = one / squared;
                Lanes ratio = inverse * inverse * inverse * s6;
                Lanes force = repulsion * ratio * (ratio - half) * inverse; // over the distance
                force = near ? force : Lanes{};
                Lanes px = dx * force, py = dy * force, pz = dz * force;
                fx += px;
                fy += py;
                fz += pz;
                if (HALF)
                    subtract(f, names, px, py, pz);
                if (SUMS) {
                    // Pairs in two lists, or on two ranks, count by half in each.
                    Lanes weight = near ? one : Lanes{};
                    for (int l = 0; l < LANES; l++)
                        if (!HALF || (!neighbours.ghost_newton_on() && names[l] >= own))
                            weight[l] *= 0.5;
                    energy += weight * (ratio * (ratio - one));
                    virial += weight * (squared * force);
                    inside += weight;
                }
            }
            if (SUMS) {
                energies.add(sum(energy));
                virials.add(sum(virial));
                insides += sum(inside);
            }
            double *to = f + ROW * static_cast<std::size_t>(i);
            if (HALF) {
                to[0] += sum(fx);
                to[1] += sum(fy);
                to[2] += sum(fz);
            } else {
                to[0] = sum(fx);
                to[1] = sum(fy);
                to[2] = sum(fz);
                to[3] = 0;
            }
        }
        blocks.took(thread, omp_get_wtime() - start, last - first);
    }
    return { 4 * epsilon * energies.value(), virials.value(), insides };
}

} // namespace

void Blocks::begin(int count)
{
    threads.resize(static_cast<std::size_t>(count));
    for (Thread &thread : threads) {
        thread.all = 0;
        thread.whole.clear();
    }
}

double Blocks::interruption() const
{
    double all = 0, undisturbed = 0;
    for (const Thread &thread : threads) {
        all = std::max(all, thread.all);
        if (thread.whole.empty())
            return 0;
        std::vector<double> whole = thread.whole;
        auto middle = whole.begin() + static_cast<std::ptrdiff_t>(whole.size() / 2);
        std::nth_element(whole.begin(), middle, whole.end());
        double last = thread.all - std::accumulate(whole.begin(), whole.end(), 0.0);
        undisturbed = std::max(undisturbed, *middle * static_cast<double>(whole.size()) +
                                                std::min(last, *middle));
    }
    return std::max(all - undisturbed, 0.0);
}

std::unique_ptr<Force> make_lennard_jones(const Settings &settings)
{
    return std::make_unique<LennardJones>(settings);
}

Pairs count_pairs(const Atoms &atoms, const Neighbours &neighbours, double cut)
{
    const double *x = atoms.x.data();
    double listed = 0, inside = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : listed, inside)
    for (int thread = 0; thread < neighbours.threads(); thread++) {
        Neighbours::Range range = neighbours.atoms_of(thread);
        for (int i = range.first; i < range.last; i++) {
            Neighbours::List list = neighbours.of(thread, i);
            const double *at = x + ROW * static_cast<std::size_t>(i);
            for (int n = 0; n < list.count && list.names[n] != atoms.nobody(); n++) {
                const double *other = x + ROW * static_cast<std::size_t>(list.names[n]);
                double squared = 0;
                for (int d = 0; d < 3; d++)
                    squared += (at[d] - other[d]) * (at[d] - other[d]);
                listed++;
                inside += squared < cut * cut;
            }
        }
    }
    return { listed, inside };
}

} // namespace minimd
