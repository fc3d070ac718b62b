#include "modes.hpp"

#include <cmath>

#include "stencil.hpp"

namespace minighost {

namespace {

const double PI = std::acos(-1.0);

} // namespace

Modes::Modes(const Options &options, const Domain &domain, double start)
    : domain_(domain), expected_(options.variables, std::vector<double>(COUNT, start))
{
    for (int mode = 0; mode < COUNT; mode++) {
        double cosines[3], all = 1;
        for (int d = 0; d < 3; d++) {
            double step = angle(mode, d);
            cosines[d] = std::cos(step);
            all *= waves(mode, d) == 1 ? 1 / std::tan(step / 2) : 0; // the sum of all sines
        }
        factors_[mode] = mode_factor(options.stencil, cosines[0], cosines[1], cosines[2]);
        for (std::vector<double> &shares : expected_)
            shares[mode] *= all;
    }
    for (int d = 0; d < 3; d++)
        for (int mode : { 0, d + 1 })
            for (int i = 0; i < domain.n[d]; i++)
                sines_[d][waves(mode, d) - 1].push_back(
                    std::sin(angle(mode, d) * static_cast<double>(domain.first[d] + i)));
}

double Modes::angle(int mode, int direction) const
{
    return PI * waves(mode, direction) / static_cast<double>(domain_.points[direction] + 1);
}

void Modes::add(const Spike &spike)
{
    for (int mode = 0; mode < COUNT; mode++) {
        double weight = 1;
        for (int d = 0; d < 3; d++)
            weight *= std::sin(angle(mode, d) * static_cast<double>(spike.place[d]));
        for (std::size_t v = 0; v < expected_.size(); v++)
            expected_[v][mode] += spike.heat[v] * weight;
    }
}

void Modes::step()
{
    for (std::vector<double> &shares : expected_)
        for (int mode = 0; mode < COUNT; mode++)
            shares[mode] *= factors_[mode];
}

void Modes::measure(const Layout &layout, const double *grid, double shares[COUNT]) const
{
    const int n = layout.n[0];
    const double *half = sines_[0][0].data(), *whole = sines_[0][1].data();
    double sums[COUNT] = {};
#pragma omp parallel for schedule(static) reduction(+ : sums[ : COUNT])
    for (int z = 1; z <= layout.n[2]; z++)
        for (int y = 1; y <= layout.n[1]; y++) {
            const double *row = grid + z * layout.plane + y * layout.row + 1;
            double in_half = 0, in_whole = 0;
#pragma omp simd reduction(+ : in_half, in_whole)
            for (int x = 0; x < n; x++) {
                in_half += half[x] * row[x];
                in_whole += whole[x] * row[x];
            }
            double half_y = sines_[1][0][y - 1], half_z = sines_[2][0][z - 1];
            sums[0] += in_half * half_y * half_z;
            sums[1] += in_whole * half_y * half_z;
            sums[2] += in_half * sines_[1][1][y - 1] * half_z;
            sums[3] += in_half * half_y * sines_[2][1][z - 1];
        }
    for (int mode = 0; mode < COUNT; mode++)
        shares[mode] += sums[mode];
}

} // namespace minighost
