// What is printed, and the file results.yaml: with upstream's keys.
#ifndef MINIGHOST_REPORT_HPP
#define MINIGHOST_REPORT_HPP

#include "domain.hpp"
#include "exchange.hpp"
#include "options.hpp"

namespace minighost {

// How many variables are summed in each step.
int summed_variables(const Options &options);

// What this rank took, in seconds.
struct Taken {
    double wall = 0;       // all time steps
    double stencil = 0;    // with the sums and the boundary, which are made on the way
    double sum = 0;        // of variables: all of it
    double sum_points = 0; // adding up points
    double sum_ranks = 0;  // adding up over the ranks
    long sums = 0;
};

void print_header(const Options &options, const Domain &domain, const assay::Job &job);

// Collective. To standard output if --report_perf says so, and to results.yaml.
void report(const Options &options, const Domain &domain, const assay::Job &job, const Taken &taken,
            const Exchange &exchange);

} // namespace minighost

#endif
