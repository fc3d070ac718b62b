// Product of matrix and vector.
#ifndef MINIFE_MATVEC_HPP
#define MINIFE_MATVEC_HPP

#include <vector>

#include "halo.hpp"
#include "matrix.hpp"
#include "mesh.hpp"

namespace minife {

class Product {
public:
    // With `overlap` the rows without ghosts are computed while the halo is on its way.
    Product(const Matrix &matrix, const Mesh &mesh, Halo &halo, bool overlap);

    // y = A x; fills the ghosts of x.
    void operator()(Vector &x, Vector &y);

    // Bytes that one product moves at least: matrix and x are read once, y is written.
    double traffic() const;

private:
    // Consecutive rows.
    struct Run {
        std::int64_t begin, end;
    };
    void multiply(const std::vector<Run> &runs, std::size_t begin, std::size_t end, const Vector &x,
                  Vector &y);

    const Matrix &matrix;
    Halo &halo;
    std::int64_t columns;
    bool overlap;
    std::vector<Run> inner, outer; // rows without and with ghosts; only if they overlap
};

} // namespace minife

#endif
