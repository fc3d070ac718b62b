#include "solver.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "blas.h"
#include "interchange.hpp"
#include "panel.hpp"
#include "substitution.hpp"

namespace hpl {

namespace {

// Columns that a thread updates at a time: enough for DGEMM to run at its full rate, and few, so
// that threads that are disturbed take less of them, and broadcasts are polled often enough.
constexpr int LEAST_TILE = 32, WIDEST_TILE = 384, TILES_PER_THREAD = 4;

int tile_for(int columns)
{
    if (omp_get_max_threads() == 1)
        return WIDEST_TILE;
    int fair = columns / (TILES_PER_THREAD * omp_get_max_threads()) / LEAST_TILE * LEAST_TILE;
    return std::clamp(fair, LEAST_TILE, WIDEST_TILE);
}

class Factors {
public:
    Factors(Matrix &to_factor, const Algorithm &chosen, Phases &times, assay::Bouts &of_loop)
        : matrix(to_factor), grid(matrix.grid), algorithm(chosen), phases(times), bouts(of_loop),
          factorisation(grid, matrix.row_map.block, chosen.least, chosen.divisions),
          panels{ { matrix, chosen.topology }, { matrix, chosen.topology } }, buffers(grid, matrix),
          u(omp_get_max_threads())
    {
        for (Buffer &tile : u)
            tile = Buffer(static_cast<std::size_t>(std::min(matrix.row_map.block, matrix.n)) *
                          WIDEST_TILE);
    }

    void compute(long first_step)
    {
        bouts.before(first_step);
        begin(0);
        for (int first = 0; first < matrix.n; first += matrix.row_map.block) {
            if (first > 0)
                bouts.before(++first_step);
            const assay::Instant start = assay::Instant::now();
            step(first);
            assay::Time took;
            took.add(start, assay::Instant::now());
            if (is_wide(first))
                bouts.add(FACTORISATION, took, operations(first));
        }
        phases.passed_on.assign(static_cast<std::size_t>(grid.columns), 0);
        for (const Travelling &one : panels)
            for (std::size_t i = 0; i < phases.passed_on.size(); i++)
                phases.passed_on[i] += one.broadcast.passed_on()[i];
    }

private:
    struct Travelling {
        Travelling(const Matrix &matrix, Topology topology)
            : panel(matrix), broadcast(matrix.grid.row_comm, topology)
        {
        }
        Panel panel;
        Broadcast broadcast;
    };

    Travelling &travelling(int first) { return panels[first / matrix.row_map.block % 2]; }

    bool owns(int first) const { return matrix.column_map.owner(first) == grid.column; }

    // Factors the panel, where it is here, and sends it on its way.
    void begin(int first)
    {
        auto &[panel, broadcast] = travelling(first);
        assay::Instant start = assay::Instant::now();
        broadcast.release(); // of the last panel but one, from the same memory
        panel.shape(matrix, first);
        begun = {};
        begun.add(start, assay::Instant::now());
        phases.wait.add(begun);
        if (owns(first)) {
            assay::Time factored;
            start = assay::Instant::now();
            panel.load(matrix);
            factorisation(panel);
            factored.add(start, assay::Instant::now());
            assay::require_runs("a panel", factored, 1);
            phases.factor.add(factored);
            begun.add(factored);
        }
        broadcast.start(panel.lower, panel.count, matrix.column_map.owner(first));
    }

    void step(int first)
    {
        auto &[panel, broadcast] = travelling(first);
        assay::Instant start = assay::Instant::now();
        broadcast.receive();
        phases.wait.add(start, assay::Instant::now());
        if (!owns(first))
            panel.require_seal();
        else if (panel.diagonal_rows > 0)
            store_diagonal_block(panel);

        const int next = first + panel.width;
        const bool last = next >= matrix.n, look_ahead = !last && algorithm.depth > 0;
        int column = matrix.column_map.below(next, grid.column);
        Interchange interchange(matrix, panel, buffers);
        start = assay::Instant::now();
        begun = {};
        interchange.exchange(column, matrix.columns);
        int ahead = look_ahead && owns(next) ? std::min(matrix.row_map.block, matrix.n - next) : 0;
#pragma omp parallel
        {
            update(panel, interchange, column, column + ahead, nullptr);
            // One thread, the one that MPI was initialised by, factors the next panel and sends it
            // on its way; the others go on at once.
#pragma omp master
            if (look_ahead)
                begin(next);
            update(panel, interchange, column + ahead, matrix.columns,
                   look_ahead ? &travelling(next).broadcast : nullptr);
        }
        assay::Time took;
        took.add(start, assay::Instant::now());
        took.subtract(begun);
        // The interchange, the update of the next panel's columns, and of the rest.
        assay::require_runs("an update", took, 3);
        phases.update.add(took);
        if (!last && is_wide(first))
            bouts.add(UPDATE, took, operations_of_update(panel.width, matrix.n - next));
        if (!last && !look_ahead)
            begin(next);
    }

