"""Wrong kernels of miniMD: each at the problem of the suite, on 1 rank and on 2 with 2 threads."""

from __future__ import annotations

from assay.programs.application import Problem
from assay.programs.minimd import MiniMD
from wrong_kernels import Built, Mutant, complaint_of_application

_SIZE = 5e5  # bytes: 4 x 4 x 4 cells and more
_STEPS = 200
_RUNS = ((1, 1), (2, 2))
_EMBEDDED_ATOM = """\
Embedded atoms: copper
written by Assay
metal
none
eam
1.0 1.0
5 5 5
30
0.001
600
0.07041125
20
4.95 1.0
10
"""


def complaint(built: Built, program: str) -> str:
    application = MiniMD()
    for ranks, threads in _RUNS:
        whole = application.problem(_SIZE, ranks, threads)
        # Short: the first ones are all made once more, and some of these as of longer runs.
        problem = Problem(
            [*whole.arguments, '-n', str(_STEPS)], whole.files, {**whole.facts, 'steps': _STEPS}
        )
        if said := complaint_of_application(built, application, problem, ranks, threads):
            return said
    # No check runs EAM: its verdict is the program's own.
    code, output = built.run('minimd', ['-i', 'in'], 2, 2, {'in': _EMBEDDED_ATOM})
    failed = [line.strip() for line in output.splitlines() if line.endswith(': FAILED')]
    return ', '.join(failed) or (f'exit code {code}' if code else '')


def _of(name: str, path: str, before: str, after: str, **more: object) -> Mutant:
    return Mutant('minimd', name, f'minimd/{path}', before, after, **more)  # type: ignore[arg-type]


_KICK = 'kick(0.5 * settings.timestep / (units'
_DRIFT = 'x[c] += step * v[c];'
_PHASE = 'phase.add(last, now);'

