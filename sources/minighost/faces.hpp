// The faces of this rank's part of the mesh: what is sent from them, and the halo beyond them.
#ifndef MINIGHOST_FACES_HPP
#define MINIGHOST_FACES_HPP

#include <mpi.h>

#include <cstddef>

#include "variables.hpp"

namespace minighost {

// One layer of points, or the halo next to it, of one grid: `lines` lines of `length` values. With
// edges, those of the halo belong to it, so that corners arrive by way of two neighbours.
struct Face {
    std::ptrdiff_t start;
    int lines, length;
    std::ptrdiff_t line_stride, stride;

    long words() const { return static_cast<long>(lines) * length; }
};

enum class Part { POINTS, HALO };

Face make_face(const Layout &layout, int direction, Side side, Part part, bool with_edges);

// A face of `count` variables, the first and those after it, in a buffer: one after the other.
void pack(Variables &variables, int first, int count, const Face &face, double *buffer);
void unpack(Variables &variables, int first, int count, const Face &face, const double *buffer);

// The face as a type that starts at its grid.
MPI_Datatype face_type(const Face &face);

} // namespace minighost

#endif
