#include "application.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "abort_job.h"
#include "control_in_caches.h"
#include "shortage.h"
#include "windows.h"

namespace assay {

namespace {

const char *program_name = "";
Job job;

// The sentence with its values.
struct Sentence {
    char text[1024];
    Sentence(const char *format, va_list values)
    {
        std::vsnprintf(text, sizeof text, format, values);
    }
};

// The first rank of this host. By name: by shared memory an MPI that is told not to use it finds each
// rank alone.
int first_rank_of_host()
{
    using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
    Name own{};
    int length;
    MPI_Get_processor_name(own.data(), &length);
    std::vector<Name> names(job.ranks);
    MPI_Allgather(own.data(), own.size(), MPI_CHAR, names.data(), own.size(), MPI_CHAR,
                  MPI_COMM_WORLD);
    return static_cast<int>(std::find(names.begin(), names.end(), own) - names.begin());
}

// A bout of fewer windows says little: its best is that of a few.
constexpr std::size_t FEWEST_WINDOWS = 5;

// Of kernels in caches: short enough that most are not interrupted, and long beside the clock's steps.
constexpr double SHORTEST_WINDOW = 0.5e-3;
#ifdef __SANITIZE_ADDRESS__ // in tests, where nobody reads the rates: a kernel takes ten times as long
constexpr long WINDOWS_IN_CACHES = 6;
#else
constexpr long WINDOWS_IN_CACHES = 120;
#endif

// The upper one of the two in the middle.
double median(std::vector<double> values)
{
    auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

double system_seconds()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double best(std::vector<double> seconds)
{
    return windows_best(seconds.data(), static_cast<long>(seconds.size()));
}

[[noreturn]] void leave(int code)
{
    std::fflush(stdout);
    MPI_Finalize();
    std::exit(code);
}

} // namespace

Job start(int *argc, char ***argv, const char *program, const char *help)
{
    program_name = program;
    int provided;
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
    job.threads = omp_get_max_threads();
    if (job.threads > 1 && provided < MPI_THREAD_FUNNELED)
        refuse("this MPI carries no threads (it provides level %d); set OMP_NUM_THREADS=1",
               provided);
    for (int i = 1; i < *argc; i++) {
        bool wants_help = std::strcmp((*argv)[i], "--help") == 0;
        if (!wants_help && std::strcmp((*argv)[i], "--version") != 0)
            continue;
        if (job.rank == 0 && wants_help)
            std::fputs(help, stdout);
        else if (job.rank == 0)
            std::printf("%s %s\n", program, version());
        leave(EXIT_SUCCESS);
    }
    return job;
}

const char *version()
{
    return ASSAY_VERSION;
}

void refuse(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    Sentence sentence(format, values);
    va_end(values);
    std::fflush(stdout);
    // In one piece: Open MPI's launcher may deliver the first of several as standard output.
    if (job.rank == 0)
        std::fprintf(stderr, "%s: %s\n", program_name, sentence.text);
    leave(WRONG_USE);
}

void fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    Sentence sentence(format, values);
    va_end(values);
    std::fflush(stdout);
    std::fprintf(stderr, "%s: rank %d: %s\n", program_name, job.rank, sentence.text);
    abort_job(MPI_COMM_WORLD, BROKEN);
}

void require_memory(double bytes_on_this_rank, const char *remedy)
{
    shortage found;
    if (find_shortage(bytes_on_this_rank, first_rank_of_host(), &found))
        refuse("the ranks on host %s need %.2f GiB but only %.2f GiB are available; %s", found.host,
               found.need, found.available, remedy);
}

static long runs_of_kernels;

void ran()
{
    runs_of_kernels++;
}

Instant Instant::now()
{
    double before = system_seconds(), mpi = MPI_Wtime();
    return { before, mpi, system_seconds(), runs_of_kernels };
}

void Time::add(const Instant &from, const Instant &to)
{
    static const double tick = MPI_Wtick(); // of some MPIs a microsecond
    seconds += to.mpi - from.mpi;
    least += to.before - from.after - tick;
    most += to.after - from.before + tick;
    runs += to.runs - from.runs;
}

void Time::add(const Time &other)
{
    seconds += other.seconds;
    least += other.least;
    most += other.most;
    runs += other.runs;
}

void Time::subtract(const Time &other)
{
    seconds -= other.seconds;
    least -= other.most;
    most -= other.least;
    runs -= other.runs;
}

void require_runs(const char *what, const Time &time, long runs)
{
    if (time.runs != runs)
        fail("%ld runs of kernels are within the time of %s, which has %ld", time.runs, what, runs);
}

void print_time(const char *what, const Time &time, MPI_Op over_ranks)
{
    double values[] = { time.seconds, time.least, time.most };
    if (over_ranks != MPI_OP_NULL)
        MPI_Allreduce(MPI_IN_PLACE, values, 3, MPI_DOUBLE, over_ranks, MPI_COMM_WORLD);
    for (double &value : values)
        value /= over_ranks == MPI_SUM ? job.ranks : 1;
    if (job.rank == 0)
        std::printf("Time of the %s: %.6f s; by the system's clock %.6f to %.6f\n", what, values[0],
                    values[1], values[2]);
}

// How many windows are shorter than the best, and how many as long.
static void find_place(Windows &windows, const std::vector<double> &seconds)
{
    windows.shorter = std::count_if(seconds.begin(), seconds.end(),
                                    [&](double one) { return one < windows.best; });
    windows.equal = std::count(seconds.begin(), seconds.end(), windows.best);
}

// `all`: seconds of these windows and of those that are not among them.
static Windows windows_of(const std::vector<double> &seconds, double all)
{
    Windows windows;
    windows.count = static_cast<long>(seconds.size());
    windows.best = best(seconds);
    windows.mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) /
                   static_cast<double>(seconds.size());
    windows.all = all;
    find_place(windows, seconds);
    return windows;
}