MUTANTS = [
    _of(
        'kick wrong by 1e-6',
        'simulation.cpp',
        _KICK,
        _KICK.replace('0.5', '0.5000005'),
    ),
    _of('kick wrong by 0.1%', 'simulation.cpp', _KICK, _KICK.replace('0.5', '0.5005')),
    _of('longer drift', 'simulation.cpp', _DRIFT, 'x[c] += 1.000001 * step * v[c];'),
    _of(
        'no drift of the last',
        'simulation.cpp',
        _DRIFT,
        'x[c] += c == values - 2 ? 0 : step * v[c];',
    ),
    _of(
        'longer time step',
        'settings.cpp',
        'positive(9, 1, "time step")',
        '1.000001 * positive(9, 1, "time step")',
    ),
    _of('another mass', 'atoms.hpp', 'double mass = 1;', 'double mass = 1.000001;'),
    _of(
        'colder',
        'settings.cpp',
        'positive(10, 1, "temperature")',
        '0.999 * positive(10, 1, "temperature")',
    ),
    _of(
        'scaled too cold',
        'atoms.cpp',
        'std::sqrt(settings.temperature /',
        'std::sqrt(0.999999 * settings.temperature /',
    ),
    _of(
        'thinner',
        'settings.cpp',
        'positive(11, 1, "density")',
        '0.99999 * positive(11, 1, "density")',
    ),
    _of(
        'shorter cut-off',
        'settings.cpp',
        'to.force_cut = positive(13, 1, "cut-off")',
        'to.force_cut = 0.9999 * positive(13, 1, "cut-off")',
    ),
    _of(
        'shorter skin',
        'settings.cpp',
        'to.force_cut + positive(13',
        'to.force_cut + 0.99 * positive(13',
    ),
    _of(
        'lists too short',
        'neighbours.cpp',
        'square = all(cut * cut)',
        'square = all(0.9999 * cut * cut)',
        hard=True,
    ),
    _of(
        'lists as short as the cut-off',
        'neighbours.cpp',
        ': cut(settings.neighbour_cut)',
        ': cut(settings.force_cut)',
    ),
    _of(
        'lists never renewed',
        'simulation.cpp',
        'if (step % settings.neighbour_every == 0) {',
        'if (step < 0) {',
    ),
    _of(
        'lists renewed half as often',
        'simulation.cpp',
        'if (step % settings.neighbour_every == 0) {',
        'if (step % (2 * settings.neighbour_every) == 0) {',
    ),
    _of(
        'lists renewed at other steps',
        'simulation.cpp',
        'if (step % settings.neighbour_every == 0) {',
        'if (step % settings.neighbour_every == 1) {',
    ),
    _of(
        'fewer steps',
        'simulation.cpp',
        'for (int step = 1; step <= settings.steps; step++) {',
        'for (int step = 1; step <= settings.steps; step += 2) {',
    ),
    _of(
        'begins at step 2',
        'simulation.cpp',
        'for (int step = 1; step <= settings.steps; step++) {',
        'for (int step = 2; step <= settings.steps; step++) {',
    ),
    _of(
        'wrong temperature',
        'atoms.cpp',
        'freedom = 3 * static_cast<double>(atoms.total) - 3',
        'freedom = 3 * static_cast<double>(atoms.total)',
    ),
    _of(
        'temperature of 1e-6 more',
        'simulation.cpp',
        'double t = temperature(atoms, units)',
        'double t = 1.000002 * temperature(atoms, units)',
    ),
    _of('wrong pressure', 'simulation.cpp', '/ 3 / volume', '/ 3.000006 / volume'),
    _of(
        'pressure without virial',
        'simulation.cpp',
        '(t * freedom + all.virial)',
        '(t * freedom + 0 * all.virial)',
    ),
    _of(
        'wrong virial',
        'force_lj.cpp',
        'virial += weight * (squared * force)',
        'virial += weight * (squared * force) * 1.00001',
    ),
    _of(
        'virial of one rank',
        'simulation.cpp',
        'return { all[0], all[1], all[2] };',
        'return { all[0], sums.virial, all[2] };',
    ),
    _of(
        'energy of one thread less',
        'force_lj.cpp',
        'total.energy += one.energy;',
        'total.energy += &one == &sums[0] && sums.size() > 1 ? 0 : one.energy;',
    ),
    _of('force constant', 'force_lj.cpp', 'all(48 * epsilon)', 'all(48.00005 * epsilon)'),
    _of('attraction', 'force_lj.cpp', 'half = all(0.5)', 'half = all(0.5000005)'),
    _of(
        'energy constant',
        'force_lj.cpp',
        '{ 4 * epsilon * energies',
        '{ 4.000005 * epsilon * energies',
    ),
    _of(
        'no forces back from ghosts',
        'ghosts.cpp',
        'at[c] += in[c];',
        'at[c] += c == 2 ? 0 : in[c];',
    ),
    _of(
        'stale ghosts',
        'ghosts.cpp',
        'std::memcpy(rows + row(swap.first + k), in, 3 * sizeof(double));',
        'if (k) std::memcpy(rows + row(swap.first + k), in, 3 * sizeof(double));',
    ),
    _of(
        'a thread lost', 'force.hpp', 'to[c] += theirs[c];', 'to[c] += thread == 1 ? 0 : theirs[c];'
    ),
    _of(
        'other seeds',
        'atoms.cpp',
        '(k * depth + j) * width + i + 1',
        '(k * depth + j) * width + i + 2',
    ),
    _of('other numbers', 'atoms.cpp', 'for (int i = 0; i < 5; i++)', 'for (int i = 0; i < 4; i++)'),
    _of(
        'atoms thrown away',
        'simulation.cpp',
        'f[c];\n        x[c]',
        'f[c] * (c < 8 ? 0 : 1);\n        x[c]',
    ),
    _of(
        'total time scaled',
        'simulation.cpp',
        'spent.total.subtract(bouts.paused());',
        'spent.total.subtract(bouts.paused()); spent.total.seconds *= 0.999;',
    ),
    _of(
        'total without a part',
        'simulation.cpp',
        'spent.total.subtract(bouts.paused());',
        'spent.total.subtract(bouts.paused()); spent.total.seconds -= spent.moving.seconds;',
    ),
    _of(
        'force time scaled',
        'simulation.cpp',
        _PHASE,
        f'{_PHASE} phase.seconds -= 1e-3 * (now.mpi - last.mpi);',
    ),
    _of(
        'clock scaled',
        '../common/application.cpp',
        'double before = system_seconds(), mpi = MPI_Wtime();',
        'double before = system_seconds(), mpi = 0.99 * MPI_Wtime();',
    ),
    _of(
        'pauses counted twice',
        'simulation.cpp',
        'spent.total.subtract(bouts.paused());',
        'spent.total.subtract(bouts.paused()); spent.total.seconds -= bouts.paused().seconds;',
    ),
    _of(
        'least of the ranks',
        'main.cpp',
        'total, force.mean, lists.mean,',
        'total, force.least, lists.mean,',
    ),
    _of(
        'rate of more steps',
        'main.cpp',
        'static_cast<double>(atoms.total) * settings.steps / total',
        'static_cast<double>(atoms.total) * (settings.steps + 1) / total',
    ),
    _of(
        'operations counted too high',
        'force_lj.cpp',
        '(neighbours.half() ? 18 : 15)',
        '(neighbours.half() ? 19 : 15)',
        hard=True,
    ),
    _of(
        'windows of half the time',
        'simulation.cpp',
        'bouts.add(FORCE, seconds - interruption);',
        'bouts.add(FORCE, 0.5 * seconds);',
    ),
    _of(
        'lists timed in part',
        'simulation.cpp',
        'bouts.add(NEIGHBOURS, charge(last, spent.neighbours));',
        'bouts.add(NEIGHBOURS, 0.9 * charge(last, spent.neighbours));',
    ),
    _of(
        'a window of more atoms',
        'main.cpp',
        'auto count = static_cast<double>(atoms.total);',
        'auto count = 1.0001 * static_cast<double>(atoms.total);',
    ),
    _of(
        'limit of more operations',
        'main.cpp',
        'windows.of_limit(sums[2])',
        'windows.of_limit(1.001 * sums[2])',
    ),
    _of(
        'least of the windows', '../common/windows.c', 'seconds[(count + 9) / 10 - 1]', 'seconds[0]'
    ),
    _of(
        'sums in another order',
        'simulation.cpp',
        'squares += rows[c] * rows[c];',
        'squares += rows[values - 1 - c] * rows[values - 1 - c];',
        equivalent='the same terms; a sum that only sets how far atoms are moved for the gradient',
    ),
    _of(
        'never sorted',
        'simulation.cpp',
        'if (settings.sort_every && step >= next_sort) {',
        'if (false) {',
        equivalent='the order of atoms in memory is no answer; the run is only slower, and says so',
    ),
    _of(
        'EAM: density too steep by 1e-6',
        'force_eam.cpp',
        'return (3 * c.c0 * t + 2 * c.c1) * t + c.c2;',
        'return 1.000001 * ((3 * c.c0 * t + 2 * c.c1) * t + c.c2);',
    ),
    _of(
        'EAM: embedding too steep by 1e-6',
        'force_eam.cpp',
        'x[row + 3] = ((3 * c[0]',
        'x[row + 3] = 1.000001 * ((3 * c[0]',
    ),
    _of(
        'EAM: embedding of ghosts stale',
        'force_eam.cpp',
        'embed(atoms);\n        ghosts.forward_fourth(atoms);\n        shared.sum(f,',
        'embed(atoms);\n        static int calls = 0;\n        if (calls++ % 2 == 0)\n'
        '            ghosts.forward_fourth(atoms);\n        shared.sum(f,',
    ),
    _of(
        'EAM: densities in single precision',
        'force_eam.cpp',
        '            here += added;',
        '            for (int l = 0; l < LANES; l++)\n'
        '                added[l] = static_cast<float>(added[l]);\n            here += added;',
    ),
    _of(
        'EAM: distances in single precision',
        'force_eam.cpp',
        'v[l] = std::sqrt(v[l]);',
        'v[l] = std::sqrt(static_cast<float>(v[l]));',
    ),
    _of(
        'EAM: densities of a shorter cut-off',
        'force_eam.cpp',
        'const Lanes cut_squared = all(potential.cut * potential.cut);\n',
        'const Lanes cut_squared = all(0.98 * potential.cut * potential.cut);\n',
    ),
    _of(
        'EAM: virial too large by 1e-6',
        'force_eam.cpp',
        'virial += weight * squared * force;',
        'virial += 1.000001 * weight * squared * force;',
    ),
    _of(
        'EAM: pair energy too large by 1e-6',
        'force_eam.cpp',
        'energy += weight * (near ? phi',
        'energy += 1.000001 * weight * (near ? phi',
    ),
    _of('EAM: another mass', 'force_eam.cpp', 'atoms.mass = made.mass;', 'atoms.mass = 63.5;'),
    _of(
        'forces in single precision',
        'force_lj.cpp',
        'all(48 * epsilon)',
        'all(480 * static_cast<double>(0.1F) * epsilon)',
    ),
    _of(
        'every fourth step without the second half of the kick',
        'simulation.cpp',
        '    forces(with_sums);\n    second_half_step();',
        '    forces(with_sums);\n    if (step % 4 != 2)\n        second_half_step();',
    ),
    _of(
        'ghosts of one side stale',
        'ghosts.cpp',
        '{\n                std::memcpy(rows + row(swap.first + k), in, 3 * sizeof(double));',
        '{\n                if (&swap != &swaps.back())\n'
        '                    std::memcpy(rows + row(swap.first + k), in, 3 * sizeof(double));',
    ),
    _of(
        'force timed as communication',
        'simulation.cpp',
        'double seconds = charge(last, spent.force);',
        'double seconds = charge(last, spent.communication);',
    ),
    _of(
        'steps timed from the tenth',
        'simulation.cpp',
        'began += bouts.before(step - 1);',
        'began += bouts.before(step - 1);\n        if (step == 10)\n'
        '            start = assay::Instant::now();',
    ),
    _of(
        'lists timed as communication',
        'simulation.cpp',
        '    neighbours.build(atoms);\n    bouts.add(NEIGHBOURS, charge(last, spent.neighbours));',
        '    neighbours.build(atoms);\n    charge(last, spent.communication);\n'
        '    bouts.add(NEIGHBOURS, charge(last, spent.neighbours));',
    ),
    _of(
        'limit halved',
        '../node/node_limits.c',
        'rate += done * kernels->flops / seconds;',
        'rate += 0.5 * done * kernels->flops / seconds;',
    ),
    _of(
        'limit of one thread',
        '../node/node_limits.c',
        'rate += done * kernels->flops / seconds;',
        'rate = omp_get_thread_num() ? 0 : done * kernels->flops / seconds;',
    ),
    _of(
        'fraction of the best bout',
        '../common/application.cpp',
        'found.fraction = median(fractions);',
        'found.fraction = *std::max_element(fractions.begin(), fractions.end());',
    ),
    _of(
        'whole of best scaled',
        '../common/application.cpp',
        'windows.best / windows.mean);',
        '0.5 + 0.5 * windows.best / windows.mean);',
    ),
    _of(
        'steady windows scaled',
        '../common/application.cpp',
        'for (const Window &window : steady(all))\n        seconds.push_back(window.seconds);',
        'for (const Window &window : steady(all))\n'
        '        seconds.push_back(0.9 * window.seconds);',
    ),
    _of(
        'imbalance of the mean',
        'main.cpp',
        'of.mean,\n                        of.most);',
        'of.mean,\n                        of.mean);',
    ),
    _of(
        'imbalance of the fastest',
        'main.cpp',
        'MPI_Allreduce(MPI_IN_PLACE, &spread.most, 1, MPI_DOUBLE, MPI_MAX',
        'MPI_Allreduce(MPI_IN_PLACE, &spread.most, 1, MPI_DOUBLE, MPI_MIN',
    ),
    _of(
        'positions of ghosts sent outside of the time',
        'simulation.cpp',
        'ghosts.forward_positions(atoms);\n        charge(last, spent.communication);',
        'ghosts.forward_positions(atoms);\n        last = assay::Instant::now();',
    ),
    _of(
        'forces of ghosts sent outside of the time',
        'simulation.cpp',
        'ghosts.reverse_forces(atoms);\n        charge(last, spent.communication);',
        'ghosts.reverse_forces(atoms);\n        last = assay::Instant::now();',
    ),
    _of(
        'atoms moved outside of the time',
        'simulation.cpp',
        'assay::Instant before = last;\n    charge(last, spent.communication);',
        'assay::Instant before = last;\n    last = assay::Instant::now();',
    ),
    _of(
        'velocities swapped when sorted',
        'neighbours.cpp',
        'std::memcpy(&fresh_v[row(i)], &atoms.v[row(order[i])], ROW * sizeof(double));',
        'std::memcpy(&fresh_v[row(i)], &atoms.v[row(order[(i ^ 1) < atoms.local ? i '
        '^ 1 : i])],\n'
        '                    ROW * sizeof(double));',
    ),
    _of(
        'atoms that move to another rank in single precision',
        'ghosts.cpp',
        '                    x[c] = in[c];\n',
        '                    x[c] = static_cast<float>(in[c]);\n',
    ),
    _of(
        'atoms beyond the end wrapped too far',
        'ghosts.cpp',
        'at -= period[d];',
        'at -= period[d] * (1 + 1e-9);',
    ),
    _of(
        'nothing moves in a step',
        'simulation.cpp',
        'const double step = settings.timestep, half = kick;',
        'static int calls = 0;\n'
        '    const bool still = ++calls == 57;\n'
        '    const double step = still ? 0 : settings.timestep, half = kick;',
    ),
    _of(
        'kick left out once',
        'simulation.cpp',
        'const double step = settings.timestep, half = kick;',
        'static int calls = 0;\n'
        '    const bool still = ++calls == 57;\n'
        '    const double step = settings.timestep, half = still ? 0 : kick;',
    ),
    _of(
        'forces of a step with sums wrong',
        'force_lj.cpp',
        'Lanes px = dx * force,',
        'force *= SUMS ? 1.00001 : 1;\n                Lanes px = dx * force,',
    ),
    _of(
        'components of a step with sums wrong',
        'force_lj.cpp',
        'Lanes px = dx * force,',
        'Lanes px = (SUMS ? 1.00001 : 1) * dx * force,',
    ),
    _of(
        'ghosts stale before lists are renewed',
        'simulation.cpp',
        '        ghosts.forward_positions(atoms);\n        charge(last, spent.communication);',
        '        if (step % settings.neighbour_every < 15)\n'
        '            ghosts.forward_positions(atoms);\n'
        '        else\n'
        '            assay::ran();\n'
        '        charge(last, spent.communication);',
    ),
    _of(
        'ghosts stale in one step of twenty',
        'simulation.cpp',
        '        ghosts.forward_positions(atoms);\n        charge(last, spent.communication);',
        '        if (step % settings.neighbour_every != 11)\n'
        '            ghosts.forward_positions(atoms);\n'
        '        else\n'
        '            assay::ran();\n'
        '        charge(last, spent.communication);',
    ),
    _of(
        'lists too short once',
        'neighbours.cpp',
        'const Lanes square = all(cut * cut);',
        'static int parts = 0;\n'
        '    const Lanes square = all((parts++ / threads() == 3 ? 0.9 : 1) * cut * '
        'cut);',
    ),
    _of(
        'ghosts in single precision',
        'ghosts.cpp',
        '                std::memcpy(rows + row(swap.first + k), in, 3 * sizeof(double));',
        '                for (int c = 0; c < 3; c++)\n'
        '                    rows[row(swap.first + k) + c] = '
        'static_cast<float>(in[c]);',
    ),
    _of(
        'kick in single precision',
        'simulation.cpp',
        '        v[c] += half * f[c];\n}',
        '        v[c] += static_cast<float>(half * f[c]);\n}',
    ),
    _of(
        'EAM: embedding of ghosts stale once in twenty',
        'force_eam.cpp',
        '        embed(atoms);\n        ghosts.forward_fourth(atoms);\n        shared',
        '        embed(atoms);\n'
        '        static int calls = 0;\n'
        '        if (calls++ % 20 != 13)\n'
        '            ghosts.forward_fourth(atoms);\n'
        '        shared',
    ),
    _of(
        'EAM: forces of a step with sums wrong',
        'force_eam.cpp',
        'Lanes px = dx * force,',
        'Lanes px = (SUMS ? 1.00001 : 1) * dx * force,',
    ),
    _of(
        'EAM: pair slope beyond three quarters of the cut-off',
        'force_eam.cpp',
        'force = near ? force : Lanes{};',
        'force = near ? force : Lanes{};\n'
        '            force = squared < 0.95 * cut_squared ? force : 0.99999 * force;',
    ),
    _of(
        'a later temperature of the table',
        'simulation.cpp',
        'double t = temperature(atoms, units), count',
        'double t = (step && step < settings.steps ? 1.01 : 1) * temperature(atoms, units), count',
    ),
    _of(
        'ghosts stale in one step of twenty behind the first 100',
        'simulation.cpp',
        '        ghosts.forward_positions(atoms);\n        charge(last, spent.communication);',
        '        if (step < 101 || step % settings.neighbour_every != 11)\n'
        '            ghosts.forward_positions(atoms);\n'
        '        else\n'
        '            assay::ran();\n'
        '        charge(last, spent.communication);',
    ),
    _of(
        'kick left out in one step of twenty behind the first 100',
        'simulation.cpp',
        '    forces(with_sums);\n    second_half_step();',
        '    forces(with_sums);\n'
        '    if (step < 101 || step % settings.neighbour_every != 7)\n'
        '        second_half_step();',
    ),
]
