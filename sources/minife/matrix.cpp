#include "matrix.hpp"

#include <algorithm>

#include "application.hpp"
#include "threads.hpp"

namespace minife {

namespace {

// The sum over low <= i < high of the number of neighbours of i, with itself, from 0 to last.
std::int64_t neighbours(int low, int high, int last)
{
    if (low >= high)
        return 0;
    return std::int64_t{ 3 } * (high - low) - (low == 0) - (high == last + 1);
}

} // namespace

LineLayout::LineLayout(const Mesh &mesh, int y, int z)
    : first_x(mesh.nodes.low[X]), last_x(mesh.elements[X])
{
    int last_y = mesh.elements[Y], last_z = mesh.elements[Z];
    low_y = y == 0 ? 0 : -1;
    low_z = z == 0 ? 0 : -1;
    count_y = static_cast<int>(neighbours(y, y + 1, last_y));
    count_z = static_cast<int>(neighbours(z, z + 1, last_z));
    const Box &nodes = mesh.nodes;
    std::int64_t in_x = neighbours(nodes.low[X], nodes.high[X], last_x);
    std::int64_t in_y = neighbours(nodes.low[Y], nodes.high[Y], last_y);
    start = in_x * (in_y * neighbours(nodes.low[Z], z, last_z) +
                    count_z * neighbours(nodes.low[Y], y, last_y));
}

std::int64_t LineLayout::before(int x) const
{
    return neighbours(first_x, x, last_x);
}

std::int64_t entries(const std::array<int, AXES> &elements, const Box &nodes)
{
    std::int64_t product = 1;
    for (int axis = X; axis < AXES; axis++)
        product *= neighbours(nodes.low[axis], nodes.high[axis], elements[axis]);
    return product;
}

Matrix matrix_structure(const Mesh &mesh)
{
    Matrix matrix;
    matrix.rows = mesh.own();
    matrix.nonzeros = entries(mesh.elements, mesh.nodes);
    matrix.starts = Buffer<std::int64_t>(matrix.rows + 1);
    matrix.columns = Buffer<int>(matrix.nonzeros);
    matrix.values = Buffer<double>(matrix.nonzeros);
    matrix.starts[matrix.rows] = matrix.nonzeros;
#pragma omp parallel
    {
        Part part = own_part(mesh.lines());
        std::int64_t row = part.begin * mesh.nodes.size(X);
        for (std::int64_t line = part.begin; line < part.end; line++) {
            int y = mesh.line_y(line), z = mesh.line_z(line);
            LineLayout layout(mesh, y, z);
            std::int64_t next = layout.start;
            for (int x = mesh.nodes.low[X]; x < mesh.nodes.high[X]; x++) {
                matrix.starts[row++] = next;
                int count_x = layout.count_x(x);
                for (int dz = 0; dz < layout.count_z; dz++)
                    for (int dy = 0; dy < layout.count_y; dy++) {
                        const int *from = mesh.local(x + layout.low_x(x), y + layout.low_y + dy,
                                                     z + layout.low_z + dz);
                        for (int dx = 0; dx < count_x; dx++)
                            matrix.columns[next + dx] = from[dx];
                        next += count_x;
                    }
            }
            std::fill(&matrix.values[layout.start], &matrix.values[0] + next, 0.0);
        }
    }
    assay::ran();
    return matrix;
}

Vector zeros(std::int64_t count)
{
    Vector vector(count);
#pragma omp parallel
    {
        Part part = own_part(count);
        std::fill(vector.data() + part.begin, vector.data() + part.end, 0.0);
    }
    return vector;
}

} // namespace minife
