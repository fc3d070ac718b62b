// What is printed, and the file results.yaml: with upstream's keys.
#ifndef MINIGHOST_REPORT_HPP
#define MINIGHOST_REPORT_HPP

#include "domain.hpp"
#include "exchange.hpp"
#include "options.hpp"

namespace minighost {

// How many variables are summed in each step.
int summed_variables(const Options &options);

// What this rank took.
struct Taken {
    assay::Time wall;       // all time steps
    assay::Time stencil;    // with the sums and the boundary, which are made on the way
    assay::Time sum;        // of variables: all of it
    assay::Time sum_points; // adding up points
    assay::Time sum_ranks;  // adding up over the ranks
    long sums = 0;
};

void print_header(const Options &options, const Domain &domain, const assay::Job &job);

// Collective. To standard output if --report_perf says so, and to results.yaml.
void report(const Options &options, const Domain &domain, const assay::Job &job, const Taken &taken,
            const Exchange &exchange);

} // namespace minighost

#endif
