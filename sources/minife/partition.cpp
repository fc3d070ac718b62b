#include "partition.hpp"

#include <algorithm>
#include <cmath>

namespace minife {

Box intersection(const Box &a, const Box &b)
{
    Box both;
    for (int axis = X; axis < AXES; axis++) {
        both.low[axis] = std::max(a.low[axis], b.low[axis]);
        both.high[axis] = std::min(a.high[axis], b.high[axis]);
    }
    return both;
}

namespace {

void bisect(const Box &box, int axis, int first, int ranks, std::vector<Box> &boxes)
{
    if (ranks == 1) {
        boxes[first] = box;
        return;
    }
    int lower = ranks / 2, upper = ranks - lower;
    // The upper part is rounded down.
    int upper_size = static_cast<int>(box.size(axis) * (static_cast<double>(upper) / ranks));
    int cut = box.high[axis] - upper_size;
    int next = (axis + 2) % AXES;
    Box part = box;
    part.high[axis] = cut;
    bisect(part, next, first, lower, boxes);
    part = box;
    part.low[axis] = cut;
    bisect(part, next, first + lower, upper, boxes);
}

// A face of a box that may be moved, and with it that of all boxes that end on the same plane.
struct Face {
    int axis = AXES; // none
    bool upper = true;
    bool exists() const { return axis != AXES; }
    int plane(const Box &box) const { return upper ? box.high[axis] : box.low[axis]; }
};

// From z down to x, the upper face first: one inside the mesh, of a box that can do without a layer
// if it is to shrink.
Face movable_face(const Box &whole, const Box &box, bool shrink)
{
    for (int axis = Z; axis >= X; axis--) {
        if (shrink && box.size(axis) <= 2)
            continue;
        if (box.high[axis] < whole.high[axis])
            return { axis, true };
        if (box.low[axis] > whole.low[axis])
            return { axis, false };
    }
    return {};
}

// Boxes that lose a layer when the plane moves by `step` have to keep one.
bool can_move(const std::vector<Box> &boxes, int axis, int plane, int step)
{
    return std::none_of(boxes.begin(), boxes.end(), [&](const Box &box) {
        int losing = step > 0 ? box.low[axis] : box.high[axis];
        return losing == plane && box.size(axis) < 2;
    });
}

void move(std::vector<Box> &boxes, int axis, int plane, int step)
{
    for (Box &box : boxes) {
        if (box.low[axis] == plane)
            box.low[axis] += step;
        if (box.high[axis] == plane)
            box.high[axis] += step;
    }
}

// Grows the last of the largest boxes, and shrinks the first of the smallest, by one layer.
bool unbalance(const Box &whole, std::vector<Box> &boxes)
{
    auto smaller = [](const Box &a, const Box &b) { return a.volume() < b.volume(); };
    Box smallest = *std::min_element(boxes.begin(), boxes.end(), smaller);
    Box largest = *std::max_element(boxes.rbegin(), boxes.rend(), smaller);

    struct Change {
        Face face;
        int plane, step;
        bool possible;
    };
    auto plan = [&](const Box &box, bool shrink) {
        Change change{ movable_face(whole, box, shrink), 0, 0, false };
        if (change.face.exists()) {
            change.plane = change.face.plane(box);
            change.step = change.face.upper != shrink ? 1 : -1;
            change.possible = can_move(boxes, change.face.axis, change.plane, change.step);
        }
        return change;
    };
    // Both are decided before either is done.
    Change changes[] = { plan(largest, false), plan(smallest, true) };
    bool changed = false;
    for (const Change &change : changes)
        if (change.possible) {
            move(boxes, change.face.axis, change.plane, change.step);
            changed = true;
        }
    return changed;
}

} // namespace

Imbalance imbalance(const std::vector<Box> &boxes)
{
    std::int64_t total = 0, least = boxes[0].volume(), most = least;
    for (const Box &box : boxes) {
        total += box.volume();
        least = std::min(least, box.volume());
        most = std::max(most, box.volume());
    }
    // In single precision, as the wish is: they are compared.
    float average = static_cast<float>(total) / static_cast<float>(boxes.size());
    auto per_cent = [average](float value) { return std::fabs(value - average) / average * 100; };
    float squares = 0;
    for (const Box &box : boxes) {
        float difference = static_cast<float>(box.volume()) - average;
        squares += difference * difference;
    }
    float deviation = boxes.size() > 1 ? std::sqrt(squares / static_cast<float>(boxes.size() - 1))
                                       : 0;
    return { std::max(per_cent(static_cast<float>(least)), per_cent(static_cast<float>(most))),
             deviation / average * 100 };
}

std::vector<Box> partition(const std::array<int, AXES> &elements, int ranks, float load_imbalance)
{
    Box whole{ { 0, 0, 0 }, elements };
    std::vector<Box> boxes(ranks);
    bisect(whole, Z, 0, ranks, boxes);
    if (ranks == 1)
        return boxes;
    // No plane need move farther than across the mesh: planes that go to and fro end here.
    std::int64_t most_steps = std::int64_t{ elements[X] } + elements[Y] + elements[Z];
    while (most_steps-- > 0 && imbalance(boxes).largest < load_imbalance &&
           unbalance(whole, boxes)) {
    }
    return boxes;
}

} // namespace minife
