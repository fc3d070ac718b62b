#include "report.hpp"

#include <string>

#include "application.hpp"

namespace hpl {

namespace {

const std::string DOUBLE_RULE(80, '='), RULE(80, '-');
constexpr const char *LOOKING[] = { "Left", "Crout", "Right" };
constexpr const char *TOPOLOGIES[] = { "1ring", "1ringM", "2ring", "2ringM", "Blong", "BlongM" };
constexpr int VALUES_A_LINE = 8;

// "N      :    2000     4000 ": eight values a line.
template <typename Text>
void print_list(std::FILE *file, const char *key, const std::vector<int> &values, Text text)
{
    std::fprintf(file, "%-7s:", key);
    for (std::size_t i = 0; i < values.size(); i++) {
        if (i > 0 && i % VALUES_A_LINE == 0)
            std::fprintf(file, "\n        ");
        std::fprintf(file, "%8s ", std::string(text(values[i])).c_str());
    }
    std::fprintf(file, "\n");
}

void print_numbers(std::FILE *file, const char *key, const std::vector<int> &values)
{
    print_list(file, key, values, [](int value) { return std::to_string(value); });
}

} // namespace

double gflops(int n, double seconds)
{
    double order = n;
    return order * order / seconds * (2 * order / 3 + 1.5) * 1e-9;
}

Report::Report(std::FILE *to, const Input &of) : file(to), input(of) {}

void Report::parameters(int ranks, int threads, const char *blas) const
{
    if (!file)
        return;
    std::fprintf(
        file,
        "Implementation: assay %s\n%s\n"
        "HPLinpack  --  High-Performance Linpack benchmark, as HPL 2.3 defines it\n%s\n\n"
        "T/V    : What the time is (W: elapsed), and the variant: PMAP, DEPTH, BCAST, RFACT,\n"
        "         NDIV, PFACT, NBMIN.\n"
        "N      : Order of the matrix A.\n"
        "NB     : Columns of a block.\n"
        "P      : Rows of the process grid.\n"
        "Q      : Columns of the process grid.\n"
        "Time   : Seconds to solve the linear system.\n"
        "Gflops : 10^9 operations a second, of 2/3 N^3 + 3/2 N^2.\n\n"
        "The following parameter values will be used:\n\n",
        assay::version(), DOUBLE_RULE.c_str(), DOUBLE_RULE.c_str());
    auto looking = [](int value) { return LOOKING[value]; };
    print_numbers(file, "N", input.n);
    print_numbers(file, "NB", input.nb);
    std::fprintf(file, "PMAP   : %s-major process mapping\n", input.row_major ? "Row" : "Column");
    print_numbers(file, "P", input.p);
    print_numbers(file, "Q", input.q);
    print_list(file, "PFACT", input.pfact, looking);
    print_numbers(file, "NBMIN", input.nbmin);
    print_numbers(file, "NDIV", input.ndiv);
    print_list(file, "RFACT", input.rfact, looking);
    print_list(file, "BCAST", input.bcast, [](int value) { return TOPOLOGIES[value]; });
    print_numbers(file, "DEPTH", input.depth);
    if (input.swap == 2)
        std::fprintf(file, "SWAP   : Mix (threshold = %d)\n", input.swap_threshold);
    else
        std::fprintf(file, "SWAP   : %s\n", input.swap ? "Spread-roll (long)" : "Binary-exchange");
    std::fprintf(file, "L1     : %stransposed form\n", input.l1 ? "no-" : "");
    std::fprintf(file, "U      : %stransposed form\n", input.u ? "no-" : "");
    std::fprintf(file, "EQUIL  : %s\n", input.equilibration ? "yes" : "no");
    std::fprintf(file, "ALIGN  : %d double precision words\n\n", input.alignment);
    std::fprintf(
        file,
        "What this implementation makes of them: panels are right-looking at every level; a\n"
        "DEPTH above 1 is 1; BlongM is Blong; rows are exchanged by allgather and scatter (long\n"
        "form), L1 and U not transposed; EQUIL and ALIGN have no effect.\n"
        "RANKS  : %d\nTHREADS: %d a rank\nBLAS   : %s\n\n",
        ranks, threads, blas);
    if (input.threshold > 0)
        std::fprintf(
            file,
            "%s\n\n"
            "- A is random, and generated anew for each test and for its check.\n"
            "- The scaled residual that is checked:\n"
            "      ||Ax-b||_oo / ( eps * ( || x ||_oo * || A ||_oo + || b ||_oo ) * N )\n"
            "- The relative machine precision (eps) is taken to be      %21.6e\n"
            "- Computational tests pass if scaled residuals are less than         %11.1f\n\n",
            RULE.c_str(), EPSILON, input.threshold);
    std::fflush(file);
}

void Report::result(const Test &test, const Timing &timing)
{
    if (!file)
        return;
    if (!table_begun || input.threshold > 0)
        std::fprintf(file,
                     "%s\nT/V                N    NB     P     Q               Time"
                     "                 Gflops\n%s\n",
                     DOUBLE_RULE.c_str(), RULE.c_str());
    table_begun = true;
    std::fprintf(file, "W%c%1d%d%c%1d%c%1d%12d %5d %5d %5d %18.6f    %19.4e\n",
                 input.row_major ? 'R' : 'C', test.depth, test.bcast, *LOOKING[test.rfact],
                 test.ndiv, *LOOKING[test.pfact], test.nbmin, test.n, test.nb, test.p, test.q,
                 timing.whole.seconds, gflops(test.n, timing.whole.seconds));
    std::fprintf(file, "HPL_pdgesv() start time %s\n", std::ctime(&timing.began));
    std::fprintf(file, "HPL_pdgesv() end time   %s\n", std::ctime(&timing.ended));
    // HPL's own keys, where it is built to time its parts; the wait is ours.
    const std::string marks =
        "--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV-";
    std::fprintf(file,
                 "%s\n"
                 "Max aggregated wall time rfact . . . : %18.6f\n"
                 "Max aggregated wall time wait  . . . : %18.6f\n"
                 "Max aggregated wall time update  . . : %18.6f\n"
                 "Max aggregated wall time up tr sv  . : %18.6f\n",
                 marks.substr(0, 80).c_str(), timing.phases.factor.seconds,
                 timing.phases.wait.seconds, timing.phases.update.seconds,
                 timing.phases.substitute.seconds);
    auto clock = [this](const char *of, const assay::Time &time) {
        std::fprintf(file, "Clock%s: %.9f s; system's %.9f to %.9f s\n", of, time.seconds,
                     time.least, time.most);
    };
    clock("", timing.whole);
    clock(" of rfact", timing.phases.factor);
    clock(" of wait", timing.phases.wait);
    clock(" of update", timing.phases.update);
    clock(" of up tr sv", timing.phases.substitute);
    std::fprintf(file, "Phases: %.9f s\n", timing.parts);
    std::fprintf(file, "Ways: rank 1 in row %d and column %d; messages of broadcasts",
                 timing.place[0], timing.place[1]);
    for (long messages : timing.phases.passed_on)
        std::fprintf(file, " %ld", messages);
    std::fprintf(file, "\n");
    std::fflush(file);
}

void Report::verdict(const Residual &residual, double multiplier, bool passed) const
{
    if (!file)
        return;
    std::fprintf(file, "%s\n||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= %16.8e ...... %s\n",
                 RULE.c_str(), residual.scaled, passed ? "PASSED" : "FAILED");
    std::fprintf(file,
                 "Fingerprint: A_oo %.17g; A_1 %.17g; A by rows %.17g; A by columns %.17g; "
                 "x_oo %.17g; x_1 %.17g; b_oo %.17g; first %.17g; last %.17g; Ax-b_oo %.17g; again "
                 "%.17g; multiplier %.17g\n",
                 residual.a_max, residual.a_one, residual.of_rows, residual.of_columns,
                 residual.x_max, residual.x_one, residual.b_max, residual.first, residual.last,
                 residual.difference, residual.difference_again, multiplier);
    if (!passed)
        std::fprintf(file,
                     "||Ax-b||_oo  . . . . . . . . . . . . . . . . . = %18.6f\n"
                     "||A||_oo . . . . . . . . . . . . . . . . . . . = %18.6f\n"
                     "||A||_1  . . . . . . . . . . . . . . . . . . . = %18.6f\n"
                     "||x||_oo . . . . . . . . . . . . . . . . . . . = %18.6f\n"
                     "||x||_1  . . . . . . . . . . . . . . . . . . . = %18.6f\n"
                     "||b||_oo . . . . . . . . . . . . . . . . . . . = %18.6f\n",
                     residual.difference, residual.a_max, residual.a_one, residual.x_max,
                     residual.x_one, residual.b_max);
    std::fflush(file);
}

void Report::summary(const Tally &tally) const
{
    if (!file)
        return;
    std::fprintf(file, "%s\n\nFinished %6d tests with the following results:\n",
                 DOUBLE_RULE.c_str(), tally.passed + tally.failed);
    if (input.threshold > 0)
        std::fprintf(file,
                     "         %6d tests completed and passed residual checks,\n"
                     "         %6d tests completed and failed residual checks,\n",
                     tally.passed, tally.failed);
    else
        std::fprintf(file, "         %6d tests completed without checking,\n", tally.passed);
    std::fprintf(file,
                 "         %6d tests skipped because of illegal input values.\n"
                 "%s\n\nEnd of Tests.\n%s\n",
                 0, RULE.c_str(), DOUBLE_RULE.c_str());
    std::fflush(file);
}

} // namespace hpl
