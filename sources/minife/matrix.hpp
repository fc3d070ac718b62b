// The sparse matrix: compressed rows, with column numbers of 32 bits.
#ifndef MINIFE_MATRIX_HPP
#define MINIFE_MATRIX_HPP

#include <cstdint>

#include "buffer.hpp"
#include "mesh.hpp"

namespace minife {

struct Matrix {
    std::int64_t rows = 0;
    std::int64_t nonzeros = 0; // stored, some of which are 0
    Buffer<std::int64_t> starts; // of rows; the last is the end
    Buffer<int> columns;         // local numbers of nodes
    Buffer<double> values;
};

using Vector = Buffer<double>;

// Where the entries of the rows of one line of nodes stand. A row couples its node with all nodes of
// the elements around it, 27 inside the mesh, in the order z, y, x: so a place can be computed.
struct LineLayout {
    LineLayout(const Mesh &mesh, int y, int z);

    int low_y, low_z;     // -1, or 0 where the mesh begins
    int count_y, count_z; // of neighbours, with the line itself
    std::int64_t start;   // of the line's first row

    int low_x(int x) const { return x == 0 ? 0 : -1; }
    int count_x(int x) const { return x == 0 || x == last_x ? 2 : 3; }
    std::int64_t row_start(int x) const
    {
        return start + std::int64_t{ count_y } * count_z * before(x);
    }
    // Of the entry for the neighbour at (dx, dy, dz) in the row of node x, from the row's start on.
    int place(int x, int dx, int dy, int dz) const
    {
        return ((dz - low_z) * count_y + (dy - low_y)) * count_x(x) + (dx - low_x(x));
    }

private:
    int first_x, last_x; // of this rank's nodes; of the mesh
    // Entries in x direction of all nodes of the line before x.
    std::int64_t before(int x) const;
};

// Entries of the rows of some nodes.
std::int64_t entries(const std::array<int, AXES> &elements, const Box &nodes);

// All entries 0.
Matrix matrix_structure(const Mesh &mesh);

// A vector of zeros.
Vector zeros(std::int64_t count);

} // namespace minife

#endif
