// The mesh, the grid of processes on it, and this rank's part. Directions: 0 is x, 1 y, 2 z.
#ifndef MINIGHOST_DOMAIN_HPP
#define MINIGHOST_DOMAIN_HPP

#include "options.hpp"

namespace minighost {

enum Side { LOW, HIGH };

struct Domain {
    long points[3];      // of the mesh
    int grid[3];         // processes
    int place[3];        // of this rank in the grid
    int n[3];            // points of this rank
    int largest[3];      // points of the rank that has most
    long first[3];       // global index of this rank's first point; the mesh starts at 1
    int neighbour[3][2]; // ranks, or MPI_PROC_NULL at the boundary of the mesh

    bool is_at(int direction, Side side) const
    {
        return place[direction] == (side == LOW ? 0 : grid[direction] - 1);
    }
    double all_points() const
    {
        return static_cast<double>(points[0]) * static_cast<double>(points[1]) *
               static_cast<double>(points[2]);
    }
};

Domain make_domain(const Options &options, const assay::Job &job);

} // namespace minighost

#endif
