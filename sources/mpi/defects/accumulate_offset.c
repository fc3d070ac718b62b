/* An accumulate takes what its origin type selects: here the second number of two. */
#include "defects.h"

bool accumulate_offset(int rank, int ranks)
{
    const MPI_Aint second = sizeof(double);
    const int one = 1;
    double numbers[] = { 100, 1 }, *sum;
    MPI_Datatype type;
    MPI_Win window;
    MPI_Type_create_hindexed(1, &one, &second, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    MPI_Win_allocate(sizeof *sum, sizeof *sum, MPI_INFO_NULL, MPI_COMM_WORLD, &sum, &window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    *sum = 0;
    MPI_Win_unlock(rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    MPI_Accumulate(numbers, 1, type, 0, 0, 1, MPI_DOUBLE, MPI_SUM, window);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    bool is_wrong = rank == 0 && *sum != ranks;
    MPI_Win_unlock(rank, window);
    MPI_Win_free(&window);
    MPI_Type_free(&type);
    return is_wrong;
}
