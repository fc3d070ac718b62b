#include "recount.hpp"

#include "eam_potential.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace minimd {

namespace {

// Chains of the atoms and ghosts in each cell of the smallest box around them.
class Cells {
public:
    Cells(const double *x, int atoms, double cut) : x(x), cut(cut)
    {
        double high[3];
        for (int d = 0; d < 3; d++)
            low[d] = high[d] = atoms ? x[d] : 0;
        for (int i = 0; i < atoms; i++)
            for (int d = 0; d < 3; d++) {
                low[d] = std::min(low[d], at(i)[d]);
                high[d] = std::max(high[d], at(i)[d]);
            }
        // No more cells than a few for each atom, however far apart they are.
        double most = std::cbrt(atoms) + 1;
        for (int d = 0; d < 3; d++) {
            edge[d] = std::max(cut, (high[d] - low[d]) / most);
            count[d] = static_cast<int>((high[d] - low[d]) / edge[d]) + 1;
        }
        first.assign(static_cast<std::size_t>(count[0]) * count[1] * count[2], NONE);
        next.resize(static_cast<std::size_t>(atoms));
        for (int i = 0; i < atoms; i++) {
            int &head = first[cell(place(i, 0), place(i, 1), place(i, 2))];
            next[i] = head;
            head = i;
        }
    }

    // Calls `pair` with the squared distance of each other atom within reach.
    template <typename Pair>
    void around(int i, Pair pair) const
    {
        int from[3], to[3];
        for (int d = 0; d < 3; d++) {
            from[d] = std::max(place(i, d) - 1, 0);
            to[d] = std::min(place(i, d) + 1, count[d] - 1);
        }
        for (int c = from[2]; c <= to[2]; c++)
            for (int b = from[1]; b <= to[1]; b++)
                for (int a = from[0]; a <= to[0]; a++)
                    for (int j = first[cell(a, b, c)]; j != NONE; j = next[j])
                        if (double squared = distance(i, j); j != i && squared <= cut * cut)
                            pair(squared);
    }

private:
    static constexpr int NONE = -1;

    const double *at(int i) const { return x + ROW * static_cast<std::size_t>(i); }
    int place(int i, int d) const { return static_cast<int>((at(i)[d] - low[d]) / edge[d]); }
    std::size_t cell(int a, int b, int c) const
    {
        return (static_cast<std::size_t>(c) * count[1] + b) * count[0] + a;
    }
    double distance(int i, int j) const
    {
        double squared = 0;
        for (int d = 0; d < 3; d++)
            squared += (at(i)[d] - at(j)[d]) * (at(i)[d] - at(j)[d]);
        return squared;
    }

    const double *x;
    double cut, edge[3], low[3];
    int count[3];
    std::vector<int> first, next;
};

} // namespace

Recount recount_pairs(const Atoms &atoms, const Settings &settings, const Force &force)
{
    const double cut = force.cut();
    const EamPotential *eam = force.embedded_atoms();
    Cells cells(atoms.x.data(), atoms.all(), settings.neighbour_cut);
    double listed = 0, inside = 0, energy = 0, virial = 0;
#pragma omp parallel for schedule(static) reduction(+ : listed, inside, energy, virial)
    for (int i = 0; i < atoms.local; i++) {
        double density = 0;
        cells.around(i, [&](double squared) {
            listed++;
            if (!(squared < cut * cut))
                return;
            if (eam) {
                double r = std::sqrt(squared);
                inside++;
                density += eam->density(r);
                energy += eam->pair_times_radius(r) / r;
                return;
            }
            double power6 = std::pow(settings.sigma, 6) / (squared * squared * squared);
            inside++;
            energy += 4 * settings.epsilon * (power6 * power6 - power6);
            virial += 24 * settings.epsilon * (2 * power6 * power6 - power6);
        });
        if (eam)
            energy += 2 * eam->embedding(density); // which is no pair's
    }
    return { listed / 2, inside / 2, energy / 2, virial / 2 };
}

Images images_in_reach(const Atoms &atoms, const Domain &domain, double reach)
{
    auto within = [&domain](const double *x, double distance) {
        double images = 1;
        for (int d = 0; d < 3; d++) {
            const double period = domain.period[d], part = period / domain.grid[d];
            const int around = static_cast<int>(distance / period) + 1;
            int count = 0;
            for (int slot = 0; slot < domain.grid[d]; slot++)
                for (int turn = -around; turn <= around; turn++) {
                    const double from_middle = x[d] + turn * period - (slot + 0.5) * part;
                    count += std::fabs(from_middle) <= 0.5 * part + distance;
                }
            images *= count;
        }
        return images;
    };
    const double *x = atoms.x.data();
    double least = 0, most = 0;
#pragma omp parallel for schedule(static) reduction(+ : least, most)
    for (int i = 0; i < atoms.local; i++) {
        least += within(x + ROW * static_cast<std::size_t>(i), reach * (1 - 1e-9));
        most += within(x + ROW * static_cast<std::size_t>(i), reach * (1 + 1e-9));
    }
    return { least, most };
}

} // namespace minimd
