#include "report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "stencil.hpp"

namespace minighost {

namespace {

const char *const WAYS[] = { "total", "pack", "send", "wait", "recv", "unpack" };
constexpr int WAY_COUNT = 6;

// What every rank tells rank 0.
struct OfRank {
    double wall, stencil, sum, sum_points, sum_ranks;
    double comm[4][WAY_COUNT]; // in x, y and z, and in all
    double messages_sent, words_sent, most_sent, least_sent;
    double messages_received, words_received, most_received, least_received;
};

struct Statistics {
    double average = 0, deviation = 0, most = 0, least = 0, sum = 0;
};

template <class Value> Statistics statistics(const std::vector<OfRank> &ranks, Value value)
{
    Statistics result;
    auto count = static_cast<double>(ranks.size());
    result.most = result.least = value(ranks[0]);
    for (const OfRank &rank : ranks) {
        result.sum += value(rank);
        result.most = std::max(result.most, value(rank));
        result.least = std::min(result.least, value(rank));
    }
    result.average = result.sum / count;
    for (const OfRank &rank : ranks)
        result.deviation += std::pow(value(rank) - result.average, 2);
    result.deviation = std::sqrt(result.deviation / count);
    return result;
}

OfRank told(const Taken &taken, const Exchange &exchange)
{
    OfRank own{};
    own.wall = taken.wall.seconds;
    own.stencil = taken.stencil.seconds;
    own.sum = taken.sum.seconds;
    own.sum_points = taken.sum_points.seconds;
    own.sum_ranks = taken.sum_ranks.seconds;
    for (int d = 0; d < 4; d++) {
        const CommTime &time = exchange.time(d);
        const double ways[] = { time.total().seconds, time.pack.seconds, time.send.seconds,
                                time.wait.seconds,    time.recv.seconds, time.unpack.seconds };
        for (int way = 0; way < WAY_COUNT; way++) {
            if (d != Exchange::MIXED)
                own.comm[d][way] = ways[way];
            own.comm[3][way] += ways[way];
        }
    }
    auto traffic = [](const Traffic &from, double *to) {
        to[0] = static_cast<double>(from.messages);
        to[1] = static_cast<double>(from.words);
        to[2] = static_cast<double>(from.largest);
        to[3] = static_cast<double>(from.smallest);
    };
    traffic(exchange.sent(), &own.messages_sent);
    traffic(exchange.received(), &own.messages_received);
    return own;
}

const char *strategy(const Options &options)
{
    return options.is_aggregated() ? "full message aggregation (COMM_METHOD_BSPMA)"
                                   : "one variable at a time (COMM_METHOD_SVAF)";
}

const char *computation(const Options &options)
{
    switch (options.stencil) {
    case STENCIL_2D5PT:
        return "5-point difference stencil on a 2D grid (STENCIL_2D5PT)";
    case STENCIL_2D9PT:
        return "9-point difference stencil on a 2D grid (STENCIL_2D9PT)";
    case STENCIL_3D7PT:
        return "7-point difference stencil on a 3D grid (STENCIL_3D7PT)";
    default:
        return "27-point difference stencil on a 3D grid (STENCIL_3D27PT)";
    }
}

std::string now(const char *format)
{
    char text[32];
    std::time_t time = std::time(nullptr);
    std::strftime(text, sizeof text, format, std::localtime(&time));
    return text;
}

void print_problem(const Options &options, const Domain &domain)
{
    std::printf("\n Communication strategy: %s\n", strategy(options));
    std::printf(" Exchange of halos: %s\n", name_of(options.exchange));
    std::printf("\n Computation: %s\n    Dirichlet boundary conditions\n\n", computation(options));
    std::printf("      Global Grid Dimension: %8ld, %8ld, %8ld\n", domain.points[0],
                domain.points[1], domain.points[2]);
    std::printf("      Local Grid Dimension : %8d, %8d, %8d\n\n", domain.largest[0],
                domain.largest[1], domain.largest[2]);
    std::printf(" Number of variables: %2d\n", options.variables);
    std::printf(" Number of variables reduced each time step: %2d; requested  %3d%%.\n\n",
                summed_variables(options), options.percent_sum);
    std::printf("    Time steps per spike: %6d\n", options.steps);
    std::printf("    Number of spikes:     %6d\n\n", options.spikes);
    std::printf(" MPI version, %s scaling\n\n",
                options.scaling == SCALING_STRONG ? "strong" : "weak");
    std::printf("      Task grid: %5d,%5d,%5d\n\n", domain.grid[0], domain.grid[1], domain.grid[2]);
}

void print_ways(const char *name, const double (&values)[WAY_COUNT])
{
    std::printf("       %-48s %13.6E, %13.6E, %13.6E, %13.6E, %13.6E, %13.6E\n",
                (std::string(name) + " (total,pack,send,wait,recv,unpack secs):").c_str(),
                values[0], values[1], values[2], values[3], values[4], values[5]);
}

void print_direction(const std::vector<OfRank> &ranks, int direction)
{
    double values[4][WAY_COUNT];
    for (int way = 0; way < WAY_COUNT; way++) {
        Statistics s =
            statistics(ranks, [&](const OfRank &rank) { return rank.comm[direction][way]; });
        values[0][way] = s.average;
        values[1][way] = s.deviation;
        values[2][way] = s.most;
        values[3][way] = s.least;
    }
    print_ways("Avg", values[0]);
    print_ways("StdDev", values[1]);
    print_ways("Max", values[2]);
    print_ways("Min", values[3]);
}

struct Messages {
    Statistics messages, words, most, least;
};

Messages messages(const std::vector<OfRank> &ranks, bool sent)
{
    return {
        statistics(ranks, [=](auto &r) { return sent ? r.messages_sent : r.messages_received; }),
        statistics(ranks, [=](auto &r) { return sent ? r.words_sent : r.words_received; }),
        statistics(ranks, [=](auto &r) { return sent ? r.most_sent : r.most_received; }),
        statistics(ranks, [=](auto &r) { return sent ? r.least_sent : r.least_received; }),
    };
}

void print_messages(const char *way, const Messages &m)
{
    std::printf("\n  Messages %s in all time steps:\n\n", way);
    std::printf("   Number:                     %12.3E\n", m.messages.sum);
    std::printf("        Total counts/bytes:    %12.3E %12.3E\n", m.words.sum, 8 * m.words.sum);
    std::printf("        Min, max counts/bytes: %12.3E, %12.3E; %12.3E, %12.3E\n", m.least.least,
                8 * m.least.least, m.most.most, 8 * m.most.most);
}

struct Flops {
    double sums, products, giga_per_second;
};

Flops flops(const Options &options, const Domain &domain, double wall)
{
    double updates = domain.all_points() * options.variables * options.steps * options.spikes;
    double sums = updates * (points_of(options.stencil) - 1);
    return { sums, updates, (sums + updates) / wall * 1e-9 };
}

void print_report(const Options &options, const Domain &domain, const assay::Job &job,
                  const Taken &taken, const std::vector<OfRank> &ranks)
{
    Statistics wall = statistics(ranks, [](auto &rank) { return rank.wall; });
    Statistics stencil = statistics(ranks, [](auto &rank) { return rank.stencil; });
    Flops work = flops(options, domain, wall.most);

    std::printf("\n =================================================\n");
    std::printf("           miniGhost, version %s of Assay\n", assay::version());
    std::printf(" =================================================\n");
    print_problem(options, domain);
    std::printf(" %7d process%s executing, %d thread%s each\n\n", job.ranks,
                job.ranks == 1 ? "" : "es", job.threads, job.threads == 1 ? "" : "s");
    std::printf(" Program execution at %s on %s.\n\n", now("%H%M%S").c_str(),
                now("%Y%m%d").c_str());
    std::printf(" Total time for test (sec): %13.6E; clock resolution is %13.6E per second.\n\n",
                wall.most, MPI_Wtick());
    std::printf(" Computational performance:\n\n");
    std::printf("       Time : avg, stddev, min, max secs: %13.6E, %13.6E, %13.6E, %13.6E\n\n",
                stencil.average, stencil.deviation, stencil.least, stencil.most);
    std::printf("       Total GFLOPS:             %12.3E\n", work.giga_per_second);
    std::printf("       GFLOPS per process:       %12.3E\n\n", work.giga_per_second / job.ranks);
    std::printf("       Stencil floating point ops: %12.3E\n", work.sums + work.products);
    std::printf("          Sums:                  %12.3E\n", work.sums);
    std::printf("          Mult:                  %12.3E\n\n", work.products);
    std::printf("        Number of spikes set: %12d\n", options.spikes);
    if (job.ranks > 1) {
        std::printf("\n Inter-process communication statistics:\n\n");
        print_direction(ranks, 3);
        print_messages("SENT", messages(ranks, true));
        print_messages("RECEIVED", messages(ranks, false));
        for (int d = 0; d < 3; d++) {
            std::printf("\n      %c-direction inter-process communication statistics:\n\n",
                        'X' + d);
            print_direction(ranks, d);
        }
    }
    Statistics sum = statistics(ranks, [](auto &rank) { return rank.sum; });
    Statistics points = statistics(ranks, [](auto &rank) { return rank.sum_points; });
    Statistics over = statistics(ranks, [](auto &rank) { return rank.sum_ranks; });
    std::printf("\n   GRIDSUM performance\n\n   Number:                     %12.3E\n\n",
                static_cast<double>(taken.sums));
    std::printf("       Avg (total,compute,reduce secs): %13.6E, %13.6E, %13.6E\n", sum.average,
                points.average, over.average);
    std::printf("       Max (total,compute,reduce secs): %13.6E, %13.6E, %13.6E\n", sum.most,
                points.most, over.most);
    std::printf("       Min (total,compute,reduce secs): %13.6E, %13.6E, %13.6E\n", sum.least,
                points.least, over.least);
    if (options.report_perf == 2 && job.ranks > 1) {
        std::printf("\n Per process communication time:\n\n     PE     Wall (sec)     %% Comm\n");
        for (int rank = 0; rank < job.ranks; rank++)
            std::printf("  %6d   %12.5E   %9.3f\n", rank, ranks[rank].wall,
                        100 * ranks[rank].comm[3][0] / ranks[rank].wall);
    }
    std::printf("\n ================== End report ===================\n\n");
}

class Yaml {
public:
    explicit Yaml(std::FILE *file) : file_(file) {}
    void text(const std::string &key, const std::string &value)
    {
        std::fprintf(file_, "%s: %s\n", key.c_str(), value.c_str());
    }
    void whole(const std::string &key, double value)
    {
        std::fprintf(file_, "%s: %.0f\n", key.c_str(), value);
    }
    void real(const std::string &key, double value)
    {
        std::fprintf(file_, "%s: %.6E\n", key.c_str(), value);
    }

private:
    std::FILE *file_;
};

void write_messages(Yaml &yaml, const std::string &way, const Messages &m)
{
    auto both = [&](const std::string &key, double words) {
        yaml.whole(way + key + "words", words);
        yaml.whole(way + key + "bytes", 8 * words);
    };
    yaml.whole(way + "messages", m.messages.sum);
    both("total_", m.words.sum);
    both("min_", m.least.least);
    both("max_", m.most.most);
    yaml.whole(way + "min_proc", m.messages.least);
    yaml.whole(way + "min_words_proc", m.words.least);
    yaml.whole(way + "min_bytes_proc", 8 * m.words.least);
    yaml.whole(way + "max_proc", m.messages.most);
    yaml.whole(way + "max_words_proc", m.words.most);
    yaml.whole(way + "max_bytes_proc", 8 * m.words.most);
}

void write_direction(Yaml &yaml, const std::string &prefix, const std::vector<OfRank> &ranks,
                     int direction)
{
    for (const char *which : { "ave", "max", "min" })
        for (int way = 0; way < WAY_COUNT; way++) {
            Statistics s = statistics(ranks, [&](auto &rank) { return rank.comm[direction][way]; });
            double value = which[1] == 'v' ? s.average : which[1] == 'a' ? s.most : s.least;
            yaml.real(prefix + WAYS[way] + "_" + which, value);
        }
}

void write_yaml(std::FILE *file, const Options &options, const Domain &domain,
                const assay::Job &job, const Taken &taken, const std::vector<OfRank> &ranks)
{
    Yaml yaml(file);
    Statistics wall = statistics(ranks, [](auto &rank) { return rank.wall; });
    Statistics stencil = statistics(ranks, [](auto &rank) { return rank.stencil; });
    Flops work = flops(options, domain, wall.most);
    yaml.text("code", "miniGhost");
    yaml.text("Implementation", "assay");
    yaml.text("version", assay::version());
    yaml.text("Comm_strategy", strategy(options));
    yaml.text("Exchange", name_of(options.exchange));
    yaml.text("Computation", computation(options));
    for (int d = 0; d < 3; d++)
        yaml.whole(std::string("Global_Grid_") + "XYZ"[d], static_cast<double>(domain.points[d]));
    for (int d = 0; d < 3; d++)
        yaml.whole(std::string("Local_Grid_") + "XYZ"[d], domain.largest[d]);
    yaml.whole("Number_variables", options.variables);
    yaml.whole("Number_reduced", summed_variables(options));
    yaml.whole("Percent_reduced", options.percent_sum);
    yaml.whole("Time_steps", options.steps);
    for (int d = 0; d < 3; d++)
        yaml.whole(std::string("Task_grid_") + "XYZ"[d], domain.grid[d]);
    yaml.text("Scaling", options.scaling == SCALING_STRONG ? "strong" : "weak");
    yaml.whole("processes", job.ranks);
    yaml.whole("threads", job.threads);
    yaml.text("Program_execution_at", "'" + now("%H%M%S") + "'");
    yaml.text("Program_execution_date", now("%Y%m%d"));
    yaml.real("Total_time", wall.most);
    yaml.real("clock_resolution", MPI_Wtick());
    yaml.real("Error_tolerance", std::pow(10.0, -options.error_digits));
    yaml.real("Comp_time_ave", stencil.average);
    yaml.real("Comp_time_min", stencil.least);
    yaml.real("Comp_time_max", stencil.most);
    yaml.real("GFLOPS_Total", work.giga_per_second);
    yaml.real("GFLOPS_per_process", work.giga_per_second / job.ranks);
    yaml.real("FLOPS_Total", work.sums + work.products);
    yaml.real("FLOPS_Sums", work.sums);
    yaml.real("FLOPS_Divide", work.products);
    yaml.whole("Number_spikes", options.spikes);
    if (job.ranks > 1) {
        write_direction(yaml, "Comm_", ranks, 3);
        write_messages(yaml, "Send_", messages(ranks, true));
        write_messages(yaml, "Recv_", messages(ranks, false));
        write_direction(yaml, "Comm_x_", ranks, 0);
        write_direction(yaml, "Comm_y_", ranks, 1);
        write_direction(yaml, "Comm_z_", ranks, 2);
    }
    Statistics sum = statistics(ranks, [](auto &rank) { return rank.sum; });
    yaml.whole("Number_gridsum", static_cast<double>(taken.sums));
    yaml.real("Gridsum_Time_ave", sum.average);
    yaml.real("Gridsum_Time_max", sum.most);
    yaml.real("Gridsum_Time_min", sum.least);
    yaml.whole("Number_Reduce", static_cast<double>(taken.sums));
}

} // namespace

int summed_variables(const Options &options)
{
    return static_cast<int>(static_cast<long>(options.variables) * options.percent_sum / 100);
}

void print_header(const Options &options, const Domain &domain, const assay::Job &job)
{
    if (job.rank != 0)
        return;
    std::printf("miniGhost, Implementation: assay %s\n", assay::version());
    print_problem(options, domain);
    std::printf(" %7d process%s, %d thread%s each\n\n", job.ranks, job.ranks == 1 ? "" : "es",
                job.threads, job.threads == 1 ? "" : "s");
    std::fflush(stdout);
}

void report(const Options &options, const Domain &domain, const assay::Job &job, const Taken &taken,
            const Exchange &exchange)
{
    OfRank own = told(taken, exchange);
    std::vector<OfRank> ranks(job.rank == 0 ? job.ranks : 0);
    constexpr int values = sizeof(OfRank) / sizeof(double);
    MPI_Gather(&own, values, MPI_DOUBLE, ranks.data(), values, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (job.rank != 0)
        return;
    if (options.report_perf > 0)
        print_report(options, domain, job, taken, ranks);
    std::FILE *file = std::fopen("results.yaml", "w");
    if (!file)
        assay::fail("cannot write results.yaml; run in a folder that you may write to");
    write_yaml(file, options, domain, job, taken, ranks);
    if (std::ferror(file) | std::fclose(file))
        assay::fail("cannot write results.yaml; make room on its file system");
}

} // namespace minighost
