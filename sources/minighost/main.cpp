// miniGhost: heat spreads over a mesh by a difference stencil, step by step. Before each step the
// processes exchange the halos of their parts; after it the heat of each variable is added up, and
// together with what left the mesh it has to be what was put in.
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <deque>
#include <memory>
#include <vector>

#include "application.hpp"
#include "domain.hpp"
#include "exchange.hpp"
#include "modes.hpp"
#include "node_limits.h"
#include "options.hpp"
#include "report.hpp"
#include "source.hpp"
#include "spread.hpp"
#include "stencil.hpp"
#include "variables.hpp"

namespace minighost {
namespace {

constexpr int LIMIT_WINDOWS = 12; // of a slice
constexpr int TRIALS = 3;         // of each way to store
// One read and one write of each point.
constexpr double BYTES_PER_UPDATE = 2 * sizeof(double);
constexpr double OPERATIONS_PER_UPDATE = 27; // as upstream counts

// In doubles, as absurd sizes would overflow anything else.
void require_resources(const Options &options, const Domain &domain)
{
    double grid = sizeof(double), buffers = 0, largest_face = 0;
    double together = options.is_aggregated() ? options.variables : 1;
    for (int n : domain.n)
        grid *= n + 2.0;
    grid += 8.0 * sizeof(double) * (domain.n[1] + 3.0) * (domain.n[2] + 3.0); // whole cache lines
    for (int d = 0; d < 3; d++) {
        double face = (domain.largest[(d + 1) % 3] + 2.0) * (domain.largest[(d + 2) % 3] + 2.0);
        for (int neighbour : domain.neighbour[d])
            buffers += neighbour == MPI_PROC_NULL ? 0 : 2 * sizeof(double) * face * together;
        if (domain.grid[d] > 1)
            largest_face = std::fmax(largest_face, face);
    }
    double heats = sizeof(double) * static_cast<double>(options.spikes) * options.variables;
    double grids = grid * (options.variables + 1.0);
    assay::require_memory(grids + limit_triad_bytes(grids) + buffers + heats,
                          "use a smaller mesh, fewer --num_vars or more hosts");
    if (largest_face * together > INT_MAX)
        assay::refuse("a message would have %.3g values, and MPI counts to %d only; use more "
                      "processes%s",
                      largest_face * together, INT_MAX,
                      options.is_aggregated() ? " or --comm_method 11" : "");
}

class Run {
public:
    Run(const Options &options, const Domain &domain, const assay::Job &job)
        : options_(options), domain_(domain), job_(job), layout_(domain), source_(options, domain),
          variables_(layout_, options.variables, source_.start()),
          exchange_(options, domain, variables_), stencil_(options.stencil, domain, layout_),
          modes_(options, domain, source_.start()), flux_(options.variables),
          put_in_(options.variables, source_.start() * domain.all_points()),
          tolerance_(std::pow(10.0, -options.error_digits)),
          limit_(limit_triad_make(MPI_COMM_WORLD,
                                  limit_triad_bytes(layout_.bytes(options.variables))),
                 limit_triad_free),
          bouts_(MPI_COMM_WORLD, static_cast<long>(options.spikes) * options.steps,
                 [this] { return limit_triad(limit_.get(), LIMIT_WINDOWS); }),
          stores_(faster_stores())
    {
    }

    // Both return whether all heat is where it should be.
    bool step_through();
    bool check_end();
    // Collective. What lib/assay/programs/minighost.py computes by itself: whether each point has the
    // heat that it ought to have, and the sum of the squares of all.
    void print_fingerprints();

    const Taken &taken() const { return taken_; }
    const Exchange &exchange() const { return exchange_; }
    // Collective. What the reader finds as figures, beside the system's clock.
    void print_times() const;
    // Collective. What the stencil made of the memory's bandwidth.
    void print_stencil() const;

private:
    Stores faster_stores();
    void insert(const Spike &spike);
    bool step(int spike, int step);
    bool update(int variable, int spike, int step);
    double sum_over_ranks(double own);
    void print_error(int spike, int step, int variable, double error) const;

