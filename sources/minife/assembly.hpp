// The finite-element equations: operators of elements, their sum, and the boundary conditions.
#ifndef MINIFE_ASSEMBLY_HPP
#define MINIFE_ASSEMBLY_HPP

#include "matrix.hpp"
#include "mesh.hpp"

namespace minife {

// Abscissa of the Gauss rule with two points, to the digits that miniFE is defined with.
constexpr double GAUSS = 0.577350269;

// Adds the operators of -laplacian(u) = 1 on the unit cube to the matrix and to the right-hand side.
void assemble(const Mesh &mesh, Matrix &matrix, Vector &b);

// u = 1 on the face x = 1, to its very edges; u = 0 on all other faces. A row of such a node becomes
// that of the unit matrix. Its column goes to the right-hand side: there the edges of x = 1 count as
// 0, as the other faces come first.
void impose_dirichlet(const Mesh &mesh, Matrix &matrix, Vector &b);

// What these conditions say for a node on the boundary: in its own row, and in its neighbours'.
double prescribed(const Mesh &mesh, int x);
double prescribed_for_neighbours(const Mesh &mesh, int x, int y, int z);

} // namespace minife

#endif
