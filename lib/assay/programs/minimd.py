"""miniMD: molecular dynamics with short-range forces; ours and upstream's write the same report."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

from assay.programs.application import (
    Application,
    Problem,
    WrongAnswerError,
    limit_figures,
    window_figures,
)
from assay.programs.figure import Figure

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

# Of this problem, whatever its size: of the lattice and of the velocities made for it.
_FIRST_TEMPERATURE = 1.44
_FIRST_ENERGY = -6.773368
# Energy per atom that the cut-off without a shift takes or gives: 0.01 in hundreds of steps. Ours
# is held to a sharper bound by itself.
_MOST_DRIFT = 0.05

# Of the performance summary.
_COLUMNS = (
    *('ranks', 'threads', 'steps', 'atoms'),
    *('total', 'force', 'neighbour', 'communication', 'other'),
    *('performance', 'performance of a thread'),
)

_SETTING = re.compile(r'^\t# (?P<name>[\w ]+): (?P<value>.*?)\s*$', re.MULTILINE)
_CELLS = re.compile(r'\(unit cells: (\d+) (\d+) (\d+)\)')
_STATE = re.compile(r'^(\d+) (\S+) (\S+) (\S+) +(\d+\.\d+)$', re.MULTILINE)
_SUMMARY = re.compile(r'^(?P<values>.*) PERF_SUMMARY (?P<extra>\S+)$', re.MULTILINE)
_SPREAD = re.compile(r'^# Force time of ranks: least \S+ mean (\S+) most (\S+)$', re.MULTILINE)
_VERDICT = re.compile(r'^\t# (?P<oracle>.+): (?P<word>PASSED|FAILED)$', re.MULTILINE)


class MiniMD(Application):
    """The Lennard-Jones benchmark with half neighbour lists."""

    name = 'minimd'
    program = 'minimd'
    rate = 'performance'
    time = 'total_time'
    headline = 'force_rate'

    def problem(self, size: float, ranks: int, threads: int) -> Problem:
        """The same box for any number of ranks: strong scaling is a question of ``ranks`` only."""
        cells = _box(size / (_BYTES_OF_ATOM * _ATOMS_OF_CELL))
        atoms = _ATOMS_OF_CELL * math.prod(cells)
        steps = min(max(round(_WORK / atoms / 100) * 100, _FEWEST_STEPS), _MOST_STEPS)
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

        phases = ('total', 'force', 'neighbour', 'communication', 'other')
        figures = {f'{name}_time': Figure(summary[name], 's', 'lower') for name in phases}
        figures['performance'] = Figure(summary['performance'], 'atom-steps/s', 'higher')
        work = summary['atoms'] * summary['steps']
        figures['force_rate'] = Figure(work / summary['force'], 'atom-steps/s', 'higher')
        if _ours(output):
            figures |= _figures_of_ours(output)
        return figures


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


def _ours(output: str) -> bool:
    return 'Implementation: assay' in output


def _check_verdict(output: str) -> None:
    """Of ours; upstream has none. First, as a run that failed may lack anything else."""
    failed = [m['oracle'] for m in _VERDICT.finditer(output) if m['word'] == 'FAILED']
    if failed:
        raise WrongAnswerError(f"miniMD's own check failed: {failed[0]}")
    if _ours(output) and '\t# All: PASSED' not in output:
        raise WrongAnswerError('miniMD printed no verdict: its output is not whole')


def _summary(output: str) -> dict[str, float]:
    """The performance summary, by the names of its columns."""
    found = list(_SUMMARY.finditer(output))
    if not found:
        raise WrongAnswerError('miniMD printed no performance summary: its output is not whole')
    if len(found) > 1:
        raise WrongAnswerError(
            f'{len(found)} miniMD ran beside each other: were they started by the launcher of '
            'another MPI?'
        )
    try:
        values = [float(word) for word in found[0]['values'].split()]
    except ValueError:
        values = []
    if len(values) != len(_COLUMNS) or not all(map(math.isfinite, values)):
        raise WrongAnswerError(f'not a performance summary: {found[0].group()!r}')
    return dict(zip(_COLUMNS, values, strict=True))


def _check_settings(output: str, problem: Problem, ranks: int, threads: int) -> None:
    settings = {m['name']: m['value'] for m in _SETTING.finditer(output)}
    cells = _CELLS.search(settings.get('System size', ''))
    said = {
        'MPI processes': settings.get('MPI processes'),
        # Ours adds the least where ranks have different numbers.
        'OpenMP threads': settings.get('OpenMP threads', '').split(' ')[0],
        'ForceStyle': settings.get('ForceStyle'),
        'Atoms': settings.get('Atoms'),
        'unit cells': cells and tuple(map(int, cells.groups())),
        'Half neighborlists': settings.get('Half neighborlists'),
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
        if said[name] != value:
            raise WrongAnswerError(f'miniMD ran with {name}: {said[name]}, not {value}')


def _check_states(output: str, problem: Problem) -> None:
    """The table of steps, temperatures, energies and pressures."""
    try:
        states = [(int(s), float(t), float(u), float(p)) for s, t, u, p, _ in _rows(output)]
    except ValueError:
        raise WrongAnswerError('a state in the table of miniMD is no number') from None
    if not states or states[0][0] != 0:
        raise WrongAnswerError('the table of miniMD lacks its first state')
    if states[-1][0] != problem.facts['steps']:
        raise WrongAnswerError(f'miniMD ended at step {states[-1][0]} of {problem.facts["steps"]}')
    if not all(math.isfinite(value) for state in states for value in state):
        raise WrongAnswerError('a state in the table of miniMD is not finite')
    _, temperature, energy, _ = states[0]
    if abs(temperature - _FIRST_TEMPERATURE) > 2e-6 or abs(energy - _FIRST_ENERGY) > 2e-6:
        raise WrongAnswerError(
            f'miniMD starts at temperature {temperature} and energy {energy}, not at '
            f'{_FIRST_TEMPERATURE} and {_FIRST_ENERGY}'
        )
    # What the total momentum takes from the degrees of freedom.
    freedom = 1.5 * (1 - 1 / problem.facts['atoms'])
    totals = [freedom * t + u for _, t, u, _ in states]
    drift = max(abs(total - totals[0]) for total in totals)
    if drift > _MOST_DRIFT:
        raise WrongAnswerError(
            f'the energy of miniMD drifts by {drift:.3g} per atom, more than {_MOST_DRIFT}'
        )


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


def _figures_of_ours(output: str) -> dict[str, Figure]:
    """What upstream does not print: the fraction of the limit, and the balance of ranks."""
    figures = window_figures(output, 'force') | limit_figures(output)
    spread = _SPREAD.search(output)
    if 'force_of_limit' not in figures or spread is None:
        raise WrongAnswerError('miniMD printed no limit: its output is not whole')
    mean, most = map(float, spread.groups())
    if not mean > 0:
        raise WrongAnswerError('the balance of miniMD is no number above zero')
    figures['force_imbalance'] = Figure(most / mean, '1', 'lower')
    return figures
