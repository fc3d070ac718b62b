// The pairs within the cut-off, counted without neighbour lists.
#ifndef MINIMD_RECOUNT_HPP
#define MINIMD_RECOUNT_HPP

#include "atoms.hpp"

namespace minimd {

// Of this rank: pairs with ghosts count by half. From cells of its own, no smaller than the
// cut-off, so that it shares no mistake with the bins that lists are made from.
double recount_pairs(const Atoms &atoms, double cut);

} // namespace minimd

#endif
