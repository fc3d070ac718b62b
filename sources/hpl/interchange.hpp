// The interchanges of whole rows that a panel's pivots ask for, in the columns right of it.
#ifndef HPL_INTERCHANGE_HPP
#define HPL_INTERCHANGE_HPP

#include <vector>

#include "matrix.hpp"
#include "panel.hpp"

namespace hpl {

// One after the other the interchanges would move rows again and again. Their net effect is that
// `width` rows come to the top, those of U, and that the rows which lay there before and are not
// among them take the places of the others.
//
// Over several process rows: all get all of U (each process row gives what it has, MPI_Allgatherv),
// and the process row of the diagonal block hands out the rows that leave it (MPI_Scatterv).
// Messages of the interchanges, for the widest range of columns; used again for each panel.
struct InterchangeBuffers {
    InterchangeBuffers(const Grid &grid, const Matrix &matrix);
    static double bytes(const Grid &grid, int n, int block); // on this rank

    Buffer u, leaving, arriving;
};

class Interchange {
public:
    Interchange(const Matrix &matrix, const Panel &panel, InterchangeBuffers &buffers);

    // Collective over the process column: moves rows of the local columns [begin, end) between
    // processes. What follows for these columns is take.
    void exchange(int begin, int end);

    // U of the columns [begin, end), a part of those of the last exchange, goes to `u` (with the
    // panel's width as leading dimension), and the rows that left the top to their places.
    void take(int begin, int end, double *u) const;

private:
    struct Move {
        int from, to;
    };
    void send_rows(int begin);
    void take_here(int begin, int end, double *u) const;

    const Matrix &matrix;
    const Panel &panel;
    InterchangeBuffers &buffers;

    // Rows are local ones of the matrix here, or of U, which is the diagonal block. Sorted by process
    // row, as they lie in the messages.
    std::vector<std::vector<Move>> into_u; // from each process row: its row -> row of U
    std::vector<std::vector<Move>> out;    // to each process row: row of U -> its row
    int exchanged_from = 0, exchanged = 0; // the columns of the last exchange: first, number
};

} // namespace hpl

#endif
