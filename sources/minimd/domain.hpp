// The periodic box and its division over the ranks.
#ifndef MINIMD_DOMAIN_HPP
#define MINIMD_DOMAIN_HPP

#include "settings.hpp"

namespace minimd {

enum Side { DOWN, UP };

struct Domain {
    double period[3];          // edges of the whole box, which starts at 0
    int grid[3];               // of ranks
    int place[3];              // of this rank in it
    double low[3], high[3];    // this rank's part: low <= x < high
    int neighbour[3][2];       // ranks in each direction, down and up
};

// Divides the box so that the ranks' parts have the least surface, whatever the number of ranks.
Domain divide(const Settings &settings, int rank, int ranks);

// Edge of the cubic FCC cell, with four atoms in it.
double lattice_constant(double density);

} // namespace minimd

#endif
