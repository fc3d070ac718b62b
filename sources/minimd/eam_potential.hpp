// The tables of an embedded-atom potential: E = sum F(rho_i) + sum of pairs phi(r),
// rho_i = sum over the others of rho(r).
#ifndef MINIMD_EAM_POTENTIAL_HPP
#define MINIMD_EAM_POTENTIAL_HPP

#include <string>
#include <vector>

#include "buffer.hpp"
#include "settings.hpp"

namespace minimd {

// A function at equidistant points from 0, and a cubic through each interval with the slopes of
// its neighbours. An interval is a row: c3, c2, c1, c0 in ((c3 t + c2) t + c1) t + c0, 0 <= t <= 1.
struct Spline {
    Spline() = default;
    Spline(const std::vector<double> &values, double spacing);

    Buffer<double> rows;
    int intervals = 0;
    double per_length = 0; // reciprocal of the spacing

    double operator()(double at) const;
    double slope(double at) const;

private:
    struct Place {
        const double *row;
        double t;
    };
    Place place(double at) const;
};

struct EamPotential {
    double mass, cut;
    Spline embedding;         // F(rho)
    Spline density;           // rho(r)
    Spline pair_times_radius; // r phi(r)
    std::string description;
};

// Collective. From the file that the settings name, or computed: the copper of A. P. Sutton and
// J. Chen, Long-range Finnis-Sinclair potentials, Phil. Mag. Lett. 61 (1989) 139, with both of its
// functions of r shifted so that they and their slopes are 0 at the input's cut-off.
EamPotential make_eam_potential(const Settings &settings);

} // namespace minimd

#endif
