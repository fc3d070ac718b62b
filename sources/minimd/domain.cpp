#include "domain.hpp"

#include <cmath>
#include <limits>

namespace minimd {

namespace {

void choose_grid(const double (&period)[3], int ranks, int (&grid)[3])
{
    double least = std::numeric_limits<double>::infinity();
    for (int nx = 1; nx <= ranks; nx++) {
        if (ranks % nx)
            continue;
        for (int ny = 1; ny <= ranks / nx; ny++) {
            if (ranks / nx % ny)
                continue;
            int nz = ranks / nx / ny;
            double x = period[0] / nx, y = period[1] / ny, z = period[2] / nz;
            double surface = x * y + y * z + z * x;
            if (surface < least) {
                least = surface;
                grid[0] = nx;
                grid[1] = ny;
                grid[2] = nz;
            }
        }
    }
}

} // namespace

double lattice_constant(double density)
{
    return std::pow(4.0 / density, 1.0 / 3.0);
}

Domain divide(const Settings &settings, int rank, int ranks)
{
    Domain domain;
    for (int d = 0; d < 3; d++)
        domain.period[d] = settings.cells[d] * lattice_constant(settings.density);
    choose_grid(domain.period, ranks, domain.grid);

    const int *grid = domain.grid;
    domain.place[0] = rank / (grid[1] * grid[2]);
    domain.place[1] = rank / grid[2] % grid[1];
    domain.place[2] = rank % grid[2];
    int stride[3] = { grid[1] * grid[2], grid[2], 1 };
    for (int d = 0; d < 3; d++) {
        int place = domain.place[d];
        // The same expression on both sides of a face, or an atom could fall between two ranks.
        domain.low[d] = place * domain.period[d] / grid[d];
        domain.high[d] = (place + 1) * domain.period[d] / grid[d];
        int below = (place + grid[d] - 1) % grid[d], above = (place + 1) % grid[d];
        domain.neighbour[d][DOWN] = rank + (below - place) * stride[d];
        domain.neighbour[d][UP] = rank + (above - place) * stride[d];
    }
    return domain;
}

} // namespace minimd
