// Sums over the pairs of atoms, made without neighbour lists.
#ifndef MINIMD_RECOUNT_HPP
#define MINIMD_RECOUNT_HPP

#include "atoms.hpp"
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

} // namespace minimd

#endif
