// The atoms of a rank, and how they start.
#ifndef MINIMD_ATOMS_HPP
#define MINIMD_ATOMS_HPP

#include "buffer.hpp"
#include "domain.hpp"
#include "lanes.hpp"
#include "settings.hpp"

namespace minimd {

// Rows of four doubles: x, y, z and one more, which is 0 in velocities and forces, and in positions
// what a force style keeps with an atom (the derivative of its embedding energy).
// First this rank's own atoms, then ghosts, then one row that stands for no atom, far away: lists
// of neighbours are filled up with it.
struct Atoms {
    Buffer<double> x, v, f;
    long total = 0; // in the whole box
    int local = 0, ghosts = 0;
    double mass = 1;

    int all() const { return local + ghosts; }
    int nobody() const { return all(); }

    void reserve(int rows); // and one for nobody
    void place_nobody();
};

// What the units make of sums over atoms.
struct Units {
    double mass_velocity2_to_energy;
    double boltzmann;
    double energy_per_volume_to_pressure;
    double printed_energy; // U in the table is the energy per atom times this
};

Units units_of(const Settings &settings);

// Of all atoms, by what their temperature is defined; collective.
double mass_velocity2(const Atoms &atoms);
double temperature(const Atoms &atoms, const Units &units);

// FCC lattice, one atom at the origin of each cell and one in the middle of each of its faces.
// Velocities come from random numbers seeded by the lattice site, so that they depend on no
// number of ranks; their mean is taken away and they are scaled to the temperature. Collective.
void create_atoms(const Settings &settings, const Domain &domain, const Units &units, Atoms &atoms);

} // namespace minimd

#endif
