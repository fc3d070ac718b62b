#include "simulation.hpp"

#include <mpi.h>

#include <cmath>
#include <cstdio>

#include "node_limits.h"

namespace minimd {

namespace {

constexpr int LIMIT_WINDOWS = 8; // of a slice

// Adds the time since the last call to a phase, and returns it.
double charge(assay::Instant &last, assay::Time &phase)
{
    assay::Instant now = assay::Instant::now();
    double before = phase.seconds;
    phase.add(last, now);
    last = now;
    return phase.seconds - before;
}

Buffer<double> copy(const Buffer<double> &rows, int count)
{
    Buffer<double> other;
    std::size_t values = ROW * static_cast<std::size_t>(count);
    other.reserve(values);
    std::copy(rows.data(), rows.data() + values, other.data());
    return other;
}

// Of the rows of all atoms. Collective.
double root_mean_square(const Buffer<double> &rows, const Atoms &atoms)
{
    double squares = 0;
    const long values = ROW * static_cast<long>(atoms.local);
#pragma omp parallel for reduction(+ : squares) schedule(static)
    for (long c = 0; c < values; c++)
        squares += rows[c] * rows[c];
    MPI_Allreduce(MPI_IN_PLACE, &squares, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return std::sqrt(squares / static_cast<double>(atoms.total));
}

} // namespace

Simulation::Simulation(const Settings &settings, const Domain &domain, const Units &units,
                       Force &force, Atoms &atoms, int rank)
    : settings(settings), domain(domain), units(units), force(force), atoms(atoms),
      ghosts(domain, settings.neighbour_cut, rank), neighbours(settings, domain),
      judge(settings, units, force),
      bouts(MPI_COMM_WORLD, settings.steps,
            [] { return limit_vector(MPI_COMM_WORLD, LIMIT_WINDOWS); }),
      kick(0.5 * settings.timestep / (units.mass_velocity2_to_energy * atoms.mass)),
      next_sort(settings.sort_every), rank(rank)
{
}

// Whole rows, the fourth column too: it is 0 in velocities and forces.
void Simulation::first_half_step()
{
    double *__restrict x = atoms.x.data(), *__restrict v = atoms.v.data();
    const double *__restrict f = atoms.f.data();
    const double step = settings.timestep, half = kick;
    const long values = ROW * static_cast<long>(atoms.local);
#pragma omp parallel for simd schedule(static)
    for (long c = 0; c < values; c++) {
        v[c] += half * f[c];
        x[c] += step * v[c];
    }
}

void Simulation::second_half_step()
{
    double *__restrict v = atoms.v.data();
    const double *__restrict f = atoms.f.data();
    const double half = kick;
    const long values = ROW * static_cast<long>(atoms.local);
#pragma omp parallel for simd schedule(static)
    for (long c = 0; c < values; c++)
        v[c] += half * f[c];
}

void Simulation::renew_lists(int step)
{
    ghosts.exchange(atoms);
    if (settings.sort_every && step >= next_sort) {
        neighbours.sort(atoms);
        next_sort += settings.sort_every;
    }
    ghosts.borders(atoms);
    assay::Instant before = last;
    charge(last, spent.communication);
    spent.moving.add(before, last);
    neighbours.build(atoms);
    bouts.add(NEIGHBOURS, charge(last, spent.neighbours));
}

void Simulation::forces(bool with_sums)
{
    if (with_sums)
        sums = force.compute_with_sums(atoms, neighbours, ghosts);
    else
        force.compute(atoms, neighbours, ghosts);
    assay::Instant before = last;
    double seconds = charge(last, spent.force);
    if (with_sums) { // which are more work
        spent.force_with_sums.add(before, last);
    } else {
        const double interruption = force.interruption();
        spent.interrupted += interruption;
        bouts.add(FORCE, seconds - interruption);
        bouts.add(WHOLE_FORCE, seconds);
    }
    if (settings.half && settings.ghost_newton) {
        ghosts.reverse_forces(atoms);
        charge(last, spent.communication);
    }
}

Sums Simulation::sums_of_all() const
{
    double all[] = { sums.energy, sums.virial, sums.inside };
    MPI_Allreduce(MPI_IN_PLACE, all, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return { all[0], all[1], all[2] };
}

void Simulation::report_state(int step)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double time = 0;
    if (step) {
        const assay::Instant now = assay::Instant::now();
        time = now.mpi - began;
        reached.push_back({ step, {} });
        assay::Time &until = reached.back().second;
        until.add(start, now);
        until.subtract(bouts.paused());
        until.subtract(looked);
    }
    Sums all = sums_of_all();
    double t = temperature(atoms, units), count = static_cast<double>(atoms.total);
    double freedom = (3 * count - 3) * units.boltzmann;
    double volume = domain.period[0] * domain.period[1] * domain.period[2];
    double pressure = (t * freedom + all.virial) * units.energy_per_volume_to_pressure / 3 / volume;
    if (rank == 0) {
        double printed = all.energy / count * units.printed_energy;
        std::printf("%d %e %e %e %6.3f\n", step, t, printed, pressure, time);
        std::fflush(stdout);
    }
    judge.state(atoms, all.energy, all.inside);
    // Twice the kinetic energy, as temperature and pressure of the table have it.
    judge.shown(t * freedom);
    judge.shown(3 * volume * pressure / units.energy_per_volume_to_pressure - all.virial);
    shown = all;
}

// What is conserved together with the kinetic energy (see verdict.cpp).
double Simulation::energy()
{
    sums = force.compute_with_sums(atoms, neighbours, ghosts);
    Sums all = sums_of_all();
    return all.energy - force.energy_at_cut() * all.inside;
}

// Leaves the atoms, and the forces on them, there.
double Simulation::energy_moved(const Buffer<double> &from, const Buffer<double> &along,
                                double scale)
{
    const long values = ROW * static_cast<long>(atoms.local);
#pragma omp parallel for schedule(static)
    for (long c = 0; c < values; c++)
        atoms.x[c] = from[c] + scale * along[c];
    ghosts.forward_positions(atoms);
    return energy();
}

// Of the energy along the velocities, for a time step: dt^2 v.U''.v. Forces have to be computed
// after.
double Simulation::curvature()
{
    Buffer<double> x = copy(atoms.x, atoms.local);
    double scale = 1e-4 * force.cut() / root_mean_square(atoms.v, atoms);
    double middle = energy();
    double there = energy_moved(x, atoms.v, scale), back = energy_moved(x, atoms.v, -scale);
    energy_moved(x, atoms.v, 0);
    return (there - 2 * middle + back) * std::pow(settings.timestep / scale, 2);
}

// How far the forces are from being the gradient of the energy: all atoms move a little along
// their forces and back, and the energy has to change by the work done. Relative to that work.
double Simulation::gradient_error()
{
    Buffer<double> x = copy(atoms.x, atoms.local), f = copy(atoms.f, atoms.local);
    double size = root_mean_square(f, atoms);
    double scale = 1e-6 * force.cut() / size; // the energy's third order is lost in it
    double there = energy_moved(x, f, scale), back = energy_moved(x, f, -scale);
    energy_moved(x, f, 0);
    double work = 2 * scale * size * size * static_cast<double>(atoms.total);
    return std::fabs((back - there) / work - 1);
}

void Simulation::advance(int step, bool with_sums)
{
    first_half_step();
    last = assay::Instant::now();
    if (step % settings.neighbour_every == 0) {
        renew_lists(step);
    } else {
        ghosts.forward_positions(atoms);
        charge(last, spent.communication);
    }
    forces(with_sums);
    second_half_step();
}

void Simulation::run()
{
    ghosts.exchange(atoms);
    if (settings.sort_every)
        neighbours.sort(atoms);
    ghosts.borders(atoms);
    neighbours.build(atoms);
    judge.begin(curvature());
    forces(true);
    if (rank == 0)
        std::printf("# Starting dynamics ...\n# Timestep T U P Time\n");
    report_state(0);
    at_start = motion_of(atoms, domain);
    const int followed = Replay::steps_of_start(settings, static_cast<double>(atoms.total));
    const Motion plain = motion_followed(followed);
    const int between = Replay::steps_between(settings, static_cast<double>(atoms.total));
    const int drawn = draw_renewal(followed, between), drawn_end = drawn > 0 ? drawn + between : 0;
    Motion run, run_between, plain_between;

    spent = Times();
    MPI_Barrier(MPI_COMM_WORLD);
    start = assay::Instant::now();
    began = start.mpi;
    for (int step = 1; step <= settings.steps; step++) {
        began += bouts.before(step - 1);
        bool is_shown = step == settings.steps ||
                        (settings.thermo_every && step % settings.thermo_every == 0);
        advance(step, is_shown);
        if (is_shown)
            report_state(step);
        if (step == followed || step == drawn || step == drawn_end) {
            const assay::Instant before = assay::Instant::now();
            if (step == followed)
                run = motion_of(atoms, domain);
            if (step == drawn)
                plain_between = motion_followed(between);
            if (step == drawn_end)
                run_between = motion_of(atoms, domain);
            const assay::Instant after = assay::Instant::now();
            looked.add(before, after);
            began += after.mpi - before.mpi;
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    spent.total.add(start, assay::Instant::now());
    spent.total.subtract(bouts.paused());
    spent.total.subtract(looked);
    bouts.end();
    const long lists = settings.steps / settings.neighbour_every;
    assay::require_runs("the force", spent.force, settings.steps);
    assay::require_runs("the lists", spent.neighbours, lists);
    // Lists are renewed from ghosts that were made anew; else these are sent new positions.
    const bool is_reversed = settings.half && settings.ghost_newton;
    assay::require_runs("the communication", spent.communication,
                        settings.steps * (is_reversed ? 2L : 1L) + lists);
    assay::require_runs("all steps", spent.total,
                        settings.steps + lists + spent.communication.runs);
    double error = gradient_error();
    Recount anew = recount_pairs(atoms, settings, force);
    judge.finish(atoms, error, sums.inside, anew.inside, ghosts.missing());
    Times of_loop = spent;
    print_fingerprints(anew);
    if (followed > 0) {
        print_motion("first steps, run", run);
        print_motion("first steps, anew", plain);
        judge.replayed(run.difference(plain, atoms.mass), domain);
    }
    if (drawn > 0) {
        print_motion("steps between, run", run_between);
        print_motion("steps between, anew", plain_between);
        judge.replayed(run_between.difference(plain_between, atoms.mass), domain);
    }
    spent = of_loop;
}

// A step behind some others at which the lists are renewed, and which so many follow; 0 if there is none.
// Nobody knows it beforehand: a step that is wrong at times is found sooner or later.
int Simulation::draw_renewal(int behind, int steps) const
{
    const int every = settings.neighbour_every;
    const int first = behind / every + 1, last = (settings.steps - steps) / every;
    long lot = static_cast<long>(MPI_Wtime() * 1e6);
    MPI_Bcast(&lot, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return steps > 0 && last >= first ? static_cast<int>(first + lot % (last - first + 1)) * every
                                      : 0;
}

// The atoms after so many steps from now, by a plain implementation. Lists are taken to have been made
// now.
Motion Simulation::motion_followed(int steps) const
{
    if (steps == 0)
        return {};
    Replay replay(settings, domain, atoms, force, units);
    for (int step = 1; step <= steps; step++)
        replay.step(step % settings.neighbour_every == 0);
    return replay.motion();
}

// What lib/assay/programs/minimd.py holds against each other, and against what was asked for: the
// sums of the last state in the table against those over pairs that were found anew, and the atoms
// after some more steps against a plain implementation's. The verdict looks too.
void Simulation::print_fingerprints(const Recount &anew)
{
    double sums[] = { pairs().listed, anew.listed, anew.inside, anew.energy, anew.virial };
    MPI_Allreduce(MPI_IN_PLACE, sums, 5, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        std::printf(
            "\n# Fingerprint of the settings: %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g "
            "%d\n",
            settings.epsilon, settings.sigma, settings.timestep, atoms.mass, settings.temperature,
            settings.density, settings.force_cut, settings.neighbour_cut, settings.neighbour_every);
        std::printf("# Fingerprint of the pairs, run: %.0f %.0f %.15e %.15e\n", sums[0],
                    shown.inside, shown.energy, shown.virial);
        std::printf("# Fingerprint of the pairs, anew: %.0f %.0f %.15e %.15e\n", sums[1], sums[2],
                    sums[3], sums[4]);
    }
    print_motion("start", at_start);
    print_motion("end", motion_of(atoms, domain));
    // Fast atoms may have crossed the skin unseen.
    bool same_pairs = sums[2] == shown.inside;
    if (same_pairs)
        judge.anew(shown.energy, shown.energy, sums[3]);
    if (settings.neighbour_every <= Replay::STEPS)
        return;
    if (settings.steps % settings.neighbour_every != 0)
        renew_lists(settings.steps);
    judge.reached(atoms.all(), images_in_reach(atoms, domain, settings.neighbour_cut));
    forces(false); // which the gradient left without those of ghosts
    Replay replay(settings, domain, atoms, force, units);
    if (replay.whole() && same_pairs)
        judge.anew(shown.energy, shown.virial, replay.virial());
    print_motion("end, run", motion_of(atoms, domain, replay.chosen()));
    print_motion("end, anew", replay.motion());
    for (int step = 1; step <= Replay::STEPS; step++) {
        advance(settings.steps + step, false);
        replay.step();
    }
    Motion run = motion_of(atoms, domain, replay.chosen()), plain = replay.motion();
    print_motion("steps after it, run", run);
    print_motion("steps after it, anew", plain);
    if (plain.atoms > 0) // a cut-off may reach through the cube that is followed
        judge.replayed(run.difference(plain, atoms.mass), domain);
}

void Simulation::print_motion(const char *when, const Motion &motion) const
{
    if (rank != 0)
        return;
    std::printf("# Fingerprint of the %s: %.0f %.15e", when, motion.atoms, motion.mass_velocity2);
    for (double wave : motion.waves)
        std::printf(" %.15e", wave);
    std::printf("\n");
}

} // namespace minimd