    // Further on there is less and less to multiply at a time.
    bool is_wide(int first) const
    {
        return first == 0 || first + matrix.row_map.block <= matrix.n / 2;
    }

    // Of all ranks, to eliminate the columns of a block: as HPL counts, without the right-hand side.
    double operations(int first) const
    {
        double order = matrix.n - first, rest = order - matrix.row_map.block;
        return 2.0 / 3 * (order * order * order - rest * rest * rest);
    }

    // Of all ranks, to update so many rows and columns by a panel.
    static double operations_of_update(double width, double order)
    {
        return 2 * width * order * order + width * width * order;
    }

    // Back substitution wants U; L has done its work, b included.
    void store_diagonal_block(const Panel &panel)
    {
        int column = matrix.column_map.local(panel.first);
        for (int j = 0; j < panel.width; j++)
            std::copy_n(panel.top + static_cast<std::size_t>(j) * panel.width, panel.width,
                        matrix.at(panel.first_row, column + j));
    }

    // Local columns [begin, end) by a panel; all threads call it. `meanwhile` is polled.
    void update(const Panel &panel, const Interchange &interchange, int begin, int end,
                Broadcast *meanwhile)
    {
        int tile = tile_for(end - begin);
#pragma omp for schedule(dynamic, 1)
        for (int column = begin; column < end; column += tile) {
            int thread = omp_get_thread_num();
            if (meanwhile && thread == 0)
                meanwhile->poll();
            update_tile(panel, interchange, column, std::min(column + tile, end), u[thread].data());
        }
        if (omp_get_thread_num() == 0)
            assay::ran();
    }

    void update_tile(const Panel &panel, const Interchange &interchange, int begin, int end,
                     double *u_tile)
    {
        const int width = panel.width, columns = end - begin;
        interchange.take(begin, end, u_tile);
        blas_solve_unit_lower(width, columns, panel.top, width, u_tile, width);
        for (int j = 0; panel.diagonal_rows > 0 && j < columns; j++)
            std::copy_n(u_tile + static_cast<std::size_t>(j) * width, width,
                        matrix.at(panel.first_row, begin + j));
        blas_subtract_product(panel.rows - panel.diagonal_rows, columns, width,
                              panel.lower + panel.diagonal_rows, panel.ld, u_tile, width,
                              matrix.at(panel.first_row + panel.diagonal_rows, begin), matrix.ld);
    }

    Matrix &matrix;
    const Grid &grid;
    const Algorithm algorithm;
    Phases &phases;
    assay::Time begun; // what was waited and factored for the panel that began last
    assay::Bouts &bouts;
    Factorisation factorisation;
    Travelling panels[2];
    InterchangeBuffers buffers;
    std::vector<Buffer> u; // a tile of each thread
};

} // namespace

int panels_of(int n, int block)
{
    return (n + block - 1) / block;
}

Buffer solve(Matrix &matrix, const Algorithm &algorithm, Phases &phases, assay::Bouts &bouts,
             long first_step)
{
    Factors(matrix, algorithm, phases, bouts).compute(first_step);
    const assay::Instant start = assay::Instant::now();
    Buffer x = substitute(matrix);
    phases.substitute.add(start, assay::Instant::now());
    assay::require_runs("the substitution", phases.substitute, 1);
    return x;
}

double greatest_multiplier(const Matrix &matrix, const Algorithm &algorithm)
{
    double greatest = 0;
    if (matrix.column_map.owner(0) == matrix.grid.column) {
        Panel panel(matrix);
        panel.shape(matrix, 0);
        panel.load(matrix);
        Factorisation(matrix.grid, matrix.row_map.block, algorithm.least,
                      algorithm.divisions)(panel);
        auto look_at = [&greatest](double multiplier) {
            if (!(std::fabs(multiplier) <= greatest)) // no number is the greatest
                greatest = std::fabs(multiplier);
        };
        for (int j = 0; j < panel.width; j++) {
            for (int i = panel.diagonal_rows; i < panel.rows; i++)
                look_at(panel.lower[static_cast<std::size_t>(j) * panel.ld + i]);
            for (int i = j + 1; i < panel.width; i++)
                look_at(panel.top[static_cast<std::size_t>(j) * panel.width + i]);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &greatest, 1, MPI_DOUBLE, MPI_MAX, matrix.grid.all);
    return greatest;
}

double solve_bytes(const Grid &grid, int n, int block, int threads)
{
    double panels = 2.0 * sizeof(double) * Panel::capacity(grid, n, block);
    double tiles = sizeof(double) * static_cast<double>(std::min(block, n)) * WIDEST_TILE * threads;
    return panels + tiles + InterchangeBuffers::bytes(grid, n, block);
}

} // namespace hpl
