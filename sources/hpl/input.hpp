// HPL.dat: what to run, in HPL's own format.
#ifndef HPL_INPUT_HPP
#define HPL_INPUT_HPP

#include <string>
#include <vector>

namespace hpl {

// Values as the file has them; the comments name its lines.
struct Input {
    std::string output_file;
    int device; // 6: standard output, 7: standard error, others: the file
    std::vector<int> n, nb;
    bool row_major; // PMAP
    std::vector<int> p, q;
    double threshold;
    std::vector<int> pfact, nbmin, ndiv, rfact;
    std::vector<int> bcast, depth;
    int swap, swap_threshold;
    int l1, u, equilibration, alignment;
};

// Collective over MPI_COMM_WORLD. Rank 0 reads ./HPL.dat for all. Refuses with a sentence that names
// line and value.
Input read_input(int ranks);

} // namespace hpl

#endif
