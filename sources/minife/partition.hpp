// The mesh cut into one box of elements for each rank.
#ifndef MINIFE_PARTITION_HPP
#define MINIFE_PARTITION_HPP

#include <array>
#include <cstdint>
#include <vector>

namespace minife {

enum Axis { X, Y, Z, AXES };

// Half open: low <= i < high.
struct Box {
    std::array<int, AXES> low, high;

    int size(int axis) const { return high[axis] - low[axis]; }
    std::int64_t volume() const
    {
        for (int axis = X; axis < AXES; axis++)
            if (size(axis) <= 0)
                return 0;
        return std::int64_t{ size(X) } * size(Y) * size(Z);
    }
    bool contains(int x, int y, int z) const
    {
        return low[X] <= x && x < high[X] && low[Y] <= y && y < high[Y] && low[Z] <= z &&
               z < high[Z];
    }
};

Box intersection(const Box &a, const Box &b);

// How far the ranks' shares differ, in per cent of the average.
struct Imbalance {
    float largest, deviation;
};

// Recursive coordinate bisection: the ranks are halved, and the box in proportion, along z, y, x and
// so on; then faces are moved until the largest difference is at least `load_imbalance` per cent or
// nothing can be moved. A function of its arguments only, so that each rank knows all boxes.
std::vector<Box> partition(const std::array<int, AXES> &elements, int ranks, float load_imbalance);

Imbalance imbalance(const std::vector<Box> &boxes);

} // namespace minife

#endif
