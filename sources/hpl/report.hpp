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

// Of the rank with the most, each.
struct Timing {
    assay::Time whole; // to solve the system
    double parts;      // seconds of all phases
    Phases phases;     // and the messages of all
    int place[2];      // row and column of rank 1, or of the only one
    std::time_t began, ended;
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
    void verdict(const Residual &residual, double multiplier, bool passed) const;
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
