// What the command line asks for. Names, numbers and defaults are those of upstream's options.
#ifndef MINIGHOST_OPTIONS_HPP
#define MINIGHOST_OPTIONS_HPP

#include "application.hpp"

namespace minighost {

enum Scaling { SCALING_STRONG = 1, SCALING_WEAK = 2 };

enum CommMethod { COMM_METHOD_BSPMA = 10, COMM_METHOD_SVAF = 11 };

enum StencilKind {
    STENCIL_2D5PT = 21,
    STENCIL_2D9PT = 22,
    STENCIL_3D7PT = 23,
    STENCIL_3D27PT = 24,
};

// How a halo travels; upstream has the first only.
enum class ExchangeMethod { WAITANY, WAITALL, SENDRECV, DATATYPE };

struct Options {
    int scaling = SCALING_WEAK;
    int points[3] = { 100, 100, 100 }; // of a process if scaling is weak, of the mesh if strong
    int processes[3];                // in x, y and z; default: all of them in x
    int stencil = STENCIL_2D5PT;
    int comm_method = COMM_METHOD_BSPMA;
    ExchangeMethod exchange = ExchangeMethod::WAITANY;
    int boundary = 31; // Dirichlet, and nothing else
    int variables = 5;
    int percent_sum = 100;
    int spikes = 1;
    int steps = 100; // for each spike
    int error_digits = 8;
    int report_diffusion = 20;
    int report_perf = 0;
    int debug_grid = 0;

    bool is_diagonal() const { return stencil == STENCIL_2D9PT || stencil == STENCIL_3D27PT; }
    bool is_aggregated() const { return comm_method == COMM_METHOD_BSPMA; }
};

extern const char *const HELP;

// The word of --exchange.
const char *name_of(ExchangeMethod method);

// Collective: refuses what is wrong.
Options read_options(int argc, char **argv, const assay::Job &job);

} // namespace minighost

#endif
