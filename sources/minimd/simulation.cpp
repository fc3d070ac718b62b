#include "simulation.hpp"

#include <mpi.h>

#include <cmath>
#include <cstdio>

#include "node_limits.h"

namespace minimd {

namespace {

constexpr int LIMIT_WINDOWS = 8; // of a slice

// Adds the time since the last call to a phase, and returns it.
double charge(double &last, double &phase)
{
    double seconds = MPI_Wtime() - last;
    phase += seconds;
    last += seconds;
    return seconds;
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
    double before = last;
    charge(last, spent.communication);
    spent.moving += last - before;
    neighbours.build(atoms);
    bouts.add(NEIGHBOURS, charge(last, spent.neighbours));
}

void Simulation::forces(bool with_sums)
{
    if (with_sums)
        sums = force.compute_with_sums(atoms, neighbours, ghosts);
    else
        force.compute(atoms, neighbours, ghosts);
    double seconds = charge(last, spent.force);
    if (!with_sums) { // which are more work
        bouts.add(FORCE, seconds - force.interruption());
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
    double time = step ? MPI_Wtime() - began : 0;
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

    spent = Times();
    MPI_Barrier(MPI_COMM_WORLD);
    began = MPI_Wtime();
    for (int step = 1; step <= settings.steps; step++) {
        began += bouts.before(step - 1);
        first_half_step();
        last = MPI_Wtime();
        if (step % settings.neighbour_every == 0) {
            renew_lists(step);
        } else {
            ghosts.forward_positions(atoms);
            charge(last, spent.communication);
        }
        bool shown = step == settings.steps ||
                     (settings.thermo_every && step % settings.thermo_every == 0);
        forces(shown);
        second_half_step();
        if (shown)
            report_state(step);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    spent.total = MPI_Wtime() - began;
    bouts.end();
    double error = gradient_error();
    judge.finish(atoms, error, sums.inside, ghosts.missing());
}

} // namespace minimd
