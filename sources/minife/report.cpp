#include "report.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <ctime>

namespace minife {

namespace {

// A YAML document whose keys are miniFE's, in their order.
class Document {
public:
    explicit Document(const std::string &file_name)
        : name(file_name), file(std::fopen(name.c_str(), "w"))
    {
        if (!file)
            assay::fail("cannot write %s; run in a folder that can be written to", name.c_str());
    }
    Document(const Document &) = delete;
    ~Document() = default;

    void number(int level, const char *key, double value) { line(level, key, "%g", value); }
    void count(int level, const char *key, double value) { line(level, key, "%.0f", value); }
    void heading(int level, const char *key) { line(level, key, "%s", ""); }
    // A rate of something too short to be measured is no number.
    void rate(int level, const char *key, double flops, double seconds)
    {
        if (seconds > 1e-4)
            number(level, key, 1e-6 * flops / seconds);
        else
            line(level, key, "inf");
    }
    void line(int level, const char *key, const char *format, ...)
        __attribute__((format(printf, 4, 5)))
    {
        std::fprintf(file, "%*s%s: ", 2 * level, "", key);
        va_list values;
        va_start(values, format);
        std::vfprintf(file, format, values);
        va_end(values);
        std::fputc('\n', file);
    }
    void close()
    {
        bool failed = std::ferror(file) != 0;
        if (std::fclose(file) != 0 || failed)
            assay::fail("cannot write all of %s; is the disk full?", name.c_str());
    }

private:
    std::string name;
    std::FILE *file;
};

std::string formatted_time(const char *format)
{
    std::time_t now = std::time(nullptr);
    char text[64];
    std::strftime(text, sizeof text, format, std::localtime(&now));
    return text;
}

std::string file_name(const Results &results)
{
    const std::array<int, 3> &n = results.settings.elements;
    char start[128];
    std::snprintf(start, sizeof start, "miniFE.%dx%dx%d.P%d.T%d.", n[X], n[Y], n[Z],
                  results.job.ranks, results.job.threads);
    const std::string &own = results.settings.name;
    return start + (own.empty() ? "" : own + ".") + formatted_time("%Y:%m:%d-%H:%M:%S") + ".yaml";
}

void write_run(Document &document, const Results &results)
{
    const Settings &settings = results.settings;
    document.line(0, "Mini-Application Name", "miniFE");
    document.line(0, "Mini-Application Version", "%s", assay::version());
    document.line(0, "Implementation", "assay");
    document.heading(0, "Global Run Parameters");
    document.heading(1, "dimensions");
    document.count(2, "nx", settings.elements[X]);
    document.count(2, "ny", settings.elements[Y]);
    document.count(2, "nz", settings.elements[Z]);
    document.number(1, "load_imbalance", settings.load_imbalance);
    document.line(1, "mv_overlap_comm_comp", "%s", settings.overlap ? "1 (yes)" : "0 (no)");
    document.count(1, "OpenMP Max Threads:", results.job.threads);
    document.count(1, "number of processors", results.job.ranks);
    document.line(1, "ScalarType", "double");
    document.line(1, "GlobalOrdinalType", "int64");
    document.line(1, "LocalOrdinalType", "int");

    struct utsname system;
    uname(&system);
    document.heading(0, "Platform");
    document.line(1, "hostname", "%s", system.nodename);
    document.line(1, "kernel name", "'%s'", system.sysname);
    document.line(1, "kernel release", "'%s'", system.release);
    document.line(1, "processor", "'%s'", system.machine);
    document.heading(0, "Build");
    document.line(1, "CXX", "'%s'", MINIFE_CXX);
    document.line(1, "compiler version", "'%s'", __VERSION__);
    document.line(1, "CXXFLAGS", "'%s'", MINIFE_CXXFLAGS);
    document.line(1, "using MPI", "yes");
    document.line(0, "Run Date/Time", "%s", formatted_time("%Y-%m-%d, %H-%M-%S").c_str());
}

void write_matrix(Document &document, const Results &results)
{
    const MatrixFacts &matrix = results.matrix;
    document.heading(0, "Rows-per-proc Load Imbalance");
    document.number(1, "Largest (from avg, %)", results.imbalance.largest);
    document.number(1, "Std Dev (%)", results.imbalance.deviation);
    document.heading(0, "Matrix structure generation");
    document.number(1, "Mat-struc-gen Time", results.phases.structure.seconds);
    document.heading(0, "FE assembly");
    document.number(1, "FE assembly Time", results.phases.assembly.seconds);
    document.heading(0, "Matrix attributes");
    document.count(1, "Global Nrows", matrix.rows);
    document.count(1, "Global NNZ", matrix.nonzeros);
    document.number(1, "Global Memory (GB)", matrix.gigabytes);
    document.number(1, "Pll Memory Overhead (MB)", matrix.halo_megabytes);
    document.count(1, "Rows per proc MIN", matrix.rows_per_rank.low);
    document.count(1, "Rows per proc MAX", matrix.rows_per_rank.high);
    document.number(1, "Rows per proc AVG", matrix.rows_per_rank.mean);
    document.count(1, "NNZ per proc MIN", matrix.nonzeros_per_rank.low);
    document.count(1, "NNZ per proc MAX", matrix.nonzeros_per_rank.high);
    document.number(1, "NNZ per proc AVG", matrix.nonzeros_per_rank.mean);
}

void write_solver(Document &document, const Results &results)
{
    const Solution &solution = results.solution;
    const SolverTimes &times = solution.times;
    Flops flops =
        count_flops(results.settings.elements, results.matrix.nonzeros, solution.iterations);
    document.heading(0, "CG solve");
    document.count(1, "Iterations", solution.iterations);
    document.number(1, "Final Resid Norm", solution.residual);
    document.number(1, "WAXPY Time", times.waxpy.seconds);
    document.number(1, "WAXPY Flops", flops.waxpy);
    document.rate(1, "WAXPY Mflops", flops.waxpy, times.waxpy.seconds);
    document.number(1, "DOT Time", times.dot.seconds);
    document.number(1, "DOT Flops", flops.dot);
    document.rate(1, "DOT Mflops", flops.dot, times.dot.seconds);
    document.number(1, "MATVEC Time", times.matvec.seconds);
    document.number(1, "MATVEC Flops", flops.matvec);
    document.rate(1, "MATVEC Mflops", flops.matvec, times.matvec.seconds);
    document.heading(1, "Total");
    document.number(2, "Total CG Time", times.total.seconds);
    document.number(2, "Total CG Flops", flops.total());
    document.rate(2, "Total CG Mflops", flops.total(), times.total.seconds);
    document.number(1, "Time per iteration",
                    times.total.seconds / std::max(solution.iterations, 1));
}

void write_checks(Document &document, const Results &results)
{
    const ResidualCheck &residual = results.residual;
    document.heading(0, "Residual check");
    document.number(1, "True Resid Norm", residual.norm);
    document.number(1, "Difference to CG", residual.difference);
    document.number(1, "Tolerance", residual.tolerance);
    document.line(1, "Halo", "%s", residual.halo_intact ? "intact" : "damaged");
    if (results.centre) {
        document.heading(0, "Solution check");
        document.number(1, "Error at centre", results.centre->error);
        document.number(1, "Tolerance", results.centre->tolerance);
    }
    document.heading(0, "Limit of MATVEC");
    document.number(1, "Triad (GB/s)", 1e-9 * results.limit.limit);
    document.number(1, "Achieved (GB/s)", 1e-9 * results.limit.achieved);
    document.number(1, "Fraction", results.limit.fraction);
}

} // namespace

Spread spread_over_ranks(double own, int ranks)
{
    double extremes[2] = { -own, own }, sum = own;
    MPI_Allreduce(MPI_IN_PLACE, extremes, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return { -extremes[0], extremes[1], sum / ranks };
}

Flops count_flops(const std::array<int, 3> &elements, double nonzeros, int iterations)
{
    Flops one = flops_of_iteration(elements, nonzeros);
    return { one.waxpy / 3 * (3 * iterations + 2), one.dot * iterations,
             one.matvec * (iterations + 1) };
}

Flops flops_of_iteration(const std::array<int, 3> &elements, double nonzeros)
{
    double length = static_cast<double>(elements[X]) * elements[Y] * elements[Z];
    return { 3 * length * 3, 2 * length * 2, 2 * nonzeros };
}

std::string write_report(const Results &results)
{
    std::string name = file_name(results);
    Document document(name);
    write_run(document, results);
    write_matrix(document, results);
    write_solver(document, results);
    write_checks(document, results);
    document.count(0, "Global All-RSS (kB)", results.all_memory);
    document.count(0, "Global Max-RSS (kB)", results.most_memory);
    document.number(0, "Total Program Time", results.phases.total.seconds);
    document.line(0, "Verdict", "%s", results.passed ? "PASSED" : "FAILED");
    document.close();
    return name;
}

} // namespace minife
