#include "element.hpp"

namespace minife {

Shape::Shape()
{
    for (int point = 0; point < GAUSS_POINTS; point++)
        for (int corner = 0; corner < CORNERS; corner++) {
            double factor[AXES], slope[AXES];
            for (int axis = X; axis < AXES; axis++) {
                double sign = corner_at(corner, axis) ? 1 : -1;
                double at = corner_at(point, axis) ? GAUSS : -GAUSS;
                factor[axis] = (1 + sign * at) / 2;
                slope[axis] = sign / 2;
            }
            value[point][corner] = factor[X] * factor[Y] * factor[Z];
            gradient[point][corner][X] = slope[X] * factor[Y] * factor[Z];
            gradient[point][corner][Y] = factor[X] * slope[Y] * factor[Z];
            gradient[point][corner][Z] = factor[X] * factor[Y] * slope[Z];
        }
}

namespace {

// Jacobian of the map from the cube at a Gauss point: row i is along the cube's axis i.
void jacobian(const double (&gradient)[CORNERS][AXES], const ElementBatch &batch,
              Lanes (&result)[AXES][AXES])
{
    for (int i = X; i < AXES; i++)
        for (int j = X; j < AXES; j++) {
            Lanes sum = {};
            for (int corner = 0; corner < CORNERS; corner++)
#pragma omp simd
                for (int lane = 0; lane < LANES; lane++)
                    sum[lane] += gradient[corner][i] * batch.coordinates[corner][j][lane];
#pragma omp simd
            for (int lane = 0; lane < LANES; lane++)
                result[i][j][lane] = sum[lane];
        }
}

// Determinant and inverse, by cofactors.
void invert(const Lanes (&a)[AXES][AXES], Lanes (&inverse)[AXES][AXES], Lanes &determinant)
{
#pragma omp simd
    for (int lane = 0; lane < LANES; lane++) {
        auto minor = [&](int r0, int r1, int c0, int c1) {
            return a[r0][c0][lane] * a[r1][c1][lane] - a[r0][c1][lane] * a[r1][c0][lane];
        };
        double c00 = minor(1, 2, 1, 2), c01 = minor(1, 2, 2, 0), c02 = minor(1, 2, 0, 1);
        double det = a[0][0][lane] * c00 + a[0][1][lane] * c01 + a[0][2][lane] * c02;
        double scale = 1 / det;
        inverse[0][0][lane] = c00 * scale;
        inverse[1][0][lane] = c01 * scale;
        inverse[2][0][lane] = c02 * scale;
        inverse[0][1][lane] = minor(2, 0, 1, 2) * scale;
        inverse[1][1][lane] = minor(2, 0, 2, 0) * scale;
        inverse[2][1][lane] = minor(2, 0, 0, 1) * scale;
        inverse[0][2][lane] = minor(0, 1, 1, 2) * scale;
        inverse[1][2][lane] = minor(0, 1, 2, 0) * scale;
        inverse[2][2][lane] = minor(0, 1, 0, 1) * scale;
        determinant[lane] = det;
    }
}

} // namespace

void element_operators(const Shape &shape, ElementBatch &batch)
{
    for (Lanes &pair : batch.diffusion)
        for (double &lane : pair)
            lane = 0;
    for (Lanes &corner : batch.source)
        for (double &lane : corner)
            lane = 0;
    for (int point = 0; point < GAUSS_POINTS; point++) {
        alignas(64) Lanes jacobi[AXES][AXES], inverse[AXES][AXES], weight;
        jacobian(shape.gradient[point], batch, jacobi);
        invert(jacobi, inverse, weight); // all Gauss weights are 1

        alignas(64) Lanes gradient[CORNERS][AXES]; // in the coordinates of the mesh
        for (int corner = 0; corner < CORNERS; corner++) {
            const double (&g)[AXES] = shape.gradient[point][corner];
            for (int j = X; j < AXES; j++)
#pragma omp simd
                for (int lane = 0; lane < LANES; lane++)
                    gradient[corner][j][lane] = inverse[j][X][lane] * g[X] +
                                                inverse[j][Y][lane] * g[Y] +
                                                inverse[j][Z][lane] * g[Z];
        }
        for (int a = 0; a < CORNERS; a++) {
            alignas(64) Lanes weighted[AXES];
            for (int axis = X; axis < AXES; axis++)
#pragma omp simd
                for (int lane = 0; lane < LANES; lane++)
                    weighted[axis][lane] = weight[lane] * gradient[a][axis][lane];
            for (int b = a; b < CORNERS; b++) {
                Lanes &sum = batch.diffusion[pair_of(a, b)];
#pragma omp simd
                for (int lane = 0; lane < LANES; lane++)
                    sum[lane] += weighted[X][lane] * gradient[b][X][lane] +
                                 weighted[Y][lane] * gradient[b][Y][lane] +
                                 weighted[Z][lane] * gradient[b][Z][lane];
            }
#pragma omp simd
            for (int lane = 0; lane < LANES; lane++)
                batch.source[a][lane] += shape.value[point][a] * weight[lane];
        }
    }
}

} // namespace minife
