// This rank's nodes of the mesh, those of its neighbours next to them, and their numbers.
#ifndef MINIFE_MESH_HPP
#define MINIFE_MESH_HPP

#include <cstdint>
#include <vector>

#include "buffer.hpp"
#include "partition.hpp"

namespace minife {

// Another rank with nodes next to ours. Both sides know both boxes.
struct Neighbour {
    int rank;
    Box ghosts;      // its nodes next to ours; their local numbers follow each other, x fastest
    int first_ghost; // number of the first
    Box boundary;    // our nodes next to its own: ghosts there
};

// Nodes have global coordinates, 0 to `elements` in each direction. Local numbers are first those of
// our own nodes, x fastest, then the neighbours' ghosts in the order of ranks.
class Mesh {
public:
    // `boxes`: of all ranks' elements; none may be empty.
    Mesh(const std::array<int, AXES> &elements, const std::vector<Box> &boxes, int rank);

    std::array<int, AXES> elements; // of the whole mesh
    Box nodes;                      // our own
    Box with_ghosts;                // our own and one layer around, within the mesh
    std::vector<Neighbour> neighbours;

    std::int64_t own() const { return nodes.volume(); }
    std::int64_t ghosts() const { return ghost_count; }

    // Rows of nodes along x: their nodes have consecutive local numbers.
    std::int64_t lines() const { return std::int64_t{ nodes.size(Y) } * nodes.size(Z); }
    int line_y(std::int64_t line) const
    {
        return nodes.low[Y] + static_cast<int>(line % nodes.size(Y));
    }
    int line_z(std::int64_t line) const
    {
        return nodes.low[Z] + static_cast<int>(line / nodes.size(Y));
    }
    std::int64_t line_of(int y, int z) const
    {
        return std::int64_t{ z - nodes.low[Z] } * nodes.size(Y) + (y - nodes.low[Y]);
    }

    // Local number of a node with_ghosts; those of one row are consecutive in memory.
    const int *local(int x, int y, int z) const { return &numbers[place_of(x, y, z)]; }

    // Number in the whole mesh.
    std::int64_t global(int x, int y, int z) const
    {
        return (std::int64_t{ z } * (elements[Y] + 1) + y) * (elements[X] + 1) + x;
    }

    bool on_boundary(int x, int y, int z) const
    {
        return x == 0 || x == elements[X] || y == 0 || y == elements[Y] || z == 0 ||
               z == elements[Z];
    }

private:
    std::size_t place_of(int x, int y, int z) const
    {
        std::int64_t line = std::int64_t{ z - with_ghosts.low[Z] } * with_ghosts.size(Y) +
                            (y - with_ghosts.low[Y]);
        return line * with_ghosts.size(X) + (x - with_ghosts.low[X]);
    }

    Buffer<int> numbers;
    std::int64_t ghost_count = 0;
};

// Nodes of a rank's elements that are its own: those at the lower faces, and at the upper ones where
// the mesh ends.
Box own_nodes(const std::array<int, AXES> &elements, const Box &box);

// The box and one layer around it, within the mesh.
Box with_layer(const std::array<int, AXES> &elements, const Box &nodes);

// Does something with each node of a box, x fastest.
template <typename Do>
void for_each_node(const Box &box, Do &&what)
{
    for (int z = box.low[Z]; z < box.high[Z]; z++)
        for (int y = box.low[Y]; y < box.high[Y]; y++)
            for (int x = box.low[X]; x < box.high[X]; x++)
                what(x, y, z);
}

} // namespace minife

#endif
