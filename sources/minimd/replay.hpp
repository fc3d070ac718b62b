// The last steps once more, by a plain implementation that shares nothing with the run but the
// atoms it begins with: no ghosts, no bins, no half lists, no vectors.
#ifndef MINIMD_REPLAY_HPP
#define MINIMD_REPLAY_HPP

#include <algorithm>
#include <vector>

#include "atoms.hpp"
#include "domain.hpp"
#include "force.hpp"
#include "settings.hpp"

namespace minimd {

// Sums over atoms that depend on no order of them. `waves` are of cos(k x), sin(k x) and of each
// component of v cos(k x), with a wave of about an atom's distance that is periodic in the box: they
// change where any atom is elsewhere, or faster.
struct Motion {
    static constexpr int WAVES = 5, NUMBERS = 2 + WAVES;
    double atoms = 0, mass_velocity2 = 0;
    double waves[WAVES] = {};

    void add(const double (&period)[3], double mass, const double *at, const double *speed);
    // Of an atom, where speeds and energies are taken as parts of what is usual.
    double difference(const Motion &other, double mass) const;
};

// Collective. Of the atoms that are chosen, or all where there is no choice.
Motion motion_of(const Atoms &atoms, const Domain &domain, const std::vector<char> &chosen = {});

// In a box of more than MOST_ATOMS the atoms of a cube in its middle are followed,
// and compared is what lies so deep inside that it feels nothing of the cube's end.
class Replay {
public:
    static constexpr int STEPS = 2;
    // From the start on, in a small box: lists are renewed, atoms are sorted and change ranks. Later
    // rounding has grown too much: the motion is chaotic.
    static constexpr int MOST_STEPS = 100;
    static constexpr double MOST_ATOM_STEPS = 2e6; // some 0.6 s of a core
    static constexpr double MOST_ATOM_STEPS_BETWEEN = 5e5;
    static constexpr double MOST_ATOMS = 100000;

    // How many steps are followed from the start on.
    static int steps_of_start(const Settings &settings, double atoms)
    {
        const double most = atoms > MOST_ATOMS ? 0 : MOST_ATOM_STEPS / atoms;
        return static_cast<int>(std::min({ most, 1.0 * MOST_STEPS, 1.0 * settings.steps }));
    }

    // How many are followed from one renewal of the lists on, which is drawn by lot: up to the next one.
    static int steps_between(const Settings &settings, double atoms)
    {
        const double most = atoms > MOST_ATOMS ? 0 : MOST_ATOM_STEPS_BETWEEN / atoms;
        return static_cast<int>(std::min({ most, 1.0 * MOST_STEPS,
                                           1.0 * settings.neighbour_every }));
    }

    // Collective. Copies the atoms as they are now; lists are taken to have been made now.
    Replay(const Settings &settings, const Domain &domain, const Atoms &atoms, const Force &force,
           const Units &units);

    // What one takes on a rank, of the box's atoms and with so many ranks.
    static double bytes(const Settings &settings, double atoms, int ranks);

    // Of the run's atoms at the start, those that are compared.
    const std::vector<char> &chosen() const { return compared; }
    // Collective. Of the same atoms here.
    Motion motion() const;
    // Collective. One step; afterwards lists are those of now where the run renews its own.
    void step(bool renews = false);
    // Whether all of the box is followed: then the virial is of all atoms.
    bool whole() const { return half_edge[0] == 0 && half_edge[1] == 0 && half_edge[2] == 0; }
    // Collective. Where the atoms are now.
    double virial() const;

private:
    struct Pair {
        int other, image;
    };
    struct Cells;

    bool followed(const double *at, double depth) const;
    void gather(const Atoms &atoms);
    void make_lists();
    void embed();
    void forces();
    double force_over_distance(double squared, double embedded) const;

    const Settings &settings;
    const EamPotential *eam; // none for Lennard-Jones
    double cut, mass;
    double inertia; // mass in the units of force and acceleration
    double period[3], half_edge[3]; // half_edge: of the cube; 0 where it is the whole box
    std::vector<char> compared;           // of the run's atoms
    int first = 0, last = 0;              // this rank's share of those that follow
    std::vector<int> counts, starts;      // of all ranks, in values
    std::vector<double> x, v, f;          // x of all, v and f of the share
    std::vector<double> embedded;         // of all: the derivative of the embedding energy
    double own_virial = 0;
    std::vector<char> inside;             // of the share: those that are compared
    std::vector<double> images;           // by which the images of an atom are shifted
    std::vector<Pair> pairs;
    std::vector<std::size_t> start;
};

} // namespace minimd

#endif
