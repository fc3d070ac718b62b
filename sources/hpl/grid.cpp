#include "grid.hpp"

namespace hpl {

Grid::Grid(int process_rows, int process_columns, bool row_major)
    : rows(process_rows), columns(process_columns)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    bool takes_part = rank < rows * columns;
    MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, rank, &all);
    if (!takes_part)
        return;
    row = row_major ? rank / columns : rank % rows;
    column = row_major ? rank % columns : rank / rows;
    MPI_Comm_split(all, row, column, &row_comm);
    MPI_Comm_split(all, column, row, &column_comm);
}

Grid::~Grid()
{
    if (!inside())
        return;
    MPI_Comm_free(&row_comm);
    MPI_Comm_free(&column_comm);
    MPI_Comm_free(&all);
}

} // namespace hpl
