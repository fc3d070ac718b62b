// The process grid, and the two-dimensional block-cyclic distribution over it.
#ifndef HPL_GRID_HPP
#define HPL_GRID_HPP

#include <mpi.h>

namespace hpl {

// P x Q processes; the ranks beyond P * Q take no part.
class Grid {
public:
    Grid(int rows, int columns, bool row_major);
    ~Grid();
    Grid(const Grid &) = delete;
    Grid &operator=(const Grid &) = delete;

    bool inside() const { return all != MPI_COMM_NULL; }

    const int rows, columns;
    int row = 0, column = 0;                  // of this rank
    MPI_Comm all = MPI_COMM_NULL;             // rank 0 is that of MPI_COMM_WORLD
    MPI_Comm row_comm = MPI_COMM_NULL;        // this process row; ranks are columns
    MPI_Comm column_comm = MPI_COMM_NULL;     // this process column; ranks are rows
};

// One dimension: blocks of `block` indices are dealt to `parts` in turn, beginning with part 0.
struct Cyclic {
    int block, parts;

    int owner(int global) const { return global / block % parts; }

    // The index on its owner.
    int local(int global) const { return global / block / parts * block + global % block; }

    int global(int local, int part) const
    {
        return (local / block * parts + part) * block + local % block;
    }

    // How many of the indices below `end` are on `part`; also the first index there that is not.
    int below(int end, int part) const
    {
        int blocks = end / block;
        int whole = blocks / parts * block;
        int extra = blocks % parts;
        return whole + (part < extra ? block : part == extra ? end % block : 0);
    }
};

} // namespace hpl

#endif
