// The frame of an application: start, the ways to stop, end, and the loop that is measured: its
// windows, and slices of its limit between them.
//
//     auto job = assay::start(&argc, &argv, "miniFE", help);   MPI and threads; --help, --version
//     ... read options: refuse(); require_memory(); compute, report ...
//     assay::Bouts bouts(MPI_COMM_WORLD, steps, [&] { return limit_triad(limit, 8); });
//     for (...) { start += bouts.before(step); ... bouts.add(0, seconds); } start += bouts.end();
//     assay::print_windows("MATVEC", "Gflop/s", bouts.windows(0), 1e-9 * flops);
//     assay::print_limit("MATVEC", "triad", "GB/s", bouts.of_limit(bytes));
//     return assay::finish(passed);
#ifndef ASSAY_APPLICATION_HPP
#define ASSAY_APPLICATION_HPP

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "windows.h"

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

// At the end of a kernel, on the thread that times: its runs are counted between the instants that
// they are timed between, and one outside of them is missed.
void ran();

// A time by MPI's clock, and by the system's read just before and just after it.
struct Instant {
    double before, mpi, after;
    long runs; // until then
    static Instant now();
};

// What passes between instants: by MPI's clock, which is what programs report, and within which
// bounds it is by the system's, whatever else runs on the core. Times that were scaled, or of which
// something is left out, are not within them: lib/assay/programs/application.py looks.
struct Time {
    double seconds = 0, least = 0, most = 0;
    long runs = 0;

    void add(const Instant &from, const Instant &to);
    void add(const Time &other);
    void subtract(const Time &other);
};

// From any rank. Takes the job down where another number of runs lies within the time.
void require_runs(const char *what, const Time &time, long runs);

// Collective. Rank 0 prints one line, of the mean over the ranks (MPI_SUM), of the most of them
// (MPI_MAX), or of rank 0 alone (MPI_OP_NULL):
//     Time of the force: 0.336968 s; by the system's clock 0.336966 to 0.336971
void print_time(const char *what, const Time &time, MPI_Op over_ranks);

// Windows of equal work, each as long as it took the slowest rank.
struct Windows {
    long count = 0;
    double best = 0, mean = 0; // seconds; see windows.h
    double all = 0, fresh = 0; // seconds of these and of those that begin a bout, and of the latter
    long shorter = 0, equal = 0; // windows, by the best
    long calls = 0, runs = 0; // of the kernel in each and in all; 0 where it is one of a loop
};

// A rate, the limit that it is held against, and the part of it that it reached.
struct OfLimit {
    double achieved, limit, fraction;
    // What the fraction is the median of: the best rate of each bout and in how many windows, and the
    // slices before and after them.
    std::vector<double> rates;
    std::vector<struct limit> slices;
    std::vector<std::size_t> counts;
};

// What windows did together, by each of them and by two clocks.
struct Work {
    double work = 0, seconds = 0;
    Time time;
};

// A loop whose kernels are timed in windows, one in a step. It is cut into bouts, and before and
// after each the limit is measured for a moment: where others share the machine, what the loop gets
// can only be held against what it could have got at that time.
class Bouts {
public:
    static constexpr int MOST = 10;

    // Of a loop of so many steps. `slice` is collective, and returns the limit over all ranks.
    Bouts(MPI_Comm comm, long steps, std::function<limit()> slice);

    // Collective. Before step 0, 1, ...: measures the limit where a bout begins. Returns the seconds
    // that took, which belong to no time of the loop.
    double before(long step);
    // Of all slices so far.
    const Time &paused() const { return paused_; }

    // Collective. After the last step; also where that came early. Later windows do not count.
    double end();

    // The number of the bout that the last step was in.
    std::size_t bout() const { return limits_.size() - 1; }

    // Of this step, on this rank.
    void add(std::size_t kernel, double seconds);
    // The same where windows do different work: they are of a unit of it.
    void add(std::size_t kernel, const Time &took, double work);
    // Of all windows that were added so, on this rank.
    Work work(std::size_t kernel) const;

    // Collective, as what follows. Of all steps but those that begin a bout, which find the caches as
    // the slice left them; of those if there are no others.
    Windows windows(std::size_t kernel) const;
    // Of a kernel that does so much work in a window, over all ranks and in units of the limit. The
    // fraction is the median of the bouts', each the best of its windows over the better slice beside it.
    // All zero where there was no window.
    OfLimit of_limit(double work, std::size_t kernel = 0) const;

private:
    struct Window {
        double seconds;
        std::size_t bout;
        bool is_fresh; // in the step after a slice
        double work;
    };
    double slice();
    // All of a kernel, each as long as it took the slowest rank. Collective.
    std::vector<Window> of_slowest(std::size_t kernel) const;
    // Those that do not begin a bout; all if there are no others.
    static std::vector<Window> steady(const std::vector<Window> &all);

    MPI_Comm comm_;
    long interval_; // steps of a bout
    std::function<limit()> measure_;
    std::vector<limit> limits_; // of each slice
    Time paused_;
    bool is_fresh_ = false, has_ended_ = false;
    std::vector<std::vector<Window>> kernels_;
    std::vector<Time> times_; // of each kernel
};

// A kernel on data so small that they stay in the caches of the cores: what the compiler made of it,
// whatever memory and shared caches do meanwhile.
struct InCaches {
    const char *name, *unit;
    double work; // of a call on a rank, in the unit times seconds
    double operations; // of floating-point numbers, likewise
    std::function<void(int)> run; // on that copy of its data; says that it ran (see `ran`)
};

// Where data lie decides whether a first-level cache holds all of them: by chance, a kernel took twice
// as long in one run of six. A kernel's data are there more than once, at addresses of their own.
constexpr int COPIES_IN_CACHES = 4;

// Collective. All ranks run the kernels at once and in turn, in windows of half a millisecond or longer.
// Before, between and after bouts of windows each rank measures a control (control_in_caches.h). Rank 0
// prints of each kernel, on the rank where it was slowest, the lines of print_windows, print_time and
// print_limit.
void print_in_caches(const std::vector<InCaches> &kernels);

// Rank 0 prints one line, which lib/assay/programs/application.py reads:
//     Windows of MATVEC: 190; best 3.1 Gflop/s of 0.00123 s; whole of best 0.93; all 0.261 s, fresh 0.0131 s; 18 shorter, 1 equal
// `work` is that of a window over all ranks. Nothing where there was no window.
void print_windows(const char *kernel, const char *unit, const Windows &windows, double work);

// Rank 0 prints two lines, one as print_time does:
//     Work of update: 123456 operations in 0.123456789 s
void print_work(const char *kernel, const Work &done);

// Rank 0 prints two lines, which lib/assay/programs/application.py reads:
//     Limit of MATVEC: triad 12.345 GB/s; achieved 10.234 GB/s; fraction 0.829
//     Bouts of MATVEC: 10.121 in 19, 10.306 in 19; between 12.198 12.345 12.287; no less than 12.107 12.311 12.215
// Rates in 1e-9 of the unit. Nothing where there was no window, as nothing was held against it then.
void print_limit(const char *kernel, const char *limit_name, const char *unit,
                 const OfLimit &of_limit);

// Collective. Finalises MPI; returns main's value: 0, or FAILED_CHECK.
int finish(bool passed);

} // namespace assay

#endif
