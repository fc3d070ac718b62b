// What to simulate: the input file and the command line.
#ifndef MINIMD_SETTINGS_HPP
#define MINIMD_SETTINGS_HPP

namespace minimd {

// Plain data, zeroed before it is filled: ranks compare it byte by byte.
struct Settings {
    int eam;   // else Lennard-Jones
    int metal; // units; else those of Lennard-Jones
    double epsilon, sigma;
    int cells[3]; // FCC unit cells of the whole box
    int steps;
    double timestep, temperature, density;
    int neighbour_every;
    double force_cut, neighbour_cut;
    int thermo_every; // 0: at the start and the end
    int bins[3];      // of the whole box
    int half;         // neighbour lists: each pair once
    int ghost_newton; // pairs with a ghost on one of the two ranks only
    int sort_every;   // 0: never
    char input[512];  // empty: the built-in values
    char potential[512]; // empty: the analytic one
};

extern const char help[];

// Collective. Reads the command line and the input file; sets the number of OpenMP threads of this
// rank. Refuses what is wrong on any rank, and ranks that were told different things (threads may
// differ).
Settings read_settings(int argc, char **argv);

} // namespace minimd

#endif
