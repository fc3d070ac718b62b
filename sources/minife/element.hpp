// Operators of trilinear hexahedra, several elements at a time: one in each lane of the vectors.
#ifndef MINIFE_ELEMENT_HPP
#define MINIFE_ELEMENT_HPP

#include "assembly.hpp"

namespace minife {

enum { LANES = 8, CORNERS = 8, GAUSS_POINTS = 8, PAIRS = CORNERS * (CORNERS + 1) / 2 };

using Lanes = double[LANES];

// A corner's place in its element: 0 or 1 along each axis. Corner c is at the bits of c: x, y, z.
constexpr int corner_at(int corner, int axis)
{
    return corner >> axis & 1;
}

// Of the upper triangle of an operator, a <= b, row by row.
constexpr int pair_of(int a, int b)
{
    return a * CORNERS - a * (a - 1) / 2 + (b - a);
}

struct ElementBatch {
    alignas(64) Lanes coordinates[CORNERS][AXES];
    alignas(64) Lanes diffusion[PAIRS]; // symmetric
    alignas(64) Lanes source[CORNERS];
};

// Shape functions and their gradients at the Gauss points of the cube from -1 to 1.
struct Shape {
    double value[GAUSS_POINTS][CORNERS];
    double gradient[GAUSS_POINTS][CORNERS][AXES];
    Shape();
};

// From the corners' coordinates; any hexahedra will do.
void element_operators(const Shape &shape, ElementBatch &batch);

} // namespace minife

#endif
