// The difference stencils: a point becomes the mean of itself and its neighbours.
#ifndef MINIGHOST_STENCIL_HPP
#define MINIGHOST_STENCIL_HPP

#include <vector>

#include "domain.hpp"
#include "rows.hpp"
#include "variables.hpp"

namespace minighost {

// Of this rank, after one step of one variable.
struct Heat {
    double sum = 0;  // in the new grid
    double flux = 0; // that left the mesh in this step
};

// How many points the stencil joins.
int points_of(int stencil);

// In one step a mode sin(a x) sin(b y) sin(c z) that is zero on the boundary only changes by this
// factor. Arguments: the cosines of a, b and c.
double mode_factor(int stencil, double cos_a, double cos_b, double cos_c);

class Stencil {
public:
    Stencil(int kind, const Domain &domain, const Layout &layout);

    // One step: from grid `in`, whose halo is up to date, to grid `out`.
    Heat apply(const double *in, double *out, Stores stores);

    static bool can_stream();

private:
    template <class Kind> Heat sweep(const double *in, double *out, Stores stores);
    template <class Kind>
    Heat sweep_share(const double *in, double *out, Stores stores, const Share &share,
                     std::vector<double> &scratch) const;
    template <class Kind> double row_flux(const double *row, int y, int z) const;

    int kind_;
    Layout layout_;
    bool low_[3], high_[3]; // this rank is at that end of the mesh
    // Of each thread.
    std::vector<std::vector<double>> scratch_;
    std::vector<Heat> heat_;
};

} // namespace minighost

#endif
