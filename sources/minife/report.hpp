// The report file.
#ifndef MINIFE_REPORT_HPP
#define MINIFE_REPORT_HPP

#include <optional>
#include <string>
#include <vector>

#include "application.hpp"
#include "matrix.hpp"
#include "oracle.hpp"
#include "partition.hpp"
#include "settings.hpp"
#include "solver.hpp"

namespace minife {

struct PhaseTimes {
    assay::Time structure, assembly, total; // of the slowest rank
};

// Fewest, most and mean over ranks.
struct Spread {
    double low, high, mean;
};

// Collective.
Spread spread_over_ranks(double own, int ranks);

struct MatrixFacts {
    double rows, nonzeros, gigabytes, halo_megabytes;
    Spread rows_per_rank, nonzeros_per_rank;
};

// Floating-point operations of the solver, counted as miniFE always has: vectors have as many
// elements as the mesh, and one product more than there are iterations starts the solver.
struct Flops {
    double waxpy, dot, matvec;
    double total() const { return waxpy + dot + matvec; }
};
Flops count_flops(const std::array<int, 3> &elements, double nonzeros, int iterations);
// Of one iteration.
Flops flops_of_iteration(const std::array<int, 3> &elements, double nonzeros);

struct Results {
    const assay::Job &job;
    const Settings &settings;
    const Imbalance &imbalance;
    const MatrixFacts &matrix;
    const PhaseTimes &phases;
    const Solution &solution; // its times are the slowest rank's
    const ResidualCheck &residual;
    const std::optional<CentreCheck> &centre;
    const assay::OfLimit &limit; // the product's bytes/s
    double all_memory, most_memory; // kB of all ranks, of one
    bool passed;
};

// Rank 0 writes it into the current folder; returns its name.
std::string write_report(const Results &results);

} // namespace minife

#endif
