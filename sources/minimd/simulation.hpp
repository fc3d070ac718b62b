// The run: steps, what is measured of them, and the times of their phases.
#ifndef MINIMD_SIMULATION_HPP
#define MINIMD_SIMULATION_HPP

#include <utility>
#include <vector>

#include "application.hpp"
#include "atoms.hpp"
#include "force.hpp"
#include "ghosts.hpp"
#include "neighbours.hpp"
#include "recount.hpp"
#include "replay.hpp"
#include "settings.hpp"
#include "verdict.hpp"

namespace minimd {

struct Times {
    assay::Time total, force, neighbours, communication;
    assay::Time force_with_sums; // of the force: where energies are wanted
    double interrupted = 0; // seconds of the rest of the force
    assay::Time moving; // of the communication: exchange, sorting and borders
};

// Of the loop's bouts. A step is too long to be left alone where others share the machine: FORCE is without
// the interruptions that it had.
enum Kernel { FORCE, WHOLE_FORCE, NEIGHBOURS };

class Simulation {
public:
    Simulation(const Settings &settings, const Domain &domain, const Units &units, Force &force,
               Atoms &atoms, int rank);

    // Collective. Prints the table of states, and judges them.
    void run();

    const Times &times() const { return spent; }
    const assay::Bouts &windows() const { return bouts; }
    // When the states of the table were reached, by their steps.
    const std::vector<std::pair<int, assay::Time>> &rows() const { return reached; }
    Verdict &verdict() { return judge; }
    Pairs pairs() const { return count_pairs(atoms, neighbours, force.cut()); }
    double operations(const Pairs &pairs) const { return force.operations(pairs, neighbours); }

private:
    void first_half_step();
    void second_half_step();
    void renew_lists(int step);
    void forces(bool with_sums);
    void report_state(int step);
    void advance(int step, bool shown);
    void print_fingerprints(const Recount &anew);
    Motion motion_followed(int steps) const;
    int draw_renewal(int behind, int steps) const;
    void print_motion(const char *when, const Motion &motion) const;
    Sums sums_of_all() const;
    double energy();
    double energy_moved(const Buffer<double> &from, const Buffer<double> &along, double scale);
    double curvature();
    double gradient_error();

    const Settings &settings;
    const Domain &domain;
    const Units &units;
    Force &force;
    Atoms &atoms;
    Ghosts ghosts;
    Neighbours neighbours;
    Verdict judge;
    Sums sums; // of this rank, where the last computation of forces asked for them
    Sums shown; // of all ranks, of the last state in the table
    Motion at_start;
    Times spent;
    assay::Bouts bouts; // windows are computations of forces and of lists
    double kick; // half a time step over the mass, in the units of velocities and forces
    assay::Instant start{};
    double began = 0; // without the pauses
    assay::Time looked; // at the atoms, between steps
    std::vector<std::pair<int, assay::Time>> reached;
    assay::Instant last{};
    int next_sort;
    int rank;
};

} // namespace minimd

#endif
