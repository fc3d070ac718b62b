// HPL's report: its keys and columns, so that whoever reads HPL's output reads this one.
#ifndef HPL_REPORT_HPP
#define HPL_REPORT_HPP

#include <cstdio>
#include <ctime>

#include "input.hpp"
#include "residual.hpp"
#include "solver.hpp"

namespace hpl {

// One combination of the values in HPL.dat, as they stand there.
struct Test {
    int n, nb, p, q;
    int depth, bcast, rfact, ndiv, pfact, nbmin;
};

struct Timing {
    double seconds; // to solve the system
    // The same by the system's clock, between the readings of MPI's and around them, and the sum of the
    // phases: of the rank with the most, each.
    double least, most, parts;
    std::time_t began, ended;
    Seconds phases; // each the greatest of all ranks
};

struct Tally {
    int passed = 0, failed = 0;
};

// Writes nothing where it is given no file.
class Report {
public:
    Report(std::FILE *file, const Input &input);

    void parameters(int ranks, int threads, const char *blas) const;
    void result(const Test &test, const Timing &timing);
    void verdict(const Residual &residual, bool passed) const;
    void summary(const Tally &tally) const;

private:
    std::FILE *file;
    const Input &input;
    bool table_begun = false;
};

// 2/3 N^3 + 3/2 N^2 operations, as HPL counts them, in 10^9 a second.
double gflops(int n, double seconds);

} // namespace hpl

#endif
