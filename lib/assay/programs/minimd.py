"""miniMD: molecular dynamics with short-range forces; ours and upstream's write the same report."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from assay.programs import application
from assay.programs.application import Application, Problem, WrongAnswerError
from assay.programs.figure import Figure, Quantity, figures_of

if TYPE_CHECKING:
    import numpy as np

# Positions, velocities, forces, their copies for sorting, half lists of 39 neighbours on average
# and what they are built from.
_BYTES_OF_ATOM = 500
_ATOMS_OF_CELL = 4

# Atoms times steps: a second on two cores.
_WORK = 15_000_000
_FEWEST_STEPS, _MOST_STEPS = 100, 2000

_INPUT = 'in.lj.miniMD'
_LENNARD_JONES = """\
Lennard-Jones liquid near its triple point: the usual benchmark
written by Assay
lj           units
none         data file
lj           force style
1.0 1.0      epsilon and sigma
{cells}
{steps}      steps
0.005        time step
1.44         temperature at the start
0.8442       density
20           steps from one making of neighbour lists to the next
2.5 0.3      cut-off, and how far lists reach beyond
100          steps between outputs
"""

_TEMPERATURE, _DENSITY, _CUT_OFF, _REACH, _RENEWED_EVERY, _SHOWN_EVERY = (
    *(1.44, 0.8442, 2.5, 2.5 + 0.3),
    *(20, 100),
)
# Epsilon, sigma, time step, mass, temperature, density, cut-off, reach of lists, their frequency.
_SETTINGS = (1.0, 1.0, 0.005, 1.0, _TEMPERATURE, _DENSITY, _CUT_OFF, _REACH, _RENEWED_EVERY)

# Minimal standard generator of Park and Miller: its modulus and its multiplier.
_MODULUS, _MULTIPLIER = 2147483647, 16807
# Numbers that are drawn for each component of a velocity; the last one counts.
_DRAWN = 6
# Atoms whose start is computed once more: a tenth of a microsecond each.
_MOST_STARTED = 4_000_000
# See replay.hpp.
_MOST_FOLLOWED = 100_000
# Relative, in the few steps between two counts.
_CHANGE_OF_PAIRS = 0.01
# Energy per atom that the cut-off without a shift takes or gives: 0.01 in hundreds of steps. Ours
# is held to a sharper bound by itself.
_MOST_DRIFT = 0.05

# Of the performance summary.
_PHASES = ('force', 'neighbour', 'communication')
_COLUMNS = (
    *('ranks', 'threads', 'steps', 'atoms'),
    *('total', *_PHASES, 'other'),
    *('performance', 'performance of a thread'),
)

_SETTING = re.compile(r'^\t# (?P<name>[\w ]+): (?P<value>.*?)\s*$', re.MULTILINE)
_CELLS = re.compile(r'\(unit cells: (\d+) (\d+) (\d+)\)')
_STATE = re.compile(r'^(\d+) (\S+) (\S+) (\S+) +(\d+\.\d+)$', re.MULTILINE)
_SUMMARY = re.compile(r'^(?P<values>.*) PERF_SUMMARY (?P<extra>\S+)$', re.MULTILINE)
_SPREAD = re.compile(r'^# Force time of ranks: least \S+ mean (\S+) most (\S+)$', re.MULTILINE)
_FINGERPRINT = re.compile(r'^# Fingerprint of the (?P<what>[^:]+): (?P<values>.*)$', re.MULTILINE)
_PAIRS = re.compile(
    r'^# Pairs: (?P<listed>\d+) in lists, (?P<inside>\d+) within the cut-off, (?P<operations>\S+) '
    'operations a step$',
    re.MULTILINE,
)
_INTERRUPTED = re.compile(r'^Interruptions of the force: (\d+\.\d+) s$', re.MULTILINE)
_VERDICT = re.compile(r'^\t# (?P<oracle>.+): (?P<word>PASSED|FAILED)$', re.MULTILINE)


class MiniMD(Application):
    """The Lennard-Jones benchmark with half neighbour lists."""

    name = 'minimd'
    program = 'minimd'
    rate = 'performance'
    time = 'total_time'
    headline = 'force_rate'
    measures = {
        **{f'{name}_time': Quantity('s', 'lower') for name in ('total', *_PHASES, 'other')},
        'performance': Quantity('atom-steps/s', 'higher'),
        'force_rate': Quantity('atom-steps/s', 'higher'),
        'neighbour_rate': Quantity('atom-lists/s', 'higher'),
        'force_whole_of_best': application.WHOLE_OF_BEST,
        'force_of_limit': Quantity('1', 'higher'),
        'force_imbalance': Quantity('1', 'lower'),
    }

    def __init__(self, work: float = _WORK) -> None:
        """``work``: atoms times steps, of which there are at least the fewest."""
        self.work = work

    def problem(self, size: float, ranks: int, threads: int) -> Problem:
        """The same box for any number of ranks: strong scaling is a question of ``ranks`` only."""
        cells = _box(size / (_BYTES_OF_ATOM * _ATOMS_OF_CELL))
        atoms = _ATOMS_OF_CELL * math.prod(cells)
        steps = min(max(round(self.work / atoms / 100) * 100, _FEWEST_STEPS), _MOST_STEPS)
        edges = [str(edge) for edge in cells]
        arguments = ['-i', _INPUT, '-n', str(steps)]
        if threads > 1:  # ours would do as OMP_NUM_THREADS says, upstream uses one thread
            arguments += ['-t', str(threads)]
        for option, edge in zip(('-nx', '-ny', '-nz'), edges, strict=True):
            arguments += [option, edge]
        return Problem(
            arguments=arguments,
            files={_INPUT: _LENNARD_JONES.format(cells=' '.join(edges), steps=steps)},
            facts={'cells': cells, 'atoms': atoms, 'steps': steps},
        )

    def read(
        self, output: str, folder: Path, problem: Problem, ranks: int, threads: int
    ) -> dict[str, Figure]:
        _check_verdict(output)
        summary = _summary(output)
        _check_settings(output, problem, ranks, threads)
        _check_states(output, problem)
        _check_summary(summary, problem, ranks, threads)

        if application.is_ours(output):
            _check_fingerprints(output, problem)
            application.check_times(output, {name: summary[name] for name in ('total', *_PHASES)})
            _check_times_of_rows(output, summary['total'])
            _check_windows(output, problem, ranks)
            _check_operations(output)
        values = {f'{name}_time': summary[name] for name in ('total', *_PHASES, 'other')}
        values['performance'] = summary['performance']
        values['force_rate'] = summary['atoms'] * summary['steps'] / summary['force']
        figures = figures_of(self.measures, values)
        return figures | _figures_of_ours(output) if application.is_ours(output) else figures


def _box(cells: float) -> tuple[int, int, int]:
    """Edges of the box nearest to a cube that has at most so many unit cells."""
    if cells < 1:
        raise ValueError(
            f'miniMD needs {_BYTES_OF_ATOM * _ATOMS_OF_CELL} bytes at least: one unit cell'
        )
    # The third root of a cube may come out just below.
    x = math.floor(cells ** (1 / 3) + 1e-9)
    y = math.floor(math.sqrt(cells / x) + 1e-9)
    return x, y, math.floor(cells / (x * y))


def _check_verdict(output: str) -> None:
    """Check our verdict (upstream has none) first: a failed run may lack anything else."""
    failed = [m['oracle'] for m in _VERDICT.finditer(output) if m['word'] == 'FAILED']
    if failed:
        raise WrongAnswerError(f"miniMD's own check failed: {failed[0]}")
    if application.is_ours(output) and '\t# All: PASSED' not in output:
        raise WrongAnswerError('miniMD printed no verdict: its output is not whole')


def _summary(output: str) -> dict[str, float]:
    """The performance summary, by the names of its columns."""
    found = list(_SUMMARY.finditer(output))
    application.check_once('miniMD', len(found), 'performance summary')
    values = [*map(application.as_number, found[0]['values'].split())]
    if len(values) != len(_COLUMNS) or not all(map(math.isfinite, values)):
        raise WrongAnswerError(f'not a performance summary: {found[0].group()!r}')
    return dict(zip(_COLUMNS, values, strict=True))


def _check_settings(output: str, problem: Problem, ranks: int, threads: int) -> None:
    settings = {m['name']: m['value'] for m in _SETTING.finditer(output)}
    cells = _CELLS.search(settings.get('System size', ''))
    said = {
        **settings,
        # Ours adds the least where ranks have different numbers.
        'OpenMP threads': settings.get('OpenMP threads', '').split(' ')[0],
        'unit cells': cells and tuple(map(int, cells.groups())),
    }
    asked = {
        'MPI processes': str(ranks),
        'OpenMP threads': str(threads),
        'ForceStyle': 'LJ',
        'Atoms': str(problem.facts['atoms']),
        'unit cells': problem.facts['cells'],
        'Half neighborlists': '1',
    }
    for name, value in asked.items():
        if said.get(name) != value:
            raise WrongAnswerError(f'miniMD ran with {name}: {said.get(name)}, not {value}')


def _check_states(output: str, problem: Problem) -> None:
    """The table of steps, temperatures, energies and pressures."""
    states = [(int(step), *map(application.as_number, row)) for step, *row, _ in _rows(output)]
    if not states or states[0][0] != 0:
        raise WrongAnswerError('the table of miniMD lacks its first state')
    if states[-1][0] != problem.facts['steps']:
        raise WrongAnswerError(f'miniMD ended at step {states[-1][0]} of {problem.facts["steps"]}')
    if not all(math.isfinite(value) for state in states for value in state):
        raise WrongAnswerError('a state in the table of miniMD is no finite number')
    energy, virial = _crystal()
    start = _state(
        problem.facts['atoms'], _TEMPERATURE * (3 - 3 / problem.facts['atoms']), energy, virial
    )
    _check_state(states[0], start, 'starts')
    # What the total momentum takes from the degrees of freedom.
    freedom = 1.5 * (1 - 1 / problem.facts['atoms'])
    totals = [freedom * t + u for _, t, u, _ in states]
    drift = max(abs(total - totals[0]) for total in totals)
    if drift > _MOST_DRIFT:
        raise WrongAnswerError(
            f'the energy of miniMD drifts by {drift:.3g} per atom, more than {_MOST_DRIFT}'
        )


def _check_times_of_rows(output: str, total: float) -> None:
    """Check the last column of the table, of three decimals, against two clocks."""
    rows = {f'table to step {row[0]}': float(row[4]) for row in _rows(output)[1:]}
    if 'Time of the table' not in output:  # of older programs
        return
    times = {name: application.printed_time(output, name) for name in rows}
    application.check_times(output, times)
    for name, seconds in times.items():
        if not (abs(rows[name] - seconds) <= 6e-4 and seconds <= total + 1e-5):
            raise WrongAnswerError(
                f'the {name} of miniMD is of {rows[name]} s, but it took {seconds} of {total} s'
            )


def _state(
    atoms: int, mass_velocity2: float, energy: float, virial: float
) -> tuple[float, float, float]:
    """Temperature, energy and pressure of sums over the atoms, divided by their number."""
    temperature = mass_velocity2 / (3 - 3 / atoms)  # the mean velocity is no degree of freedom
    return temperature, energy, (mass_velocity2 + virial) * _DENSITY / 3


def _check_state(row: tuple[float, ...], expected: tuple[float, float, float], how: str) -> None:
    """To the last digit that the table has, of seven; with a tenth of it for its rounding."""
    names = ('temperature', 'energy', 'pressure')
    for name, found, value in zip(names, row[1:], expected, strict=True):
        digit = 10.0 ** (math.floor(math.log10(abs(value))) - 6) if value else 1e-12
        if not abs(found - value) <= 0.6 * digit + 1e-9:
            raise WrongAnswerError(f'miniMD {how} at {name} {found}, not at {value:.6e}')


def _crystal() -> tuple[float, float]:
    """Energy and virial of an atom of the lattice at the start."""
    half = 0.5 * (_ATOMS_OF_CELL / _DENSITY) ** (1 / 3)
    energy = virial = 0.0
    for site in itertools.product(range(-4, 5), repeat=3):
        squared = half**2 * sum(n * n for n in site)
        if sum(site) % 2 == 0 and 0 < squared < _CUT_OFF**2:
            power = squared**-3
            energy += 2 * (power * power - power)
            virial += 12 * (2 * power * power - power)
    return energy, virial


def _check_fingerprints(output: str, problem: Problem) -> None:
    """Check the fingerprints of ours: that it is the right problem, and rightly computed.

    The start is computed here. The sums over pairs at the end, and the atoms some steps later, come
    from the run and from a plain implementation.
    """
    prints = _fingerprints(output)
    atoms: int = problem.facts['atoms']
    settings = _sums(prints, 'settings', len(_SETTINGS))
    if tuple(settings) != _SETTINGS:
        raise WrongAnswerError(f'miniMD ran with the settings {settings}, not {list(_SETTINGS)}')

    cells: tuple[int, int, int] = problem.facts['cells']
    edge = max(cells) * (_ATOMS_OF_CELL / _DENSITY) ** (1 / 3)
    # Of an atom: the phase of a wave is 2 pi times the edge at most, and rounded as such.
    bound = 1e-14 * (100 + edge) * atoms
    start = _sums(prints, 'start', 7)
    if atoms <= _MOST_STARTED:
        _hold('start', start, _start(cells), bound)
    end, anew = _sums(prints, 'pairs, run', 4), _sums(prints, 'pairs, anew', 4)
    # Lists that were made some steps ago are of the places of then.
    first = 1 if problem.facts['steps'] % _RENEWED_EVERY else 0
    if end[first:2] != anew[first:2]:
        raise WrongAnswerError(
            f'miniMD has {end[0]:.0f} pairs in lists and {end[1]:.0f} within the cut-off, but '
            f'there are {anew[0]:.0f} and {anew[1]:.0f}'
        )
    # 50 terms of an atom, added up in another order: far less than the last digit of the table.
    _hold('pairs', end[2:], anew[2:], 1e-9 * atoms)

    motion = _sums(prints, 'end', 7)
    row = [float(word) for word in _rows(output)[-1][:4]]
    expected = _state(atoms, motion[1] / atoms, anew[2] / atoms, anew[3] / atoms)
    _check_state(tuple(row), expected, 'ends')
    for when in ('end', 'steps after it'):
        run, plain = (_sums(prints, f'{when}, {how}', 7) for how in ('run', 'anew'))
        _hold(f'atoms at the {when}', run, plain, bound)
        if (atoms <= _MOST_FOLLOWED and run[0] != atoms) or not run[0] > 0:
            raise WrongAnswerError(f'miniMD followed {run[0]:.0f} atoms of {atoms}')
    for when in ('first steps', 'steps between'):
        if f'{when}, run' in prints:  # not so of older programs, nor of large boxes
            run, plain = (_sums(prints, f'{when}, {how}', 7) for how in ('run', 'anew'))
            _hold(f'atoms after the {when}', run, plain, bound)
    # Two steps move the atoms, and not all of it can be zero.
    if _sums(prints, 'end, run', 7)[2:] == _sums(prints, 'steps after it, run', 7)[2:]:
        raise WrongAnswerError('the atoms of miniMD do not move')


def _fingerprints(output: str) -> dict[str, list[str]]:
    return {m['what']: m['values'].split() for m in _FINGERPRINT.finditer(output)}


def _sums(prints: Mapping[str, list[str]], what: str, count: int) -> list[float]:
    values = [*map(application.as_number, prints.get(what, []))]
    if len(values) != count or not all(map(math.isfinite, values)):
        raise WrongAnswerError(f'miniMD printed no fingerprint of the {what}')
    return values


def _hold(what: str, found: Iterable[float], expected: Iterable[float], bound: float) -> None:
    for one, other in zip(found, expected, strict=True):
        if not abs(one - other) <= bound:
            raise WrongAnswerError(
                f'the fingerprint of the {what} of miniMD has {one:.15e}, not {other:.15e}: they '
                f'differ by more than rounding, {bound:.1e}'
            )


def _start(cells: tuple[int, int, int]) -> list[float]:
    """The fingerprint of the start: as in ``replay.hpp``, plane by plane of the lattice."""
    import numpy as np

    half = 0.5 * (_ATOMS_OF_CELL / _DENSITY) ** (1 / 3)
    width, depth, height = (2 * n for n in cells)
    sites = np.arange(width), np.arange(depth)
    i, j = (axis.ravel() for axis in np.meshgrid(*sites, indexing='ij'))
    phases = [_phases(edge, half, d) for d, edge in enumerate((width, depth, height))]
    atoms, total, squares, waves = 0, np.zeros(3), 0.0, np.zeros(2)
    of_speed = np.zeros(3)
    for k in range(height):
        even = (i + j + k) % 2 == 0
        x, y = i[even], j[even]
        speed = _speeds((k * depth + y) * width + x + 1)
        phase = phases[0][x] + phases[1][y] + phases[2][k]
        cosine = np.cos(phase)
        atoms += len(x)
        total += speed.sum(axis=1)
        squares += float((speed**2).sum())
        waves += cosine.sum(), np.sin(phase).sum()
        of_speed += (speed * cosine).sum(axis=1)
    mean = total / atoms
    squares -= atoms * float((mean**2).sum())
    mass_velocity2 = _TEMPERATURE * (3 * atoms - 3)
    scale = math.sqrt(mass_velocity2 / squares)
    of_speed = scale * (of_speed - mean * waves[0])
    return [float(value) for value in (atoms, mass_velocity2, *waves, *of_speed)]


def _phases(sites: int, half: float, direction: int) -> np.ndarray:
    import numpy as np

    turns = math.floor(half * sites / (1 + 0.3 * direction)) + 1
    phases: np.ndarray = 2 * math.pi * turns / sites * np.arange(sites)
    return phases


def _speeds(seeds: np.ndarray) -> np.ndarray:
    """Shape (3, n): the velocities of sites before they are scaled."""
    import numpy as np

    seeds = (seeds - 1) % (_MODULUS - 1) + 1
    later = [pow(_MULTIPLIER, _DRAWN * (d + 1), _MODULUS) for d in range(3)]
    return np.stack([seeds * power % _MODULUS / _MODULUS for power in later])


def _check_windows(output: str, problem: Problem, ranks: int) -> None:
    """Check that every computation of forces and lists was timed."""
    steps: int = problem.facts['steps']
    numbers = range(1, steps + 1)
    timed = {
        'force': [n - 1 for n in numbers if n % _SHOWN_EVERY and n != steps],
        'neighbour': [n - 1 for n in numbers if n % _RENEWED_EVERY == 0],
    }
    interrupted = _INTERRUPTED.search(output)
    if not interrupted:
        raise WrongAnswerError('miniMD did not say how long the force was interrupted')
    # What its windows are without.
    without = {'force': float(interrupted[1]), 'neighbour': 0}
    with_sums = {'force': application.printed_time(output, 'force with sums'), 'neighbour': 0}
    for kernel, of_steps in timed.items():
        count = application.steady_windows(steps, of_steps)
        # Times are the mean of the ranks.
        mean = application.printed_time(output, kernel) - with_sums[kernel]
        application.check_windows(
            output, kernel, count, problem.facts['atoms'], mean - without[kernel], ranks * mean
        )
    if application.tells_bouts(output):
        count = application.steady_windows(steps, timed['force'])
        mean = application.printed_time(output, 'force') - with_sums['force']
        application.check_windows(
            output, 'whole force', count, problem.facts['atoms'], mean, ranks * mean
        )


def _check_operations(output: str) -> None:
    """Check that operations are those of the pairs that were found anew, some steps before."""
    anew = _sums(_fingerprints(output), 'pairs, anew', 4)
    found = _PAIRS.search(output)
    listed, inside = (float(found[name]) if found else 0 for name in ('listed', 'inside'))
    counted = 8 * listed + 18 * inside  # of half lists
    if (
        not found
        or not abs(listed - anew[0]) <= _CHANGE_OF_PAIRS * anew[0]
        or not abs(inside - anew[1]) <= _CHANGE_OF_PAIRS * anew[1]
        or not abs(float(found['operations']) - counted) <= application.SIX_DIGITS * counted
    ):
        said = found[0] if found else 'nothing'
        raise WrongAnswerError(
            f'miniMD says of its pairs: {said!r}, but found {anew[0]:.0f} in reach and '
            f'{anew[1]:.0f} within the cut-off'
        )
    application.check_limit(output, 'force', 1e-9 * counted)


def _rows(output: str) -> list[tuple[str, ...]]:
    return [m.groups() for m in _STATE.finditer(output)]


def _check_summary(
    summary: Mapping[str, float], problem: Problem, ranks: int, threads: int
) -> None:
    asked = {
        'ranks': ranks,
        'threads': threads,
        'steps': problem.facts['steps'],
        'atoms': problem.facts['atoms'],
    }
    for name, value in asked.items():
        if summary[name] != value:
            raise WrongAnswerError(
                f'the performance summary is of {summary[name]:.0f} {name}, not {value}'
            )
    for name in ('total', 'force', 'performance'):
        if summary[name] <= 0:
            raise WrongAnswerError(f'{name} in the performance summary is {summary[name]}')
    rest = summary['total'] - sum(summary[name] for name in _PHASES)
    rate = summary['atoms'] * summary['steps'] / summary['total']
    # Times have six decimals.
    bounds = {'other': (rest, 3e-6), 'performance': (rate, rate * (1e-6 / summary['total'] + 1e-6))}
    for name, (value, bound) in bounds.items():
        if not abs(summary[name] - value) <= bound:
            raise WrongAnswerError(
                f'{name} in the performance summary is {summary[name]}, but {value:.6f} by the rest'
            )


def _figures_of_ours(output: str) -> dict[str, Figure]:
    """Figures that upstream does not print: the fraction of the limit, and the balance of ranks."""
    figures = application.window_figures(output, 'force') | application.limit_figures(output)
    spread = _SPREAD.search(output)
    if 'force_of_limit' not in figures or spread is None:
        raise WrongAnswerError('miniMD printed no limit: its output is not whole')
    mean, most = map(float, spread.groups())
    if application.tells_bouts(output):
        figures.pop('whole_force_rate', None)
        application.check_times(output, {'force': mean, 'force of the slowest': most})
        # Of all windows, over the best without what interrupted it.
        whole = application.window_figures(output, 'whole_force')
        rate = whole['whole_force_rate'].value * whole['whole_force_whole_of_best'].value
        share = rate / figures['force_rate'].value
        figures |= figures_of(MiniMD.measures, {'force_whole_of_best': share})
    if not mean > 0:
        raise WrongAnswerError('the balance of miniMD is no number above zero')
    return figures | figures_of(MiniMD.measures, {'force_imbalance': most / mean})
