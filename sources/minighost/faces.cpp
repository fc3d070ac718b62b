#include "faces.hpp"

namespace minighost {

namespace {

// Faces below are not worth waking threads for.
constexpr long WORDS_FOR_THREADS = 4096;

} // namespace

Face make_face(const Layout &layout, int direction, Side side, Part part, bool with_edges)
{
    // The lines run along the direction whose points lie closer together.
    int inner = direction == 0 ? 1 : 0, outer = direction == 2 ? 1 : 2;
    int index = part == Part::POINTS ? 1 : 0;
    if (side == HIGH)
        index = layout.n[direction] + 1 - index;
    int edge = with_edges ? 0 : 1;
    Face face;
    face.stride = layout.stride(inner);
    face.line_stride = layout.stride(outer);
    face.start = index * layout.stride(direction) + edge * (face.stride + face.line_stride);
    face.lines = layout.n[outer] + 2 - 2 * edge;
    face.length = layout.n[inner] + 2 - 2 * edge;
    return face;
}

void pack(Variables &variables, int first, int count, const Face &face, double *buffer)
{
#pragma omp parallel for collapse(2) schedule(static) if (count * face.words() > WORDS_FOR_THREADS)
    for (int v = 0; v < count; v++)
        for (int line = 0; line < face.lines; line++) {
            const double *from = variables[first + v] + face.start + line * face.line_stride;
            double *to = buffer + v * face.words() + static_cast<long>(line) * face.length;
            if (face.stride == 1)
                for (int i = 0; i < face.length; i++)
                    to[i] = from[i];
            else
                for (int i = 0; i < face.length; i++)
                    to[i] = from[i * face.stride];
        }
}

void unpack(Variables &variables, int first, int count, const Face &face, const double *buffer)
{
#pragma omp parallel for collapse(2) schedule(static) if (count * face.words() > WORDS_FOR_THREADS)
    for (int v = 0; v < count; v++)
        for (int line = 0; line < face.lines; line++) {
            double *to = variables[first + v] + face.start + line * face.line_stride;
            const double *from = buffer + v * face.words() + static_cast<long>(line) * face.length;
            if (face.stride == 1)
                for (int i = 0; i < face.length; i++)
                    to[i] = from[i];
            else
                for (int i = 0; i < face.length; i++)
                    to[i * face.stride] = from[i];
        }
}

MPI_Datatype face_type(const Face &face)
{
    constexpr MPI_Aint size = sizeof(double);
    MPI_Datatype line, lines, placed;
    MPI_Type_create_hvector(face.length, 1, face.stride * size, MPI_DOUBLE, &line);
    MPI_Type_create_hvector(face.lines, 1, face.line_stride * size, line, &lines);
    MPI_Aint start = face.start * size;
    MPI_Type_create_hindexed_block(1, 1, &start, lines, &placed);
    MPI_Type_commit(&placed);
    MPI_Type_free(&line);
    MPI_Type_free(&lines);
    return placed;
}

} // namespace minighost