Bouts::Bouts(MPI_Comm comm, long steps, std::function<limit()> slice)
    : comm_(comm), interval_(std::max((steps + MOST - 1) / MOST, long{ FEWEST_WINDOWS })),
      measure_(std::move(slice))
{
}

double Bouts::slice()
{
    Instant start = Instant::now();
    MPI_Barrier(comm_); // all measure at the same time
    limits_.push_back(measure_());
    double before = paused_.seconds;
    paused_.add(start, Instant::now());
    return paused_.seconds - before;
}

double Bouts::before(long step)
{
    is_fresh_ = step % interval_ == 0;
    return is_fresh_ ? slice() : 0;
}

double Bouts::end()
{
    has_ended_ = true;
    return slice();
}

void Bouts::add(std::size_t kernel, double seconds)
{
    if (has_ended_)
        return;
    kernels_.resize(std::max(kernels_.size(), kernel + 1));
    kernels_[kernel].push_back({ seconds, limits_.size() - 1, is_fresh_, 1 });
}

void Bouts::add(std::size_t kernel, const Time &took, double work)
{
    add(kernel, took.seconds / work);
    kernels_[kernel].back().work = work;
    times_.resize(kernels_.size());
    times_[kernel].add(took);
}

Work Bouts::work(std::size_t kernel) const
{
    if (kernel >= times_.size())
        return {};
    Work done;
    for (const Window &window : kernels_[kernel]) {
        done.work += window.work;
        done.seconds += window.seconds * window.work;
    }
    done.time = times_[kernel];
    return done;
}

std::vector<Bouts::Window> Bouts::of_slowest(std::size_t kernel) const
{
    if (kernel >= kernels_.size())
        return {};
    std::vector<Window> all = kernels_[kernel];
    // With their negatives, of which the greatest is the least: by any other operation the two would
    // not enclose what is reduced.
    std::vector<double> ends;
    for (const Window &window : all) {
        ends.push_back(window.seconds);
        ends.push_back(-window.seconds);
    }
    MPI_Allreduce(MPI_IN_PLACE, ends.data(), static_cast<int>(ends.size()), MPI_DOUBLE, MPI_MAX,
                  comm_);
    for (std::size_t i = 0; i < all.size(); i++) {
        const double own = all[i].seconds, least = -ends[2 * i + 1];
        if (!(least <= own && own <= ends[2 * i]))
            fail("a window of %g s is not between %g and %g s of all ranks", own, least,
                 ends[2 * i]);
        all[i].seconds = ends[2 * i];
    }
    return all;
}

