// What the command line asks for.
#ifndef MINIFE_SETTINGS_HPP
#define MINIFE_SETTINGS_HPP

#include <array>
#include <string>

namespace minife {

struct Settings {
    std::array<int, 3> elements; // of the whole mesh in x, y and z
    float load_imbalance = 0;    // per cent
    bool verify_solution = false;
    bool overlap = false;        // of the halo exchange with the product of matrix and vector
    std::string name;            // a part of the report's file name
};

extern const char *const help;

// Collective; refuses what it does not understand.
Settings read_settings(int argc, char **argv);

} // namespace minife

#endif
