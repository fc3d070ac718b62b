// A second oracle, of every point. The stencils with diagonals are the product of what they do along
// each direction, and so is the heat of a spike: three short arrays tell all of the mesh.
#ifndef MINIGHOST_SPREAD_HPP
#define MINIGHOST_SPREAD_HPP

#include <vector>

#include "domain.hpp"
#include "options.hpp"
#include "source.hpp"

namespace minighost {

class Spread {
public:
    // Of the first spike, which is put into a mesh without heat, after all steps.
    Spread(const Options &options, const Domain &domain, const Spike &spike);

    // Whether it tells the answer to what is asked for.
    static bool is_of(const Options &options);

    // Of the heat that was put in, what is at a point of this rank, from 1.
    double share(int x, int y, int z) const { return along_[0][x] * along_[1][y] * along_[2][z]; }

private:
    std::vector<double> along_[3];
};

} // namespace minighost

#endif
