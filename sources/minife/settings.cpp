#include "settings.hpp"

#include <cfloat>
#include <cstring>

#include "application.hpp"
#include "numbers.h"

namespace minife {

const char *const help =
    "miniFE: assembles the finite-element equations of steady heat conduction on a mesh of\n"
    "hexahedra, and solves them by conjugate gradients without preconditioner (200 iterations at\n"
    "most). Options are written key=value or -key value:\n"
    "  nx=10                   elements in x\n"
    "  ny=nx, nz=ny            elements in y and z\n"
    "  load_imbalance=0        make the ranks' shares differ from the average by so many per cent\n"
    "  verify_solution=0       1: hold the solution at the centre against the analytic one\n"
    "  mv_overlap_comm_comp=0  1: multiply with the inner rows while the halo is on its way\n"
    "  name=                   a part of the report's file name\n"
    "  --help, --version\n"
    "Threads of each rank: OMP_NUM_THREADS. The report is miniFE.NXxNYxNZ.P<ranks>.T<threads>.*.yaml\n"
    "in the current folder.\n"
    "Exit codes: 0; 1 if the answer is wrong; 2 for wrong use; 4 if the system refused something.\n"
    "Examples:\n"
    "  mpirun -n 2 minife nx=100\n"
    "  OMP_NUM_THREADS=4 mpirun -n 2 minife nx=200 ny=100 nz=50 mv_overlap_comm_comp=1\n"
    "  mpirun -n 4 minife -nx 60 -ny 60 -nz 60 -verify_solution 1\n";

namespace {

// Far above any machine; the number of all elements still fits 64 bits.
constexpr int MOST_ELEMENTS = 1000000;

int whole_number(const std::string &key, const std::string &value, int low, int high)
{
    long number;
    if (!read_whole(value.c_str(), low, high, &number))
        assay::refuse("%s=%s is wrong; give a whole number from %d to %d", key.c_str(),
                      value.c_str(), low, high);
    return static_cast<int>(number);
}

float percentage(const std::string &key, const std::string &value)
{
    double number;
    if (!read_number(value.c_str(), &number) || number < 0 || number > FLT_MAX)
        assay::refuse("%s=%s is not a percentage; give a number from 0 on", key.c_str(),
                      value.c_str());
    return static_cast<float>(number);
}

std::string part_of_file_name(const std::string &key, const std::string &value)
{
    if (value.find('/') != std::string::npos)
        assay::refuse("%s=%s has a / in it; it is a part of the report's file name", key.c_str(),
                      value.c_str());
    return value;
}

// The argument, or the two, from `next` on; advances it.
void split(int argc, char **argv, int &next, std::string &key, std::string &value)
{
    const char *text = argv[next++];
    bool dashed = text[0] == '-';
    text += std::strspn(text, "-");
    size_t length = std::strcspn(text, "=");
    key.assign(text, length);
    if (text[length])
        value = text + length + 1;
    else if (dashed && next < argc)
        value = argv[next++];
    else
        assay::refuse("%s has no value; write it as key=value, as in nx=100 (see --help)", text);
}

} // namespace

Settings read_settings(int argc, char **argv)
{
    Settings settings;
    std::array<int, 3> &elements = settings.elements;
    elements = { 10, 0, 0 };
    for (int next = 1; next < argc;) {
        std::string key, value;
        split(argc, argv, next, key, value);
        if (key == "nx" || key == "ny" || key == "nz")
            elements[key[1] - 'x'] = whole_number(key, value, 1, MOST_ELEMENTS);
        else if (key == "load_imbalance")
            settings.load_imbalance = percentage(key, value);
        else if (key == "verify_solution")
            settings.verify_solution = whole_number(key, value, 0, 1);
        else if (key == "mv_overlap_comm_comp")
            settings.overlap = whole_number(key, value, 0, 1);
        else if (key == "name")
            settings.name = part_of_file_name(key, value);
        else
            assay::refuse("unknown option %s; see --help", key.c_str());
    }
    for (int axis = 1; axis < 3; axis++)
        if (elements[axis] == 0)
            elements[axis] = elements[axis - 1];
    return settings;
}

} // namespace minife