std::vector<Bouts::Window> Bouts::steady(const std::vector<Window> &all)
{
    std::vector<Window> some;
    for (const Window &window : all)
        if (!window.is_fresh)
            some.push_back(window);
    return some.empty() ? all : some;
}

Windows Bouts::windows(std::size_t kernel) const
{
    const std::vector<Window> all = of_slowest(kernel);
    std::vector<double> seconds;
    for (const Window &window : steady(all))
        seconds.push_back(window.seconds);
    if (seconds.empty())
        return {};
    double sum_of_all = 0, fresh = 0;
    for (const Window &window : all) {
        sum_of_all += window.seconds;
        fresh += window.is_fresh && seconds.size() < all.size() ? window.seconds : 0;
    }
    Windows windows = windows_of(seconds, sum_of_all);
    windows.fresh = fresh;
    return windows;
}

OfLimit Bouts::of_limit(double work, std::size_t kernel) const
{
    std::vector<std::vector<double>> bouts(limits_.size());
    for (const Window &window : steady(of_slowest(kernel)))
        bouts[window.bout].push_back(window.seconds);
    std::size_t longest = 0;
    for (const std::vector<double> &seconds : bouts)
        longest = std::max(longest, seconds.size());
    OfLimit found{};
    std::vector<double> fractions;
    for (std::size_t bout = 0; bout + 1 < limits_.size(); bout++) {
        const std::size_t count = bouts[bout].size();
        const double rate = count > 0 ? work / best(bouts[bout]) : 0;
        found.rates.push_back(rate);
        found.counts.push_back(count);
        if (count > 0 && count >= std::min(longest, FEWEST_WINDOWS))
            fractions.push_back(rate / std::max(limits_[bout].rate, limits_[bout + 1].rate));
    }
    if (fractions.empty())
        return {};
    found.slices = limits_;
    found.achieved = work / windows(kernel).best;
    for (const limit &slice : limits_)
        found.limit = std::max(found.limit, slice.rate);
    found.fraction = median(fractions);
    return found;
}

// What another rank has of it.
template <typename Value>
static void take_from(int rank, Value *values, std::size_t count)
{
    MPI_Bcast(values, static_cast<int>(count * sizeof(Value)), MPI_BYTE, rank, MPI_COMM_WORLD);
}

// The rank whose best window is longest.
static int slowest_rank(double best)
{
    struct {
        double best;
        int rank;
    } slowest = { best, job.rank };
    MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    return slowest.rank;
}