    bool is_summed(int variable) const
    {
        long percent = options_.percent_sum;
        return (variable + 1) * percent / 100 > variable * percent / 100;
    }
    double error_of(int variable, double heat) const
    {
        return std::fabs(put_in_[variable] - heat) / put_in_[variable];
    }

    const Options &options_;
    const Domain &domain_;
    const assay::Job &job_;
    Layout layout_;
    Source source_;
    Variables variables_;
    Exchange exchange_;
    Stencil stencil_;
    Modes modes_;
    std::vector<double> flux_, put_in_; // heat of each variable; flux on this rank
    double tolerance_;
    Taken taken_;
    std::unique_ptr<triad_limit, void (*)(triad_limit *)> limit_;
    assay::Bouts bouts_; // its windows are time steps
    Stores stores_;
};

// Streaming saves the memory a read of what is overwritten, but is slower if the grids stay in a
// cache. Which is better is tried before the time steps, on all variables, as they share the caches
// then: the best of some trials, for of a single one others on the machine may have taken half.
Stores Run::faster_stores()
{
    if (!Stencil::can_stream())
        return Stores::NORMAL;
    double best_normal = 0, best_streaming = 0;
    for (int trial = 0; trial < 2 * TRIALS; trial++) {
        bool is_streaming = trial % 2 == 1;
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        for (int v = 0; v < options_.variables; v++)
            stencil_.apply(variables_[v], variables_.spare(),
                           is_streaming ? Stores::STREAMING : Stores::NORMAL);
        double took = MPI_Wtime() - start; // all ranks store alike
        MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        double &best = is_streaming ? best_streaming : best_normal;
        best = trial < 2 ? took : std::min(best, took);
    }
    return best_streaming < best_normal ? Stores::STREAMING : Stores::NORMAL;
}

void Run::insert(const Spike &spike)
{
    std::ptrdiff_t place = 0;
    bool is_here = true;
    for (int d = 0; d < 3; d++) {
        long local = spike.place[d] - domain_.first[d] + 1;
        is_here = is_here && local >= 1 && local <= domain_.n[d];
        place += local * layout_.stride(d);
    }
    for (int v = 0; v < options_.variables; v++) {
        if (is_here)
            variables_[v][place] += spike.heat[v];
        put_in_[v] += spike.heat[v];
    }
    modes_.add(spike);
}

bool Run::step_through()
{
    MPI_Barrier(MPI_COMM_WORLD);
    assay::Instant start = assay::Instant::now();
    long done = 0;
    for (int spike = 0; spike < options_.spikes; spike++) {
        insert(source_.spike(spike));
        for (int number = 1; number <= options_.steps; number++) {
            bouts_.before(done++);
            if (!step(spike + 1, number))
                return false;
        }
    }
    taken_.wall.add(start, assay::Instant::now());
    taken_.wall.subtract(bouts_.paused());
    bouts_.end();
    assay::require_runs("the stencil", taken_.stencil, done * options_.variables);
    assay::require_runs("the sums", taken_.sum_ranks, done * summed_variables(options_));
    assay::require_runs("all steps", taken_.wall,
                        done * options_.variables + taken_.sums +
                            exchange_.time_of_all().total().runs);
    return true;
}

bool Run::step(int spike, int number)
{
    double before = taken_.stencil.seconds;
    if (options_.is_aggregated())
        exchange_.run(0, options_.variables);
    for (int v = 0; v < options_.variables; v++) {
        if (!options_.is_aggregated())
            exchange_.run(v, 1);
        if (!update(v, spike, number))
            return false;
    }
    modes_.step();
    bouts_.add(0, taken_.stencil.seconds - before);
    return true;
}

bool Run::update(int v, int spike, int number)
{
    assay::Instant start = assay::Instant::now();
    Heat heat = stencil_.apply(variables_[v], variables_.spare(), stores_);
    variables_.swap_with_spare(v);
    flux_[v] += heat.flux;
    taken_.stencil.add(start, assay::Instant::now());
    if (!is_summed(v))
        return true;
    double error = error_of(v, sum_over_ranks(heat.sum + flux_[v]));
    if (number % options_.report_diffusion == 0)
        print_error(spike, number, v, error);
    if (error <= tolerance_) // false if it is no number
        return true;
    if (job_.rank == 0)
        std::printf("FAILED: heat of variable %d was lost or made in time step %d of spike %d: the "
                    "error is %.5E, the tolerance %.5E\n",
                    v + 1, number, spike, error, tolerance_);
    return false;
}

double Run::sum_over_ranks(double own)
{
    double all;
    const assay::Instant start = assay::Instant::now();
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    assay::ran();
    const assay::Instant end = assay::Instant::now();
    taken_.sum_ranks.add(start, end);
    taken_.sum.add(start, end);
    taken_.sums++;
    return all;
}

void Run::print_error(int spike, int number, int variable, double error) const
{
    if (job_.rank == 0)
        std::printf("Time step %4d for spike %3d for variable %4d the error is %12.5E; error "
                    "tolerance is %12.5E.\n",
                    number, spike, variable + 1, error, tolerance_);
}

bool Run::check_end()
{
    bool passed = true;
    for (int v = 0; v < options_.variables; v++) {
        double sum = 0;
        const assay::Instant start = assay::Instant::now();
        const double *grid = variables_[v];
#pragma omp parallel for schedule(static) reduction(+ : sum)
        for (int z = 1; z <= layout_.n[2]; z++)
            for (int y = 1; y <= layout_.n[1]; y++)
                sum += row_sum(grid + z * layout_.plane + y * layout_.row + 1, layout_.n[0]);
        const assay::Instant end = assay::Instant::now();
        taken_.sum_points.add(start, end);
        taken_.sum.add(start, end);
        double heat = sum_over_ranks(sum + flux_[v]);

        double own[Modes::COUNT + 1] = {}, shares[Modes::COUNT + 1];
        modes_.measure(layout_, grid, own);
        own[Modes::COUNT] = flux_[v];
        MPI_Allreduce(own, shares, Modes::COUNT + 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        double misplaced = 0;
        for (int mode = 0; mode < Modes::COUNT; mode++) {
            double difference = std::fabs(shares[mode] - modes_.expected(v, mode)) / put_in_[v];
            if (!(difference <= misplaced)) // no number is the worst of all
                misplaced = difference;
        }
        double error = error_of(v, heat), flux = shares[Modes::COUNT];
        if (job_.rank == 0)
            std::printf(" Variable %4d: source %.15E, in the mesh %.15E, flux %.15E, weighted "
                        "%.15E; error %.2E, misplaced %.2E\n",
                        v + 1, put_in_[v], heat - flux, flux, shares[0], error, misplaced);
        bool is_right = error <= tolerance_ && misplaced <= tolerance_;
        if (!is_right && job_.rank == 0)
            std::printf("FAILED: heat of variable %d was lost, made or misplaced: the errors are "
                        "%.5E and %.5E, the tolerance is %.5E\n",
                        v + 1, error, misplaced, tolerance_);
        passed = passed && is_right;
    }
    assay::require_runs("the sums", taken_.sum_ranks, taken_.sums);
    return passed;
}

void Run::print_fingerprints()
{
    if (!Spread::is_of(options_))
        return;
    Spread spread(options_, domain_, source_.spike(0));
    for (int v = 0; v < options_.variables; v++) {
        const double *grid = variables_[v];
        double squares = 0, worst = 0, put_in = put_in_[v];
        long wrong = 0; // no numbers
#pragma omp parallel for schedule(static) reduction(+ : squares, wrong) reduction(max : worst)
        for (int z = 1; z <= layout_.n[2]; z++)
            for (int y = 1; y <= layout_.n[1]; y++)
                for (int x = 1; x <= layout_.n[0]; x++) {
                    double found = grid[z * layout_.plane + y * layout_.row + x];
                    double expected = put_in * spread.share(x, y, z);
                    // Of what is so little that digits are missing there are none to compare.
                    double error = std::fabs(found - expected) / (expected + 1e-280);
                    squares += found * found;
                    worst = std::fmax(worst, error);
                    wrong += std::isnan(found);
                }
        double sums[] = { squares, static_cast<double>(wrong) };
        MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (job_.rank == 0)
            std::printf(" Fingerprint %4d: squares %.15E, error of a point %.2E, no numbers %.0f\n",
                        v + 1, sums[0], worst, sums[1]);
    }
}

void Run::print_times() const
{
    assay::print_time("total", taken_.wall, MPI_MAX);
    assay::print_time("stencil", taken_.stencil, MPI_MAX);
    assay::print_time("sums", taken_.sum, MPI_MAX);
    if (job_.ranks == 1)
        return;
    const CommTime exchange = exchange_.time_of_all();
    assay::print_time("communication", exchange.total(), MPI_MAX);
    assay::print_time("pack", exchange.pack, MPI_MAX);
    assay::print_time("send", exchange.send, MPI_MAX);
    assay::print_time("wait", exchange.wait, MPI_MAX);
    assay::print_time("recv", exchange.recv, MPI_MAX);
    assay::print_time("unpack", exchange.unpack, MPI_MAX);
}

void Run::print_stencil() const
{
    double bytes = domain_.all_points() * options_.variables * BYTES_PER_UPDATE;
    assay::print_windows("stencil", "GB/s", bouts_.windows(0), 1e-9 * bytes);
    assay::print_limit("stencil", "triad", "GB/s", bouts_.of_limit(bytes));
}

// The stencil on a few rows of each thread.
void print_stencil_in_caches(const Options &options, const assay::Job &job)
{
    const int n[] = { 64, 16, 8 * job.threads };
    Domain domain;
    for (int d = 0; d < 3; d++) {
        domain.points[d] = domain.n[d] = domain.largest[d] = n[d];
        domain.grid[d] = 1;
        domain.place[d] = 0;
        domain.first[d] = 1;
        domain.neighbour[d][LOW] = domain.neighbour[d][HIGH] = MPI_PROC_NULL;
    }
    Layout layout(domain);
    std::deque<Variables> copies;
    for (int i = 0; i < assay::COPIES_IN_CACHES; i++)
        copies.emplace_back(layout, 1, 1.0);
    Stencil stencil(options.stencil, domain, layout);
    double flux[assay::COPIES_IN_CACHES] = {};
    const double put_in = domain.all_points();
    bool right = true;
    auto step = [&](int i) {
        Heat heat = stencil.apply(copies[i][0], copies[i].spare(), Stores::NORMAL);
        copies[i].swap_with_spare(0);
        flux[i] += heat.flux;
        right &= std::fabs(heat.sum + flux[i] - put_in) <= 1e-8 * put_in;
    };
    const double points = domain.all_points();
    assay::print_in_caches({ { "stencil in caches", "GB/s", 1e-9 * BYTES_PER_UPDATE * points,
                               OPERATIONS_PER_UPDATE * points, step } });
    if (!right)
        assay::fail("heat of the stencil in caches was lost or made");
}

bool run(const Options &options, const Domain &domain, const assay::Job &job)
{
    Run run(options, domain, job);
    if (!run.step_through() || !run.check_end())
        return false;
    if (job.rank == 0)
        std::printf("\n Computation within error tolerance.\n\n");
    run.print_fingerprints();
    report(options, domain, job, run.taken(), run.exchange());
    run.print_times();
    run.print_stencil();
    print_stencil_in_caches(options, job);
    return true;
}

} // namespace
} // namespace minighost

int main(int argc, char **argv)
{
    using namespace minighost;
    assay::Job job = assay::start(&argc, &argv, "minighost", HELP);
    Options options = read_options(argc, argv, job);
    Domain domain = make_domain(options, job);
    require_resources(options, domain);
    print_header(options, domain, job);
    return assay::finish(run(options, domain, job));
}
