// The heat that is put into the variables: what they start with, and the spikes.
#ifndef MINIGHOST_SOURCE_HPP
#define MINIGHOST_SOURCE_HPP

#include <vector>

#include "domain.hpp"
#include "options.hpp"

namespace minighost {

struct Spike {
    long place[3];            // global index
    std::vector<double> heat; // of each variable
};

// Upstream takes its values from the compiler's RANDOM_NUMBER. These are the ones that it gets if
// it is built with gfortran 12. Other than there, the heat of a spike does not depend on the number
// of processes, so neither does the answer.
class Source {
public:
    Source(const Options &options, const Domain &domain);

    // The same at each point and in each variable.
    double start() const { return start_; }
    const Spike &spike(int number) const { return spikes_[number]; }

private:
    double start_;
    std::vector<Spike> spikes_;
};

} // namespace minighost

#endif
