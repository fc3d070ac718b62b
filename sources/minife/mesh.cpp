#include "mesh.hpp"

#include <algorithm>

#include "threads.hpp"

namespace minife {

Box own_nodes(const std::array<int, AXES> &elements, const Box &box)
{
    Box nodes = box;
    for (int axis = X; axis < AXES; axis++)
        if (box.high[axis] == elements[axis])
            nodes.high[axis]++;
    return nodes;
}

Box with_layer(const std::array<int, AXES> &elements, const Box &nodes)
{
    Box wider = nodes;
    for (int axis = X; axis < AXES; axis++) {
        wider.low[axis] = std::max(wider.low[axis] - 1, 0);
        wider.high[axis] = std::min(wider.high[axis] + 1, elements[axis] + 1);
    }
    return wider;
}

Mesh::Mesh(const std::array<int, AXES> &elements, const std::vector<Box> &boxes, int rank)
    : elements(elements), nodes(own_nodes(elements, boxes[rank])),
      with_ghosts(with_layer(elements, nodes)), numbers(with_ghosts.volume())
{
#pragma omp parallel
    {
        Part part = own_part(lines());
        for (std::int64_t line = part.begin; line < part.end; line++) {
            int *numbers_of_line = &numbers[place_of(nodes.low[X], line_y(line), line_z(line))];
            for (int i = 0; i < nodes.size(X); i++)
                numbers_of_line[i] = static_cast<int>(line * nodes.size(X)) + i;
        }
    }
    for (int other = 0; other < static_cast<int>(boxes.size()); other++) {
        if (other == rank)
            continue;
        Box theirs = own_nodes(elements, boxes[other]);
        Neighbour neighbour{ other, intersection(with_ghosts, theirs),
                             static_cast<int>(own() + ghost_count),
                             intersection(with_layer(elements, theirs), nodes) };
        if (neighbour.ghosts.volume() == 0)
            continue;
        int next = neighbour.first_ghost;
        for_each_node(neighbour.ghosts,
                      [&](int x, int y, int z) { numbers[place_of(x, y, z)] = next++; });
        ghost_count += neighbour.ghosts.volume();
        neighbours.push_back(neighbour);
    }
}

} // namespace minife
