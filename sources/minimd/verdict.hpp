// Whether the run can be believed: the energy of the crystal that it starts from, forces that are
// the gradient of the energy, conservation of energy, momentum and atoms, and ghosts that came.
#ifndef MINIMD_VERDICT_HPP
#define MINIMD_VERDICT_HPP

#include "atoms.hpp"
#include "domain.hpp"
#include "force.hpp"
#include "recount.hpp"
#include "settings.hpp"

namespace minimd {

class Verdict {
public:
    Verdict(const Settings &settings, const Units &units, const Force &force);

    // With dt^2 v.U''.v of all atoms, before the first state.
    void begin(double curvature) { start_curvature = curvature; }
    // Collective. A state of the run, with the sums over all ranks; the first one is the start.
    void state(const Atoms &atoms, double potential, double pairs_inside);
    // Twice the kinetic energy of all atoms in the last state, by what is shown of it.
    void shown(double twice_kinetic);
    // Collective, after the last state; `pairs_inside` and `pairs_anew` are this rank's share then.
    void finish(const Atoms &atoms, double gradient_error, double pairs_inside, double pairs_anew,
                long messages_missing);
    // A sum over the pairs at the end, from the run and anew; `energy` is that of all atoms.
    void anew(double energy, double sum, double other);
    // Collective: atoms and ghosts of this rank, and what its atoms make of those of all ranks.
    void reached(int atoms_and_ghosts, Images images);
    // How far the atoms are from those of a plain implementation after some steps, as parts of a wave.
    void replayed(double difference, const Domain &domain);
    // Rank 0 prints one line for each oracle and one for all. Returns whether they passed.
    bool print() const;

private:
    int steps;
    double timestep, to_energy; // mass velocity^2 to energy
    double energy_at_cut, crystal;
    bool started = false, finite = true;
    double start = 0, last = 0, drift = 0, start_of_potential = 0; // energy per atom
    double stiffness = 0; // mean of dt^2 F^2 / m over the kinetic energy; the greatest
    double hottest = 0;   // kinetic energy per atom
    double kinetic = 0;   // energy per atom of the last state
    double momentum = 0;  // of the mean atom over that of a typical one; the greatest
    double gradient = 0, start_curvature = 0;
    double sums = 0;                  // run against anew, of the energy
    double replay = 0, replay_bound = 0; // bound 0: was not replayed
    double pairs_counted = 0, pairs_computed = 0;
    double in_reach = 0, in_reach_least = 0, in_reach_most = 0;
    long atoms_wanted = 0, atoms_found = 0, missing = 0;
};

} // namespace minimd

#endif