void print_in_caches(const std::vector<InCaches> &kernels)
{
    auto time = [](const InCaches &kernel, long calls, std::size_t copy) {
        Time took;
        const Instant start = Instant::now();
        for (long i = 0; i < calls; i++)
            kernel.run(static_cast<int>(copy));
        took.add(start, Instant::now());
        require_runs("a kernel in caches", took, calls);
        return took;
    };
    std::vector<long> calls;
    for (const InCaches &kernel : kernels) {
        auto shortest = [&](long some) { // of three: one that others interrupt is long
            double first = time(kernel, some, 0).seconds, second = time(kernel, some, 0).seconds;
            return std::min({ first, second, time(kernel, some, 0).seconds });
        };
        calls.push_back(1);
        while (shortest(calls.back()) < SHORTEST_WINDOW)
            calls.back() *= 2;
    }
    MPI_Allreduce(MPI_IN_PLACE, calls.data(), static_cast<int>(calls.size()), MPI_LONG, MPI_MAX,
                  MPI_COMM_WORLD);
    // Each rank for itself: a core is held against what it does itself.
    const std::unique_ptr<control, void (*)(control *)> own(control_make(), control_free);
    if (!own)
        fail("no memory for the control in caches");
    Bouts bouts(MPI_COMM_SELF, WINDOWS_IN_CACHES, [&own] { return control_in_caches(own.get()); });
    std::vector<Time> times(kernels.size());
    for (long window = 0; window < WINDOWS_IN_CACHES; window++) {
        MPI_Barrier(MPI_COMM_WORLD); // all measure at the same time
        bouts.before(window);
        for (std::size_t i = 0; i < kernels.size(); i++) {
            const Time took = time(kernels[i], calls[i], bouts.bout() % COPIES_IN_CACHES);
            bouts.add(i, took.seconds);
            times[i].add(took);
        }
    }
    bouts.end();
    for (std::size_t i = 0; i < kernels.size(); i++) {
        const InCaches &kernel = kernels[i];
        const auto in_window = static_cast<double>(calls[i]);
        Windows windows = bouts.windows(i);
        OfLimit of_control = bouts.of_limit(kernel.operations * in_window, i);
        const int slowest = slowest_rank(windows.best);
        take_from(slowest, &windows, 1);
        take_from(slowest, &times[i], 1);
        take_from(slowest, &of_control.achieved, 1);
        take_from(slowest, &of_control.limit, 1);
        take_from(slowest, &of_control.fraction, 1);
        take_from(slowest, of_control.rates.data(), of_control.rates.size());
        take_from(slowest, of_control.counts.data(), of_control.counts.size());
        take_from(slowest, of_control.slices.data(), of_control.slices.size());
        windows.calls = calls[i];
        windows.runs = times[i].runs;
        print_windows(kernel.name, kernel.unit, windows, kernel.work * in_window * job.ranks);
        print_time(kernel.name, times[i], MPI_OP_NULL);
        print_limit(kernel.name, "control", "Gflop/s", of_control);
    }
}

void print_windows(const char *kernel, const char *unit, const Windows &windows, double work)
{
    if (job.rank != 0 || windows.count == 0)
        return;
    std::printf("Windows of %s: %ld", kernel, windows.count);
    if (windows.calls > 0)
        std::printf(" of %ld calls, %ld in all", windows.calls, windows.runs);
    std::printf("; best %.6g %s of %.6g s; whole of best %.6g", work / windows.best, unit,
                windows.best, windows.best / windows.mean);
    if (windows.all > 0)
        std::printf("; all %.6g s, fresh %.6g s; %ld shorter, %ld equal", windows.all,
                    windows.fresh, windows.shorter, windows.equal);
    std::printf("\n");
}

void print_work(const char *kernel, const Work &done)
{
    if (job.rank == 0)
        std::printf("Work of %s: %.17g operations in %.9f s\n", kernel, done.work, done.seconds);
    print_time((std::string("windows of ") + kernel).c_str(), done.time, MPI_OP_NULL);
}

void print_limit(const char *kernel, const char *limit_name, const char *unit,
                 const OfLimit &of_limit)
{
    if (job.rank != 0 || of_limit.limit == 0)
        return;
    std::printf("Limit of %s: %s %.6g %s; achieved %.6g %s; fraction %.6g\n", kernel, limit_name,
                1e-9 * of_limit.limit, unit, 1e-9 * of_limit.achieved, unit, of_limit.fraction);
    std::printf("Bouts of %s:", kernel);
    for (std::size_t i = 0; i < of_limit.rates.size(); i++)
        std::printf("%s %.6g in %zu", i == 0 ? "" : ",", 1e-9 * of_limit.rates[i],
                    of_limit.counts[i]);
    std::printf("; between");
    for (const limit &slice : of_limit.slices)
        std::printf(" %.6g", 1e-9 * slice.rate);
    std::printf("; no less than");
    for (const limit &slice : of_limit.slices)
        std::printf(" %.6g", 1e-9 * slice.least);
    std::printf("\n");
}

int finish(bool passed)
{
    std::fflush(stdout);
    MPI_Finalize();
    return passed ? EXIT_SUCCESS : FAILED_CHECK;
}

} // namespace assay
