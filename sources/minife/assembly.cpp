#include "assembly.hpp"

#include <algorithm>

#include "application.hpp"
#include "element.hpp"
#include "threads.hpp"

namespace minife {

namespace {

// Corner coordinates of the elements from `first` on along x; lanes past `count` repeat the last.
void set_coordinates(const Mesh &mesh, int first, int count, int y, int z, ElementBatch &batch)
{
    for (int corner = 0; corner < CORNERS; corner++)
        for (int lane = 0; lane < LANES; lane++) {
            int at[AXES] = { first + std::min(lane, count - 1), y, z };
            for (int axis = X; axis < AXES; axis++)
                batch.coordinates[corner][axis][lane] =
                    static_cast<double>(at[axis] + corner_at(corner, axis)) / mesh.elements[axis];
        }
}

// Of one line of nodes, the part that elements have at their corners with these bits of y and z.
void add_to_line(const Mesh &mesh, const ElementBatch &batch, int first, int count, int corner_y,
                 int corner_z, int y, int z, Matrix &matrix, Vector &b)
{
    LineLayout layout(mesh, y, z);
    std::int64_t line = mesh.line_of(y, z) * mesh.nodes.size(X) - mesh.nodes.low[X];
    for (int lane = 0; lane < count; lane++)
        for (int corner_x = 0; corner_x < 2; corner_x++) {
            int x = first + lane + corner_x;
            if (x < mesh.nodes.low[X] || x >= mesh.nodes.high[X])
                continue;
            int corner = corner_x | corner_y << Y | corner_z << Z;
            double *row = matrix.values.data() + layout.row_start(x);
            for (int other = 0; other < CORNERS; other++) {
                int place = layout.place(x, corner_at(other, X) - corner_x,
                                         corner_at(other, Y) - corner_y,
                                         corner_at(other, Z) - corner_z);
                int pair = pair_of(std::min(corner, other), std::max(corner, other));
                row[place] += batch.diffusion[pair][lane];
            }
            b[line + x] += batch.source[corner][lane];
        }
}

// The line of elements at (y, z) has corners on four lines of nodes; this thread's part of them.
void add_line_of_elements(const Mesh &mesh, const Shape &shape, int y, int z, Part part,
                          Matrix &matrix, Vector &b)
{
    const Box &nodes = mesh.nodes;
    auto is_ours = [&](int corner_y, int corner_z) {
        if (!nodes.contains(nodes.low[X], y + corner_y, z + corner_z))
            return false;
        std::int64_t line = mesh.line_of(y + corner_y, z + corner_z);
        return part.begin <= line && line < part.end;
    };
    bool ours[2][2];
    bool any = false;
    for (int corner_z = 0; corner_z < 2; corner_z++)
        for (int corner_y = 0; corner_y < 2; corner_y++)
            any |= ours[corner_z][corner_y] = is_ours(corner_y, corner_z);
    if (!any)
        return;

    ElementBatch batch;
    int low = std::max(nodes.low[X] - 1, 0), high = std::min(nodes.high[X], mesh.elements[X]);
    for (int first = low; first < high; first += LANES) {
        int count = std::min<int>(LANES, high - first);
        set_coordinates(mesh, first, count, y, z, batch);
        element_operators(shape, batch);
        for (int corner_z = 0; corner_z < 2; corner_z++)
            for (int corner_y = 0; corner_y < 2; corner_y++)
                if (ours[corner_z][corner_y])
                    add_to_line(mesh, batch, first, count, corner_y, corner_z, y + corner_y,
                                z + corner_z, matrix, b);
    }
}

// Moves the columns of boundary nodes to the right-hand side.
void impose_on_row(const Mesh &mesh, const LineLayout &layout, int x, int y, int z, double *row,
                   double &right)
{
    for (int dz = -1; dz <= 1; dz++)
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++)
                if (mesh.on_boundary(x + dx, y + dy, z + dz)) {
                    double &entry = row[layout.place(x, dx, dy, dz)];
                    right -= entry * prescribed_for_neighbours(mesh, x + dx, y + dy, z + dz);
                    entry = 0;
                }
}

} // namespace

// Each thread adds to its own rows only, so there is nothing to lock. Elements between two threads'
// nodes are computed by both, as those between two ranks' are.
void assemble(const Mesh &mesh, Matrix &matrix, Vector &b)
{
    const Shape shape;
    const Box &nodes = mesh.nodes;
#pragma omp parallel
    {
        Part part = own_part(mesh.lines());
        if (part.begin < part.end) {
            int low_z = std::max(mesh.line_z(part.begin) - 1, 0);
            int high_z = std::min(mesh.line_z(part.end - 1) + 1, mesh.elements[Z]);
            int low_y = std::max(nodes.low[Y] - 1, 0);
            int high_y = std::min(nodes.high[Y], mesh.elements[Y]);
            for (int z = low_z; z < high_z; z++)
                for (int y = low_y; y < high_y; y++)
                    add_line_of_elements(mesh, shape, y, z, part, matrix, b);
        }
    }
    assay::ran();
}

double prescribed(const Mesh &mesh, int x)
{
    return x == mesh.elements[X] ? 1 : 0;
}

double prescribed_for_neighbours(const Mesh &mesh, int x, int y, int z)
{
    bool edge = y == 0 || y == mesh.elements[Y] || z == 0 || z == mesh.elements[Z];
    return edge ? 0 : prescribed(mesh, x);
}

void impose_dirichlet(const Mesh &mesh, Matrix &matrix, Vector &b)
{
    auto near = [&](int i, int axis) { return i <= 1 || i >= mesh.elements[axis] - 1; };
#pragma omp parallel
    {
        Part part = own_part(mesh.lines());
        for (std::int64_t line = part.begin; line < part.end; line++) {
            int y = mesh.line_y(line), z = mesh.line_z(line);
            LineLayout layout(mesh, y, z);
            bool whole_line = near(y, Y) || near(z, Z);
            for (int x = mesh.nodes.low[X]; x < mesh.nodes.high[X]; x++) {
                if (!whole_line && !near(x, X))
                    continue;
                std::int64_t number = line * mesh.nodes.size(X) + (x - mesh.nodes.low[X]);
                double *row = &matrix.values[matrix.starts[number]];
                if (mesh.on_boundary(x, y, z)) {
                    std::fill(row, &matrix.values[0] + matrix.starts[number + 1], 0.0);
                    row[layout.place(x, 0, 0, 0)] = 1;
                    b[number] = prescribed(mesh, x);
                } else {
                    impose_on_row(mesh, layout, x, y, z, row, b[number]);
                }
            }
        }
    }
    assay::ran();
}

} // namespace minife
