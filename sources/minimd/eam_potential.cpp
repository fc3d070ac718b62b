#include "eam_potential.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "application.hpp"
#include "lanes.hpp"

namespace minimd {

Spline::Spline(const std::vector<double> &values, double spacing)
    : intervals(static_cast<int>(values.size()) - 1), per_length(1 / spacing)
{
    int last = intervals;
    // Slopes per interval: of fourth order inside, of lower order towards the ends.
    std::vector<double> slope(values.size());
    for (int m = 2; m <= last - 2; m++)
        slope[m] = ((values[m - 2] - values[m + 2]) + 8 * (values[m + 1] - values[m - 1])) / 12;
    slope[0] = values[1] - values[0];
    slope[1] = 0.5 * (values[2] - values[0]);
    slope[last - 1] = 0.5 * (values[last] - values[last - 2]);
    slope[last] = values[last] - values[last - 1];

    rows.reserve(ROW * values.size());
    for (int m = 0; m < last; m++) {
        double rise = values[m + 1] - values[m];
        double *row = rows.data() + ROW * static_cast<std::size_t>(m);
        row[0] = slope[m] + slope[m + 1] - 2 * rise;
        row[1] = 3 * rise - 2 * slope[m] - slope[m + 1];
        row[2] = slope[m];
        row[3] = values[m];
    }
}

Spline::Place Spline::place(double at) const
{
    double t = at * per_length;
    int m = std::min(std::max(static_cast<int>(t), 0), intervals - 1);
    return { rows.data() + ROW * static_cast<std::size_t>(m), std::min(t - m, 1.0) };
}

double Spline::operator()(double at) const
{
    auto [row, t] = place(at);
    return ((row[0] * t + row[1]) * t + row[2]) * t + row[3];
}

double Spline::slope(double at) const
{
    auto [row, t] = place(at);
    return ((3 * row[0] * t + 2 * row[1]) * t + row[2]) * per_length;
}

namespace {

EamPotential sutton_chen(double cut)
{
    constexpr double epsilon = 1.2382e-2, a = 3.61, c = 39.432; // eV, Angstrom
    constexpr int n = 9, m = 6;
    constexpr int points = 2001;
    constexpr double closest = 1; // Angstrom; atoms of copper never are, and the powers explode
    constexpr double densest = 1000; // ten times that of the crystal

    auto shifted_power = [&](double r, int power) {
        r = std::max(r, closest);
        double at_cut = std::pow(a / cut, power), slope = -power * at_cut / cut;
        return std::pow(a / r, power) - at_cut - (r - cut) * slope;
    };
    double spacing = cut / (points - 1), density_spacing = densest / (points - 1);
    std::vector<double> density, pair, embedding;
    for (int k = 0; k < points; k++) {
        double r = k * spacing;
        density.push_back(shifted_power(r, m));
        pair.push_back(r * epsilon * shifted_power(r, n));
        embedding.push_back(-epsilon * c * std::sqrt(k * density_spacing));
    }
    EamPotential potential;
    potential.mass = 63.546;
    potential.cut = cut;
    potential.embedding = Spline(embedding, density_spacing);
    potential.density = Spline(density, spacing);
    potential.pair_times_radius = Spline(pair, spacing);
    potential.description = "Sutton-Chen copper (computed)";
    return potential;
}

// The format funcfl of DYNAMO: a title; atomic number, mass, lattice constant and type; number of
// densities, their spacing, number of radii, their spacing, cut-off; then F(rho), Z(r) and rho(r).
struct Funcfl {
    struct {
        double mass, density_spacing, spacing, cut;
        int densities, radii;
        int right;
    } head = {};
    std::vector<double> values;

    void read(const char *name)
    {
        std::FILE *file = std::fopen(name, "r");
        if (!file)
            return;
        char line[1024];
        auto next = [&] { return std::fgets(line, sizeof line, file) != nullptr; };
        constexpr int most = 10000000;
        bool good = next() && next() && std::sscanf(line, "%*d %lf", &head.mass) == 1 && next() &&
                    std::sscanf(line, "%d %lf %d %lf %lf", &head.densities, &head.density_spacing,
                                &head.radii, &head.spacing, &head.cut) == 5 &&
                    head.mass > 0 && head.densities > 5 && head.densities < most &&
                    head.radii > 5 && head.radii < most && head.density_spacing > 0 &&
                    head.spacing > 0 && head.cut > 0;
        if (good) {
            double value;
            std::size_t wanted = static_cast<std::size_t>(head.densities) + 2UL * head.radii;
            while (values.size() < wanted && std::fscanf(file, "%lf", &value) == 1 &&
                   std::isfinite(value))
                values.push_back(value);
            head.right = values.size() == wanted;
        }
        std::fclose(file);
    }
};

EamPotential from_file(const Settings &settings)
{
    Funcfl file;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        file.read(settings.potential);
    MPI_Bcast(&file.head, sizeof file.head, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (!file.head.right)
        assay::refuse("--potential: '%s' is no whole file in the format funcfl; name one, or leave "
                      "the option out",
                      settings.potential);
    file.values.resize(static_cast<std::size_t>(file.head.densities) + 2UL * file.head.radii);
    MPI_Bcast(file.values.data(), static_cast<int>(file.values.size()), MPI_DOUBLE, 0,
              MPI_COMM_WORLD);
    if (file.head.cut > settings.neighbour_cut)
        assay::refuse("the cut-off of '%s', %g, is beyond that of the neighbour lists, %g; give a "
                      "larger --skin_distance",
                      settings.potential, file.head.cut, settings.neighbour_cut);

    // The last point of each table stays unused, as in miniMD: slopes near the end depend on it.
    auto values = file.values.begin();
    auto radii = values + file.head.densities, densities = radii + file.head.radii;
    std::vector<double> embedding(values, radii - 1), charge(radii, densities - 1);
    std::vector<double> density(densities, file.values.end() - 1), pair;
    constexpr double hartree = 27.2, bohr = 0.529; // eV, Angstrom, as the format has them
    for (double z : charge)
        pair.push_back(hartree * bohr * z * z);

    EamPotential potential;
    potential.mass = file.head.mass;
    potential.cut = file.head.cut;
    potential.embedding = Spline(embedding, file.head.density_spacing);
    potential.density = Spline(density, file.head.spacing);
    potential.pair_times_radius = Spline(pair, file.head.spacing);
    potential.description = settings.potential;
    return potential;
}

} // namespace

EamPotential make_eam_potential(const Settings &settings)
{
    return settings.potential[0] ? from_file(settings) : sutton_chen(settings.force_cut);
}

} // namespace minimd
