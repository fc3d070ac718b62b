// The frame of an application: start, the ways to stop, end, and the fraction of the limit.
//
//     auto job = assay::start(&argc, &argv, "miniFE", help);   MPI and threads; --help, --version
//     ... read options: refuse(); require_memory(); compute, report ...
//     assay::print_limit("MATVEC", "triad", "GB/s", limit, achieved);
//     return assay::finish(passed);
#ifndef ASSAY_APPLICATION_HPP
#define ASSAY_APPLICATION_HPP

#include <mpi.h>

namespace assay {

// Exit codes, the same in every program.
enum Exit {
    FAILED_CHECK = 1,  // it ran to its end, and its own check of the answer failed
    WRONG_USE = 2,     // options, input, number of ranks, memory: nothing was computed
    BROKEN = 4,        // the system refused something on the way
};

struct Job {
    int rank, ranks; // of MPI_COMM_WORLD
    int threads;     // OpenMP threads of this rank
};

// Initialises MPI with MPI_THREAD_FUNNELED. `help` is printed for --help (rank 0, exit code 0);
// --version prints the version. Sets the program's name for the sentences of refuse and fail.
Job start(int *argc, char ***argv, const char *program, const char *help);

// Version of the suite, as in --version.
const char *version();

// Collective: all ranks call it for the same reason. Rank 0 says "program: sentence" on standard
// error; all ranks leave with WRONG_USE through MPI_Finalize.
[[noreturn]] void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

// From any single rank: says "program: rank R: sentence" and takes the job down with BROKEN.
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Collective. Refuses, with the figures, when what the ranks of a host need together is more than
// the host has available. Call it before anything large is allocated. `remedy`: an imperative.
void require_memory(double bytes_on_this_rank, const char *remedy);

// Rank 0 prints one line, which lib/assay/programs/application.py reads:
//     Limit of MATVEC: triad 12.345 GB/s; achieved 10.234 GB/s; fraction 0.829
void print_limit(const char *kernel, const char *limit_name, const char *unit, double limit,
                 double achieved);

// Collective. Finalises MPI; returns main's value: 0, or FAILED_CHECK.
int finish(bool passed);

} // namespace assay

#endif
