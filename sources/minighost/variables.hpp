// The variables of this rank's part of the mesh, each with one layer of halo around it.
//
// There is one grid more than variables: a stencil writes to the spare one, which then changes
// places with the grid that was read. Nothing is ever copied back, as upstream does.
#ifndef MINIGHOST_VARIABLES_HPP
#define MINIGHOST_VARIABLES_HPP

#include <cstddef>
#include <vector>

#include "domain.hpp"

namespace minighost {

// Where point (x, y, z) of a grid is: at x + y * row + z * plane, halo at 0 and n + 1.
struct Layout {
    int n[3];
    std::ptrdiff_t row, plane;
    std::ptrdiff_t grid; // from one grid to the next

    explicit Layout(const Domain &domain);
    std::ptrdiff_t stride(int direction) const
    {
        return direction == 0 ? 1 : direction == 1 ? row : plane;
    }
    double bytes(int variables) const;
};

// The rows of a thread: y from y0 to y1 and z from z0 to z1, the ends not included.
struct Share {
    int y0, y1, z0, z1;
};

// The same division among threads everywhere: who first touches a row works on it.
Share share_of(const Layout &layout, int thread, int threads);

class Variables {
public:
    // All points have the value, the halo is zero.
    Variables(const Layout &layout, int count, double value);
    ~Variables();
    Variables(const Variables &) = delete;
    Variables &operator=(const Variables &) = delete;

    double *operator[](int variable) { return at(slots_[variable]); }
    double *spare() { return at(slots_.back()); }
    // The spare grid becomes the variable's, and the other way round.
    void swap_with_spare(int variable);

    const Layout &layout() const { return layout_; }
    int count() const { return static_cast<int>(slots_.size()) - 1; }
    double *memory() { return at(0); }
    // Place in memory, in grids, of a variable.
    int slot(int variable) const { return slots_[variable]; }

private:
    double *at(int slot) const;

    Layout layout_;
    std::vector<int> slots_;
    double *memory_;
};

} // namespace minighost

#endif
