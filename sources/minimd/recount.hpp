// Sums over the pairs of atoms, made without neighbour lists.
#ifndef MINIMD_RECOUNT_HPP
#define MINIMD_RECOUNT_HPP

#include "atoms.hpp"
#include "domain.hpp"
#include "force.hpp"
#include "settings.hpp"

namespace minimd {

struct Recount {
    double listed = 0, inside = 0;  // pairs within the reach of lists, and within the cut-off
    double energy = 0;
    double virial = 0; // of Lennard-Jones alone
};

// Of this rank: pairs with ghosts count by half. From cells of its own, no smaller than the reach
// of lists, so that it shares no mistake with the bins that lists are made from; energy and virial
// are of the formula as it stands in books.
Recount recount_pairs(const Atoms &atoms, const Settings &settings, const Force &force);

// How often the atoms of this rank, as images in the periodic box, are in reach of the ranks' parts, of
// which they are in one. At the very end of the reach rounding decides.
struct Images {
    double least = 0, most = 0;
};
Images images_in_reach(const Atoms &atoms, const Domain &domain, double reach);

} // namespace minimd

#endif
