// An oracle. On a mesh with cold boundaries, a mode sin(a x) sin(b y) sin(c z) is only multiplied
// by a known factor in each step. So the share of a mode in a variable is known at any time, and
// unlike the sum it tells where the heat is: heat that went to the wrong place is found, too.
#ifndef MINIGHOST_MODES_HPP
#define MINIGHOST_MODES_HPP

#include <vector>

#include "source.hpp"
#include "variables.hpp"

namespace minighost {

class Modes {
public:
    // The mode with half a wave in each direction, and those with a whole wave in one of them,
    // which see what is shifted along it.
    static constexpr int COUNT = 4;

    // The variables have the value everywhere.
    Modes(const Options &options, const Domain &domain, double start);

    // What happens to the shares.
    void add(const Spike &spike);
    void step();
    double expected(int variable, int mode) const { return expected_[variable][mode]; }

    // Adds up the shares that this rank's part of a grid has.
    void measure(const Layout &layout, const double *grid, double shares[COUNT]) const;

private:
    static int waves(int mode, int direction) { return mode == direction + 1 ? 2 : 1; }
    double angle(int mode, int direction) const;

    Domain domain_;
    double factors_[COUNT];
    std::vector<std::vector<double>> expected_;
    // By direction and waves - 1: the sines at this rank's points.
    std::vector<double> sines_[3][2];
};

} // namespace minighost

#endif
