#include "settings.hpp"

#include <mpi.h>
#include <omp.h>

#include <cctype>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "application.hpp"
#include "numbers.h"

namespace minimd {

const char help[] =
    "minimd: molecular dynamics in the style of miniMD. Implementation: assay\n"
    "\n"
    "Atoms start on an FCC lattice in a periodic box with random velocities. Velocity Verlet,\n"
    "neighbour lists from bins, ghost atoms exchanged in three dimensions, MPI and OpenMP.\n"
    "\n"
    "  -i, --input_file FILE     input file; else in.lj.miniMD here, else its usual values\n"
    "  -s, --size N              unit cells in each direction\n"
    "  -nx N, -ny N, -nz N       the same for one direction; -nx alone stands for all three\n"
    "  -n, --nsteps N            time steps\n"
    "  -t, --num_threads N       OpenMP threads of a rank (default: OMP_NUM_THREADS)\n"
    "  --half_neigh 0|1          1: each pair in one list (default), 0: in both\n"
    "  -gn, --ghost_newton 0|1   1: pairs with ghosts are computed once (default), 0: by both\n"
    "                            ranks; of half lists only, EAM always does with 0\n"
    "  -b, --neigh_bins N        bins in each direction (default: 5/6 of the unit cells)\n"
    "  --skin_distance D         neighbour lists reach D beyond the force's cut-off\n"
    "  --sort N                  sort atoms by bins every N steps, 0 never (default: whenever\n"
    "                            neighbour lists are built)\n"
    "  -u, --units lj|metal      units\n"
    "  -p, --force lj|eam        Lennard-Jones, or embedded atoms\n"
    "  --potential FILE          EAM: a file in the DYNAMO funcfl format (default: Sutton-Chen\n"
    "                            copper, computed at the start)\n"
    "  --help, --version\n"
    "\n"
    "Options override the input file. Its lines: two of comment; units (lj, metal); none; force\n"
    "(lj, eam); epsilon sigma; unit cells in x y z; steps; time step; temperature; density; steps\n"
    "between reneighbouring; cut-off and skin; steps between outputs (0: first and last).\n"
    "Exit codes: 0; 1 an own check failed; 2 wrong use; 4 broken on the way.\n"
    "Examples:\n"
    "  mpirun -n 2 minimd -s 20 -n 100\n"
    "  mpirun -n 4 minimd -i in.lj.miniMD -t 2 --half_neigh 0\n"
    "  mpirun -n 2 minimd -p eam -u metal -i in.eam.miniMD --potential Cu_u6.eam\n";

namespace {

constexpr int MOST = 1000000000;
constexpr int MOST_CELLS = 200000; // so that the number of atoms stays a number
constexpr int MOST_BINS = 1000000;

// The first thing that is wrong, of the command line or the input file of this rank.
struct Wrong {
    std::string sentence;
};

[[noreturn]] __attribute__((format(printf, 1, 2))) void wrong(const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
    throw Wrong{ text };
}

int whole_number(const char *where, const char *text, int low, int high)
{
    long value;
    if (!read_whole(text, low, high, &value))
        wrong("%s: '%s' is wrong; give a whole number from %d to %d", where, text, low, high);
    return static_cast<int>(value);
}

double positive_number(const char *where, const char *text, bool zero_too = false)
{
    double value;
    if (!read_number(text, &value) || value < 0 || (value == 0 && !zero_too))
        wrong("%s: '%s' is wrong; give a number %s zero", where, text,
              zero_too ? "of at least" : "above");
    return value;
}

int choice(const char *where, const char *text, const char *no, const char *yes)
{
    if (std::strcmp(text, no) != 0 && std::strcmp(text, yes) != 0)
        wrong("%s: '%s' is wrong; give %s or %s", where, text, no, yes);
    return std::strcmp(text, yes) == 0;
}

void copy_name(char (&to)[512], const char *where, const char *text)
{
    if (std::strlen(text) >= sizeof to)
        wrong("%s: the name of the file is longer than %zu characters", where, sizeof to - 1);
    std::strcpy(to, text);
}

// The input file -------------------------------------------------------------------------------

using Words = std::vector<std::string>;

Words split(const std::string &line)
{
    Words words;
    std::size_t at = 0;
    while (at < line.size()) {
        while (at < line.size() && std::isspace(static_cast<unsigned char>(line[at])))
            at++;
        std::size_t start = at;
        while (at < line.size() && !std::isspace(static_cast<unsigned char>(line[at])))
            at++;
        if (at > start)
            words.push_back(line.substr(start, at - start));
    }
    return words;
}

class Input {
public:
    Input(const char *name, const std::string &text) : name(name)
    {
        std::size_t at = 0;
        while (at < text.size()) {
            std::size_t end = std::min(text.find('\n', at), text.size());
            lines.push_back(split(text.substr(at, end - at)));
            at = end + 1;
        }
    }

