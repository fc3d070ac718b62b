// A C++ program whose exceptions pass through frames that call MPI.
#include <mpi.h>

#include <cstdio>
#include <stdexcept>

struct Started {
    Started() { MPI_Init(nullptr, nullptr); }
    ~Started() { MPI_Finalize(); }
};

static int reduce(int value)
{
    int sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum > 0)
        throw std::runtime_error("a sum of " + std::to_string(sum));
    return sum;
}

int main()
{
    int rank = 0, code = 0;
    try {
        Started started;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        try {
            reduce(rank);
        } catch (const std::runtime_error &error) {
            std::printf("rank %d: %s\n", rank, error.what());
        }
        reduce(rank + 1);
    } catch (const std::exception &error) {
        std::printf("rank %d: left by %s\n", rank, error.what());
        code = 4;
    }
    return code;
}
