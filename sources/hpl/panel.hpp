// A panel: the block of columns that is factored next, and its factorisation.
#ifndef HPL_PANEL_HPP
#define HPL_PANEL_HPP

#include <cstdint>
#include <vector>

#include "buffer.hpp"
#include "matrix.hpp"

namespace hpl {

// Everything in one piece of memory, which is what a process column sends along the rows:
//   lower   the rows of this process row from the panel's first one on: multipliers, after the
//           factorisation. In the process row that holds the diagonal block the first `width` rows
//           are void then.
//   top     the factored diagonal block, on all process rows alike: U, and L without its ones.
//   pivots  the global row that was interchanged with each of the panel's, and a check sum.
class Panel {
public:
    Panel(const Matrix &matrix);

    // Makes it the one that begins with global column `first`.
    void shape(const Matrix &matrix, int first);

    // From the matrix; by the process column that owns it.
    void load(const Matrix &matrix);

    void seal();              // writes the check sum; once factored
    void require_seal() const; // fails when what arrived cannot be a panel's pivots

    int first = 0, width = 0;
    int rows = 0, ld = 0;
    int diagonal_rows = 0; // rows of the diagonal block here: width or 0
    int first_row = 0;     // of the matrix's local rows: where `lower` begins
    double *lower = nullptr, *top = nullptr, *pivots = nullptr;
    std::size_t count = 0; // doubles, all together

    // Doubles that a panel's memory holds: some are to spare, so that it can be cut into as many
    // equal pieces as there are process columns.
    static std::size_t capacity(const Grid &grid, int n, int block);

private:
    double seal_of_pivots() const;

    int last_row = 0; // of the whole matrix
    Buffer memory;
};

// Recursive, right-looking factorisation with partial pivoting over a process column, by one thread:
// the others update the rest of the matrix meanwhile.
class Factorisation {
public:
    // Splits into `divisions` down to `least` columns.
    Factorisation(const Grid &grid, int block, int least, int divisions);
    ~Factorisation();
    Factorisation(const Factorisation &) = delete;
    Factorisation &operator=(const Factorisation &) = delete;

    void operator()(Panel &panel);

private:
    struct Candidate {
        std::uint64_t size; // see size_of in panel.cpp
        int row; // of the panel; -1: none
    };

    void factor(int column, int count);
    void factor_directly(int column, int count);
    void update(int column, int count, int right, int right_count);
    Candidate search(int column) const;
    Candidate eliminate(int column, int end) const;
    void interchange(int column, Candidate candidate);
    int first_active_row(int column) const;

    const Grid &grid;
    const Cyclic row_map;
    const int least, divisions;
    Panel *panel = nullptr;
    std::vector<double> message;
    MPI_Datatype message_type;
    MPI_Op better_pivot;
};

} // namespace hpl

#endif