    // Word `which` of a line, both counted as people do.
    const char *word(int line, std::size_t which, const char *meaning)
    {
        where = std::string(name) + " line " + std::to_string(line) + " (" + meaning + ")";
        if (lines.size() < static_cast<std::size_t>(line))
            wrong("%s: the file ends before it; an input file has 14 lines", where.c_str());
        if (lines[line - 1].size() < which)
            wrong("%s: %zu values are wanted, %zu are there", where.c_str(), which,
                  lines[line - 1].size());
        return lines[line - 1][which - 1].c_str();
    }

    double positive(int line, std::size_t which, const char *meaning, bool zero_too = false)
    {
        const char *text = word(line, which, meaning);
        return positive_number(where.c_str(), text, zero_too);
    }

    int whole(int line, std::size_t which, const char *meaning, int low, int high)
    {
        const char *text = word(line, which, meaning);
        return whole_number(where.c_str(), text, low, high);
    }

    int either(int line, const char *meaning, const char *no, const char *yes)
    {
        const char *text = word(line, 1, meaning);
        return choice(where.c_str(), text, no, yes);
    }

    void read(Settings &to)
    {
        to.metal = either(3, "units", "lj", "metal");
        if (std::strcmp(word(4, 1, "data file"), "none") != 0)
            wrong("%s: data files are not read here; write none", where.c_str());
        to.eam = either(5, "force", "lj", "eam");
        to.epsilon = positive(6, 1, "epsilon");
        to.sigma = positive(6, 2, "sigma");
        for (int d = 0; d < 3; d++)
            to.cells[d] = whole(7, d + 1, "size", 1, MOST_CELLS);
        to.steps = whole(8, 1, "steps", 1, MOST);
        to.timestep = positive(9, 1, "time step");
        to.temperature = positive(10, 1, "temperature");
        to.density = positive(11, 1, "density");
        to.neighbour_every = whole(12, 1, "reneighbouring", 1, MOST);
        to.force_cut = positive(13, 1, "cut-off");
        to.neighbour_cut = to.force_cut + positive(13, 2, "skin", true);
        to.thermo_every = whole(14, 1, "output", 0, MOST);
    }

private:
    const char *name;
    std::vector<Words> lines;
    std::string where;
};

// The Lennard-Jones benchmark: a liquid near its triple point, by which codes are compared.
void usual_values(Settings &to)
{
    to.epsilon = to.sigma = 1;
    to.cells[0] = to.cells[1] = to.cells[2] = 32;
    to.steps = 100;
    to.timestep = 0.005;
    to.temperature = 1.44;
    to.density = 0.8442;
    to.neighbour_every = 20;
    to.force_cut = 2.5;
    to.neighbour_cut = 2.5 + 0.3;
    to.thermo_every = 100;
}

// Rank 0 reads it for all. False: there is none.
bool read_whole_file(const char *name, std::string &text)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long size = -1;
    if (rank == 0)
        if (std::FILE *file = std::fopen(name, "r")) {
            char piece[4096];
            std::size_t got;
            while ((got = std::fread(piece, 1, sizeof piece, file)) > 0 && text.size() < 1000000)
                text.append(piece, got);
            size = std::ferror(file) ? -1 : static_cast<long>(text.size());
            std::fclose(file);
        }
    MPI_Bcast(&size, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (size < 0)
        return false;
    text.resize(static_cast<std::size_t>(size));
    MPI_Bcast(text.data(), static_cast<int>(size), MPI_CHAR, 0, MPI_COMM_WORLD);
    return true;
}

// The command line -----------------------------------------------------------------------------

struct Line {
    const char *input = nullptr, *units = nullptr, *force = nullptr, *potential = nullptr;
    int size = 0, cells[3] = {}, steps = 0, threads = 0, bins = 0, half = 1, newton = 1, sort = -1;
    double skin = -1;
};

Line read_line(int argc, char **argv)
{
    Line line;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        auto is = [&](const char *name, const char *other = nullptr) {
            return std::strcmp(option, name) == 0 || (other && std::strcmp(option, other) == 0);
        };
        auto value = [&]() -> const char * {
            if (i + 1 == argc)
                wrong("%s: its value is missing; see --help", option);
            return argv[++i];
        };
        auto number = [&](int low, int high) { return whole_number(option, value(), low, high); };
        if (is("-i", "--input_file"))
            line.input = value();
        else if (is("-s", "--size"))
            line.size = number(1, MOST_CELLS);
        else if (is("-nx") || is("-ny") || is("-nz"))
            line.cells[option[2] - 'x'] = number(1, MOST_CELLS);
        else if (is("-n", "--nsteps"))
            line.steps = number(1, MOST);
        else if (is("-t", "--num_threads"))
            line.threads = number(1, 4096);
        else if (is("--half_neigh"))
            line.half = number(0, 1);
        else if (is("-gn", "--ghost_newton"))
            line.newton = number(0, 1);
        else if (is("-b", "--neigh_bins"))
            line.bins = number(1, MOST_BINS);
        else if (is("--skin_distance"))
            line.skin = positive_number(option, value(), true);
        else if (is("--sort"))
            line.sort = number(0, MOST);
        else if (is("-u", "--units"))
            line.units = value();
        else if (is("-p", "--force"))
            line.force = value();
        else if (is("--potential"))
            line.potential = value();
        else
            wrong("unknown option '%s'; see --help", option);
    }
    return line;
}

void apply(const Line &line, Settings &to)
{
    if (line.units)
        to.metal = choice("--units", line.units, "lj", "metal");
    if (line.force)
        to.eam = choice("--force", line.force, "lj", "eam");
    if (line.potential)
        copy_name(to.potential, "--potential", line.potential);
    if (line.potential && !to.eam)
        wrong("--potential is of EAM; give --force eam too, or leave it out");
    for (int d = 0; d < 3; d++) {
        int first = line.size ? line.size : line.cells[0];
        if (first)
            to.cells[d] = first;
        if (line.cells[d])
            to.cells[d] = line.cells[d];
    }
    if (line.steps)
        to.steps = line.steps;
    if (line.skin >= 0)
        to.neighbour_cut = to.force_cut + line.skin;
    for (int d = 0; d < 3; d++)
        to.bins[d] = line.bins ? line.bins : std::max(1, static_cast<int>(5.0 / 6.0 * to.cells[d]));
    to.half = line.half;
    to.ghost_newton = line.newton && !to.eam;
    to.sort_every = line.sort >= 0 ? line.sort : to.neighbour_every;
}

// The sentence of the first rank that has one, on all of them.
void refuse_together(const std::string &sentence)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int first = sentence.empty() ? ranks : rank;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == ranks)
        return;
    char text[1024] = "";
    std::strncpy(text, sentence.c_str(), sizeof text - 1);
    MPI_Bcast(text, sizeof text, MPI_CHAR, first, MPI_COMM_WORLD);
    assay::refuse("%s", text);
}

template <typename Function>
void together(Function function)
{
    std::string sentence;
    try {
        function();
    } catch (const Wrong &found) {
        sentence = found.sentence;
    }
    refuse_together(sentence);
}

} // namespace

Settings read_settings(int argc, char **argv)
{
    Settings settings;
    std::memset(&settings, 0, sizeof settings);
    Line line;
    together([&] { line = read_line(argc, argv); });

    constexpr const char *usual = "in.lj.miniMD";
    together([&] { copy_name(settings.input, "--input_file", line.input ? line.input : usual); });
    std::string text;
    bool there = read_whole_file(settings.input, text);
    together([&] {
        if (there) {
            Input(settings.input, text).read(settings);
        } else {
            if (line.input)
                wrong("cannot read the input file '%s'; name one that exists, or leave -i out",
                      line.input);
            settings.input[0] = '\0';
            usual_values(settings);
        }
        apply(line, settings);
    });

    Settings first = settings;
    MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
    together([&] {
        if (std::memcmp(&first, &settings, sizeof first) != 0)
            wrong("not all ranks have the same options as rank 0; only --num_threads may differ");
    });
    if (line.threads)
        omp_set_num_threads(line.threads);
    return settings;
}

} // namespace minimd
