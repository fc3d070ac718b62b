#include "input.hpp"

#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <sstream>

#include "application.hpp"
#include "numbers.h"

namespace hpl {

namespace {

constexpr const char *FILE_NAME = "HPL.dat";
constexpr int MOST_VALUES = 20, MOST_BYTES = 1 << 16;
constexpr int LARGEST_N = 2000000000; // with room for padding below what an int holds

// The file's content on all ranks.
std::string read_file()
{
    int rank, error = 0, length = 0;
    std::string text;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        errno = 0;
        std::ifstream file(FILE_NAME);
        std::ostringstream content;
        // A folder can be opened, but not read.
        bool is_empty = file.peek() == std::ifstream::traits_type::eof();
        if (!file.is_open() || file.bad())
            error = errno ? errno : EIO;
        else if (!is_empty)
            content << file.rdbuf();
        text = content.str();
        length = text.size() > MOST_BYTES ? MOST_BYTES + 1 : static_cast<int>(text.size());
    }
    int header[] = { error, length };
    MPI_Bcast(header, 2, MPI_INT, 0, MPI_COMM_WORLD);
    if (header[0] != 0)
        assay::refuse("cannot read %s in the working directory: %s", FILE_NAME,
                      std::strerror(header[0]));
    if (header[1] > MOST_BYTES)
        assay::refuse("%s has more than %d bytes: this is no input of HPL", FILE_NAME, MOST_BYTES);
    text.resize(header[1]);
    MPI_Bcast(text.data(), header[1], MPI_CHAR, 0, MPI_COMM_WORLD);
    return text;
}

// Line by line; what stands behind the values that a line must have is a comment.
class Lines {
public:
    explicit Lines(const std::string &text) : stream(text) {}

    void skip() { next("a line of comment"); }

    std::string word(const char *what)
    {
        next(what);
        std::string word;
        words >> word;
        return word;
    }

    int whole(const char *what, long least, long most)
    {
        next(what);
        return whole_number(what, least, most);
    }

    double number(const char *what)
    {
        next(what);
        std::string text = value(what);
        double number;
        if (!read_number(text.c_str(), &number))
            assay::refuse("%s, line %d: %s is \"%s\" but must be a number", FILE_NAME, line_number,
                          what, text.c_str());
        return number;
    }

    // A line with `count` values.
    std::vector<int> list(const char *what, int count, long least, long most)
    {
        next(what);
        std::vector<int> values;
        for (int i = 0; i < count; i++)
            values.push_back(whole_number(what, least, most));
        return values;
    }

    // A line with the number of values, and one with the values.
    std::vector<int> counted_list(const char *number_of, const char *what, long least, long most)
    {
        int count = whole(number_of, 1, MOST_VALUES);
        return list(what, count, least, most);
    }

    int number_of_line() const { return line_number; }

private:
    void next(const char *what)
    {
        std::string line;
        line_number++;
        if (!std::getline(stream, line))
            assay::refuse("%s ends before line %d, which should give %s", FILE_NAME, line_number,
                          what);
        words = std::istringstream(line);
    }

    std::string value(const char *what)
    {
        std::string text;
        if (!(words >> text))
            assay::refuse("%s, line %d: a value is missing for %s", FILE_NAME, line_number, what);
        return text;
    }

    int whole_number(const char *what, long least, long most)
    {
        std::string text = value(what);
        long number;
        if (!read_whole(text.c_str(), least, most, &number)) {
            std::string range = most == INT_MAX ? "of at least " + std::to_string(least)
                                                : "from " + std::to_string(least) + " to " +
                                                      std::to_string(most);
            assay::refuse("%s, line %d: %s is \"%s\" but must be a whole number %s", FILE_NAME,
                          line_number, what, text.c_str(), range.c_str());
        }
        return static_cast<int>(number);
    }

    std::istringstream stream, words;
    int line_number = 0;
};

} // namespace

Input read_input(int ranks)
{
    Lines lines(read_file());
    Input input;
    lines.skip();
    lines.skip();
    input.output_file = lines.word("the output file's name");
    input.device = lines.whole("device out", 0, INT_MAX);
    input.n = lines.counted_list("the number of problem sizes", "N", 1, LARGEST_N);
    input.nb = lines.counted_list("the number of NBs", "NB", 1, INT_MAX);
    input.row_major = lines.whole("PMAP", 0, 1) == 0;
    int grids = lines.whole("the number of process grids", 1, MOST_VALUES);
    input.p = lines.list("P", grids, 1, INT_MAX);
    input.q = lines.list("Q", grids, 1, INT_MAX);
    for (int i = 0; i < grids; i++)
        if (static_cast<long>(input.p[i]) * input.q[i] > ranks)
            assay::refuse("%s, lines %d and %d: P x Q is %d x %d, but there %s only %d rank%s",
                          FILE_NAME, lines.number_of_line() - 1, lines.number_of_line(), input.p[i],
                          input.q[i], ranks == 1 ? "is" : "are", ranks, ranks == 1 ? "" : "s");
    input.threshold = lines.number("the threshold");
    input.pfact = lines.counted_list("the number of PFACTs", "PFACT", 0, 2);
    input.nbmin = lines.counted_list("the number of NBMINs", "NBMIN", 1, INT_MAX);
    input.ndiv = lines.counted_list("the number of NDIVs", "NDIV", 2, INT_MAX);
    input.rfact = lines.counted_list("the number of RFACTs", "RFACT", 0, 2);
    input.bcast = lines.counted_list("the number of BCASTs", "BCAST", 0, 5);
    input.depth = lines.counted_list("the number of DEPTHs", "DEPTH", 0, INT_MAX);
    input.swap = lines.whole("SWAP", 0, 2);
    input.swap_threshold = lines.whole("the swapping threshold", 0, INT_MAX);
    input.l1 = lines.whole("the form of L1", 0, 1);
    input.u = lines.whole("the form of U", 0, 1);
    input.equilibration = lines.whole("Equilibration", 0, 1);
    input.alignment = lines.whole("the memory alignment", 1, INT_MAX);
    return input;
}

} // namespace hpl
