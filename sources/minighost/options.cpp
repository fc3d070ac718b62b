#include "options.hpp"

#include <climits>
#include <cstring>

#include "numbers.h"

namespace minighost {

namespace {

constexpr int LARGEST = 1 << 24; // of a number of points, processes, variables or steps

const char *const EXCHANGES[] = { "waitany", "waitall", "sendrecv", "datatype" };

// An option that takes a whole number, and the places that get it.
struct Number {
    const char *name;
    int low, high;
    int *places[3];
};

int whole_number(const Number &option, const char *text)
{
    long value;
    if (!read_whole(text, option.low, option.high, &value))
        assay::refuse("%s %s is wrong; give a whole number from %d to %d", option.name, text,
                      option.low, option.high);
    return static_cast<int>(value);
}

ExchangeMethod exchange_named(const char *text)
{
    for (int i = 0; i < 4; i++)
        if (std::strcmp(text, EXCHANGES[i]) == 0)
            return static_cast<ExchangeMethod>(i);
    assay::refuse("--exchange %s is wrong; give waitany, waitall, sendrecv or datatype", text);
}

void check_processes(const Options &options, int ranks)
{
    const int *grid = options.processes;
    long product = 1;
    for (int d = 0; d < 3; d++) // of three numbers below 2^24 it may not fit a long
        product = product > INT_MAX ? product : product * grid[d];
    if (product != ranks)
        assay::refuse("--npx %d --npy %d --npz %d is a grid of %ld processes, but %d are running; "
                      "give three numbers whose product is %d",
                      grid[0], grid[1], grid[2], product, ranks, ranks);
    for (int d = 0; d < 3; d++)
        if (options.scaling == SCALING_STRONG && options.points[d] < grid[d])
            assay::refuse("--n%c %d is too small for --np%c %d, as each process needs a point; use "
                          "a larger --n%c or a smaller --np%c",
                          'x' + d, options.points[d], 'x' + d, grid[d], 'x' + d, 'x' + d);
}

} // namespace

const char *const HELP =
    "usage: minighost [options]\n"
    "\n"
    "Spreads heat over a mesh by a difference stencil, in several variables, and checks that\n"
    "none gets lost. Options, numbers and defaults are those of Mantevo's miniGhost.\n"
    "\n"
    "  --scaling 1|2         1: --nx --ny --nz are of the whole mesh (strong scaling);\n"
    "                        2: of each process (weak scaling, default)\n"
    "  --nx, --ny, --nz N    points in each direction (100)\n"
    "  --ndim N              the same for all three\n"
    "  --npx, --npy, --npz N processes in each direction (all in x); their product is the number\n"
    "                        of ranks\n"
    "  --npdim N             the same for all three\n"
    "  --num_vars N          variables (5)\n"
    "  --num_spikes N        sources of heat, set one after the other (1)\n"
    "  --num_tsteps N        time steps for each spike (100)\n"
    "  --stencil N           21: 5 points, 22: 9 points (both in planes of x and y),\n"
    "                        23: 7 points, 24: 27 points; default 21\n"
    "  --comm_method N       10: all variables in one message (BSPMA, default);\n"
    "                        11: one variable at a time (SVAF)\n"
    "  --exchange HOW        waitany (default, as upstream): a message is unpacked as it comes;\n"
    "                        waitall: all are awaited together; sendrecv: one direction after the\n"
    "                        other; datatype: derived datatypes in place of packing\n"
    "  --bc 31               boundary conditions: Dirichlet, the only ones\n"
    "  --percent_sum N       share of the variables whose heat is summed in each step (100)\n"
    "  --error_tol N         heat must be right to 10^-N (8)\n"
    "  --report_diffusion N  print the error every N steps (20); 0: at the end of each spike\n"
    "  --debug_grid 0|1      1: start from a cold mesh, and sum all variables (0)\n"
    "  --report_perf 0|1|2   0: file results.yaml only (default); 1: print the report;\n"
    "                        2: print the time of each process, too\n"
    "  --help, --version\n"
    "\n"
    "Examples:\n"
    "  mpirun -n 2 minighost --scaling 1 --ndim 100 --npz 2 --npx 1 --stencil 24 --report_perf 1\n"
    "  mpirun -n 8 minighost --npdim 2 --num_vars 40 --comm_method 11 --exchange datatype\n"
    "\n"
    "Exit code 1: heat was lost or went to the wrong place; 2: wrong use.\n";

const char *name_of(ExchangeMethod method)
{
    return EXCHANGES[static_cast<int>(method)];
}

Options read_options(int argc, char **argv, const assay::Job &job)
{
    Options options;
    int *points = options.points, *grid = options.processes;
    grid[0] = job.ranks;
    grid[1] = grid[2] = 1;
    const Number numbers[] = {
        { "--scaling", SCALING_STRONG, SCALING_WEAK, { &options.scaling } },
        { "--nx", 1, LARGEST, { &points[0] } },
        { "--ny", 1, LARGEST, { &points[1] } },
        { "--nz", 1, LARGEST, { &points[2] } },
        { "--ndim", 1, LARGEST, { &points[0], &points[1], &points[2] } },
        { "--npx", 1, LARGEST, { &grid[0] } },
        { "--npy", 1, LARGEST, { &grid[1] } },
        { "--npz", 1, LARGEST, { &grid[2] } },
        { "--npdim", 1, LARGEST, { &grid[0], &grid[1], &grid[2] } },
        { "--num_vars", 1, LARGEST, { &options.variables } },
        { "--num_spikes", 1, LARGEST, { &options.spikes } },
        { "--num_tsteps", 1, LARGEST, { &options.steps } },
        { "--stencil", STENCIL_2D5PT, STENCIL_3D27PT, { &options.stencil } },
        { "--comm_method", COMM_METHOD_BSPMA, COMM_METHOD_SVAF, { &options.comm_method } },
        { "--bc", 31, 31, { &options.boundary } },
        { "--percent_sum", 0, 100, { &options.percent_sum } },
        { "--error_tol", 0, 12, { &options.error_digits } },
        { "--report_diffusion", 0, LARGEST, { &options.report_diffusion } },
        { "--debug_grid", 0, 1, { &options.debug_grid } },
        { "--report_perf", 0, 2, { &options.report_perf } },
    };
    for (int i = 1; i < argc; i += 2) {
        const Number *found = nullptr;
        for (const Number &number : numbers)
            if (std::strcmp(argv[i], number.name) == 0)
                found = &number;
        bool is_exchange = std::strcmp(argv[i], "--exchange") == 0;
        if (!found && !is_exchange)
            assay::refuse("%s is no option; --help lists them", argv[i]);
        if (i + 1 == argc)
            assay::refuse("%s lacks its value; give one", argv[i]);
        if (is_exchange) {
            options.exchange = exchange_named(argv[i + 1]);
            continue;
        }
        int value = whole_number(*found, argv[i + 1]);
        for (int *place : found->places)
            if (place)
                *place = value;
    }
    if (options.debug_grid)
        options.percent_sum = 100; // who checks, checks all
    if (options.report_diffusion == 0)
        options.report_diffusion = options.steps;
    check_processes(options, job.ranks);
    return options;
}

} // namespace minighost
