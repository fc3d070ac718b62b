"""HPL: a dense linear system by LU factorisation; everybody's HPL writes the same report."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from assay.programs import application
from assay.programs.application import Application, Problem, WrongAnswerError
from assay.programs.figure import Figure, Quantity, figures_of
from assay.programs.linear_system import norms, solve_system

_BYTES = 8  # of an element

# Floating-point operations of all runs of a job together: a second on two cores. One run after the
# other, of which the fastest counts: a small one alone would show every disturbance.
_WORK = 7.5e10
_MOST_RUNS = 20  # upstream's HPL reads so many sizes

# Operations per second of a core that is slow, and seconds that a job may take on such cores. Work
# grows with the memory to the power of 1.5: all memory of 1,000 nodes would take two days. The
# check's limit is 6 hours, in which the system is generated and verified as well.
_SLOW_CORE, _LONGEST = 4e9, 5 * 3600

# Block sizes by the least order they are worth it for: wide ones make DGEMM fast, narrow ones keep
# the panels short beside it.
_BLOCKS = ((8000, 192), (2000, 128), (512, 64), (1, 16))

_INPUT = 'HPL.dat'
_TEMPLATE = """\
HPL: a dense linear system
written by Assay
none         output file
6            device out: standard output
{runs}            problem sizes
{sizes}   N
1            block sizes
{nb}          NB
0            PMAP: row-major
1            process grids
{p}            P
{q}            Q
{threshold}         threshold
1            panel factorisations
2            PFACT: right-looking
1            ends of the recursion
8            NBMIN
1            divisions
2            NDIV
1            recursive panel factorisations
2            RFACT: right-looking
1            broadcasts
1            BCAST: ring, modified
1            depths of look-ahead
1            DEPTH
1            SWAP: long
64           threshold of mixed swapping
1            L1: not transposed
1            U: not transposed
0            equilibration: no
8            alignment
"""

# Of scaled residuals, everybody's.
_THRESHOLD = 16.0

# PMAP, DEPTH, BCAST, RFACT, NDIV, PFACT and NBMIN of the input.
_VARIANT = 'WR11R2R8'

_RUN = re.compile(
    r'^(?P<variant>W[RC]\S+) +(?P<n>\d+) +(?P<nb>\d+) +(?P<p>\d+) +(?P<q>\d+) +\S+ +'
    r'(?P<gflops>\S+)\s*$',
    re.MULTILINE,
)
_RESIDUAL = re.compile(
    r'^\|\|Ax-b\|\|_oo/\(.*\)= *(?P<value>\S+) \.\.\.\.\.\. (?P<word>PASSED|FAILED)', re.MULTILINE
)
_TALLY = re.compile(r'^ +(\d+) tests (completed and passed|completed and failed|skipped)', re.M)
# HPL's own where it is built to time its parts; ours always.
_PHASES = {'rfact': 'panel', 'wait': 'wait', 'update': 'update', 'up tr sv': 'substitution'}
_PHASE = re.compile(
    r'^Max aggregated wall time (?P<key>[a-z ]+?) [. ]*: +(?P<seconds>\S+)$', re.MULTILINE
)
_OURS = re.compile(r'^(?P<key>RANKS|THREADS) *: (?P<value>\d+)', re.MULTILINE)
_FINGERPRINT = re.compile(r'^Fingerprint: (?P<entries>.+)$', re.MULTILINE)
_CLOCK = re.compile(
    r"^Clock(?: of (?P<phase>[a-z ]+))?: (?P<seconds>\S+) s; system's (?P<least>\S+) to "
    r'(?P<most>\S+) s$',
    re.MULTILINE,
)
_WORK_OF = re.compile(
    r'^Work of (?P<kernel>[a-z]+): (?P<operations>\S+) operations in (?P<seconds>\S+) s$',
    re.MULTILINE,
)
_WAYS = re.compile(
    r'^Ways: rank 1 in row (?P<row>\d+) and column (?P<column>\d+); messages of broadcasts'
    r'(?P<messages>( \d+)+)$',
    re.MULTILINE,
)
_PARTS = re.compile(r'^Phases: (?P<seconds>\S+) s$', re.MULTILINE)
_MARKS = {
    *('A_oo', 'A_1', 'A by rows', 'A by columns', 'x_oo', 'x_1', 'b_oo', 'first', 'last'),
    *('Ax-b_oo', 'again', 'multiplier'),
}

# Of scaled residuals of ours: they were 0.003 to 0.024 at orders from 16 to 1500.
_LARGEST_OF_OURS = 0.25

# To here the answer is computed once more; it takes as long as a few runs.
_LARGEST_SOLVED = 1024

# Seconds: MPI's clock may be read in microseconds.
_TICKS = 1e-5
_COMPLAINT = re.compile(r'^(?:>>> (?P<upstream>.+?) <<<|hpl: (?P<ours>.+))$', re.MULTILINE)


@dataclass(frozen=True)
class HplChoice:
    """The values that go into HPL.dat.

    :param n: order of the matrix.
    :param nb: columns of a block; it divides n.
    :param p: rows of the process grid, at most as many as columns.
    :param q: columns of the process grid.
    """

    n: int
    nb: int
    p: int
    q: int


def _largest(matrix_bytes: float, ranks: int) -> HplChoice:
    order = math.isqrt(max(int(matrix_bytes / _BYTES), 0))
    nb = next((block for least, block in _BLOCKS if order >= least), _BLOCKS[-1][1])
    if order < nb:
        raise ValueError(f'HPL needs {_BYTES * nb * nb} bytes at least: one block of order {nb}')
    p = next(rows for rows in range(math.isqrt(ranks), 0, -1) if ranks % rows == 0)
    return HplChoice(n=order // nb * nb, nb=nb, p=p, q=ranks // p)


def operations(n: int) -> float:
    """As HPL counts them."""
    return 2 / 3 * n**3 + 3 / 2 * n**2


class Hpl(Application):
    """High-Performance Linpack."""

    name = 'hpl'
    program = 'hpl'
    rate = 'rate'
    time = 'time'
    headline = 'update_rate'
    measures = {
        'rate': Quantity('Gflop/s', 'higher'),
        'time': Quantity('s', 'lower'),
        **{f'{phase}_time': Quantity('s', 'lower') for phase in _PHASES.values()},
        'factorisation_rate': Quantity('Gflop/s', 'higher'),
        'update_rate': Quantity('Gflop/s', 'higher'),
        'factorisation_whole_of_best': application.WHOLE_OF_BEST,
        'hpl_of_limit': Quantity('1', 'higher'),
    }

    def problem(self, size: float, ranks: int, threads: int) -> Problem:
        in_time = _BYTES * (1.5 * _SLOW_CORE * ranks * threads * _LONGEST) ** (2 / 3)
        choice = _largest(min(size, in_time), ranks)
        runs = min(max(int(_WORK / operations(choice.n)), 1), _MOST_RUNS)
        sizes = ' '.join([str(choice.n)] * runs)
        content = _TEMPLATE.format(
            runs=runs, sizes=sizes, nb=choice.nb, p=choice.p, q=choice.q, threshold=_THRESHOLD
        )
        return Problem(
            arguments=[],
            files={_INPUT: content},
            facts={
                **{'n': choice.n, 'nb': choice.nb, 'p': choice.p, 'q': choice.q, 'runs': runs},
                'variant': _VARIANT,
            },
        )

    def read(
        self, output: str, folder: Path, problem: Problem, ranks: int, threads: int
    ) -> dict[str, Figure]:
        runs = list(_RUN.finditer(output))
        _check_end(output, runs)
        _check_problem(output, runs, problem, ranks, threads)
        _check_residuals(output, runs)

        ours = application.is_ours(output)
        if ours:
            _check_fingerprints(output, problem)
            _check_clocks(output, runs)
            _check_work(output, problem)
            _check_ways(output, problem)
            application.check_limit(output, 'HPL', 1e-9, 'factorisation')

        rates = [_positive(run['gflops'], 'rate') for run in runs]
        fastest = rates.index(max(rates))
        values = {
            'rate': rates[fastest],
            # The printed time has two decimals only.
            'time': operations(int(runs[fastest]['n'])) / rates[fastest] * 1e-9,
        }
        end = runs[fastest + 1].start() if fastest + 1 < len(runs) else len(output)
        for phase in _PHASE.finditer(output, runs[fastest].end(), end):
            if name := _PHASES.get(phase['key']):
                values[f'{name}_time'] = _number(phase['seconds'], f'{name} time')
        figures = figures_of(self.measures, values)
        if ours:
            figures |= application.window_figures(
                output, 'factorisation'
            ) | application.limit_figures(output)
            if 'hpl_of_limit' not in figures:
                raise WrongAnswerError("HPL's output ends before the limit that it measures")
        return figures


def _number(text: str, what: str) -> float:
    value = application.as_number(text)
    if not math.isfinite(value):
        raise WrongAnswerError(f'HPL printed "{text}" as its {what}, which is no number')
    return value


def _positive(text: str, what: str) -> float:
    if (value := _number(text, what)) <= 0:
        raise WrongAnswerError(f'HPL printed {text} as its {what}')
    return value


def _check_end(output: str, runs: list[re.Match[str]]) -> None:
    if complaint := _COMPLAINT.search(output):
        raise WrongAnswerError(f'HPL refused: {complaint["upstream"] or complaint["ours"]}')
    if not re.search(r'^End of Tests\.$', output, re.MULTILINE):
        raise WrongAnswerError('HPL did not get to its end')
    if not runs:
        raise WrongAnswerError('HPL ran no test')


def _check_problem(
    output: str, runs: list[re.Match[str]], problem: Problem, ranks: int, threads: int
) -> None:
    facts = problem.facts
    if len(runs) != facts['runs']:
        raise WrongAnswerError(f'HPL ran {len(runs)} tests instead of {facts["runs"]}')
    for run in runs:
        if run['variant'] != facts['variant']:
            raise WrongAnswerError(f'HPL ran the variant {run["variant"]}, not {facts["variant"]}')
        for key in ('n', 'nb', 'p', 'q'):
            if int(run[key]) != facts[key]:
                raise WrongAnswerError(f'HPL ran {key.upper()} = {run[key]}, not {facts[key]}')
        if int(run['p']) * int(run['q']) != ranks:
            raise WrongAnswerError(f'HPL ran on {run["p"]} x {run["q"]} ranks instead of {ranks}')
    asked = {'RANKS': ranks, 'THREADS': threads}
    told = {found['key']: int(found['value']) for found in _OURS.finditer(output)}
    if application.is_ours(output) and told != asked:
        raise WrongAnswerError(
            f'HPL ran on {told.get("RANKS")} ranks with {told.get("THREADS")} threads each instead '
            f'of {ranks} with {threads}'
        )


def _check_fingerprints(output: str, problem: Problem) -> None:
    """Hold matrix and solution of each test against those that are computed here.

    :raises WrongAnswerError: if one differs by more than rounding explains.
    """
    n, found = problem.facts['n'], list(_FINGERPRINT.finditer(output))
    if len(found) != problem.facts['runs']:
        raise WrongAnswerError('HPL did not print the fingerprint of each test')
    for one, residual in zip(found, _RESIDUAL.finditer(output), strict=True):
        entries = (entry.rpartition(' ') for entry in one['entries'].split('; '))
        said = {key: _number(value, key) for key, _, value in entries}
        if said.keys() != _MARKS:
            raise WrongAnswerError('the fingerprint of HPL is not whole')
        scaled = said['Ax-b_oo'] / (2**-53 * (said['A_oo'] * said['x_oo'] + said['b_oo']) * n)
        if not scaled < _LARGEST_OF_OURS:
            raise WrongAnswerError(f'the scaled residual of HPL is {scaled:g}, and always less')
        # Of rows of which the greatest was the pivot; it is divided by in one rounding or two.
        if not 0 < said['multiplier'] <= 1 + 2**-51:
            raise WrongAnswerError(
                f'HPL took a pivot that is not the greatest: a multiplier is {said["multiplier"]:g}'
            )
        _compare(said, {'again': said['Ax-b_oo']}, 0)
        _compare({'scaled residual': float(residual['value'])}, {'scaled residual': scaled}, 1e-7)
        exact, sums = norms(n)
        _compare(said, exact, 0)
        # A sum of n numbers is right to n roundings, in any order.
        _compare(said, sums, n * 2**-52)
        if n <= _LARGEST_SOLVED:
            x = solve_system(n)
            # |x - x'| <= |A^-1| |A (x - x')|, and what x' here differs by is far smaller.
            near = x.of_inverse * (said['Ax-b_oo'] + n * 2**-52 * x.greatest)
            _compare(said, {'x_oo': x.greatest}, near / x.greatest)
            _compare(said, {'x_1': x.sum}, n * near / x.sum)


def _compare(said: Mapping[str, float], expected: Mapping[str, float], relative: float) -> None:
    for key, value in expected.items():
        if not abs(said[key] - value) <= relative * abs(value):
            raise WrongAnswerError(f'HPL has {key} = {said[key]:.17g}, which is {value:.17g}')


def _check_clocks(output: str, runs: list[re.Match[str]]) -> None:
    """Hold the times of each test against the system's clock, and the rate against the time."""
    ends = [*(run.start() for run in runs[1:]), len(output)]
    for run, end in zip(runs, ends, strict=True):
        clocks = {clock['phase']: clock for clock in _CLOCK.finditer(output, run.end(), end)}
        parts = _PARTS.search(output, run.end(), end)
        if clocks.keys() != {None, *_PHASES} or not parts:
            raise WrongAnswerError('HPL did not print the clocks of each test')
        whole = _confirmed('all', clocks.pop(None))
        phases = {phase: _confirmed(phase, clock) for phase, clock in clocks.items()}
        for phase in _PHASE.finditer(output, run.end(), end):
            key, printed = phase['key'], _number(phase['seconds'], 'time')
            if key != 'wait' and phases.get(key) == 0:
                raise WrongAnswerError(f'{key} of HPL was not timed')
            if not abs(printed - phases.get(key, math.nan)) <= 1e-6:
                raise WrongAnswerError(f'HPL prints {printed:g} s for {key}, and another time too')
        in_phases = _number(parts['seconds'], 'time of its phases')
        if (
            not max(phases.values()) - 1e-9
            <= in_phases
            <= whole * (1 + application.CLOCK_RATE) + _TICKS
        ):
            raise WrongAnswerError(f'the phases of HPL took {in_phases:g} of {whole:g} s')
        rate = operations(int(run['n'])) * 1e-9 / whole
        # Five digits are printed.
        if not abs(_positive(run['gflops'], 'rate') - rate) <= 1e-4 * rate + 1e-9 / whole:
            raise WrongAnswerError(f'HPL printed {run["gflops"]} Gflop/s, which was {rate:g}')


def _check_ways(output: str, problem: Problem) -> None:
    """Check that rows of the grid are filled first, and that panels went round a modified ring."""
    n, nb, p, q, runs = (problem.facts[key] for key in ('n', 'nb', 'p', 'q', 'runs'))
    found = list(_WAYS.finditer(output))
    if not found:  # of older programs
        return
    place = divmod(min(1, p * q - 1), q)
    # The root sends to two; to its right, the first one sends to nobody, others to the next.
    receivers = [min(2, q - 1), 0, *([1] * (q - 3)), 0][:q]
    expected = [p * n // nb * count for count in receivers]
    for ways in found:
        if (int(ways['row']), int(ways['column'])) != place:
            raise WrongAnswerError(
                f'rank 1 of HPL is in row {ways["row"]} and column {ways["column"]}, not in '
                f'{place[0]} and {place[1]}'
            )
        messages = [int(number) for number in ways['messages'].split()]
        if messages != expected:
            raise WrongAnswerError(
                f'the broadcasts of HPL sent {messages} messages, by the way from the root, not '
                f'{expected}'
            )
    if len(found) != runs:
        raise WrongAnswerError('HPL did not print the ways of each test')


def _check_work(output: str, problem: Problem) -> None:
    """Check that windows are the steps of the first half, with their operations and times."""
    n, nb, runs = (problem.facts[key] for key in ('n', 'nb', 'runs'))
    steps = [first for first in range(0, n, nb) if first == 0 or first + nb <= n // 2]
    rests = [n - first - nb for first in steps]
    expected = {
        'factorisation': sum(2 / 3 * ((rest + nb) ** 3 - rest**3) for rest in rests),
        'update': sum(2 * nb * rest**2 + nb**2 * rest for rest in rests),
    }
    told = {found['kernel']: found for found in _WORK_OF.finditer(output)}
    if application.tells_bouts(output) and told.keys() != expected.keys():
        raise WrongAnswerError(
            f'HPL printed the work of {" and ".join(told) or "no windows"} alone'
        )
    for kernel, found in told.items():
        operations = _number(found['operations'], 'operations')
        _compare({kernel: operations}, {kernel: runs * expected[kernel]}, 1e-9)
        application.check_times(output, {f'windows of {kernel}': _number(found['seconds'], 'time')})


def _confirmed(what: str, clock: re.Match[str]) -> float:
    """Seconds that both clocks tell."""
    seconds, least, most = (_number(clock[key], 'time') for key in ('seconds', 'least', 'most'))
    if not application.is_of_both_clocks(seconds, least, most, _TICKS):
        raise WrongAnswerError(
            f"{what} of HPL took {seconds:g} s, but {least:g} to {most:g} s by the system's clock"
        )
    return seconds


def _check_residuals(output: str, runs: list[re.Match[str]]) -> None:
    if 'tests completed without checking' in output:
        raise WrongAnswerError('HPL did not check its answer: the threshold is not positive')
    residuals = list(_RESIDUAL.finditer(output))
    for residual in residuals:
        if residual['word'] != 'PASSED':
            raise WrongAnswerError(
                f'HPL solved the system wrong: its scaled residual is {residual["value"]}'
            )
        # HPL compares with the threshold of its input file.
        if not 0 <= _number(residual['value'], 'scaled residual') < _THRESHOLD:
            raise WrongAnswerError(
                f'HPL let the scaled residual {residual["value"]} pass, which is not below '
                f'{_THRESHOLD:g}'
            )
    tally = {kind: int(count) for count, kind in _TALLY.findall(output)}
    expected = {'completed and passed': len(runs), 'completed and failed': 0, 'skipped': 0}
    if len(residuals) != len(runs) or tally != expected:
        raise WrongAnswerError(
            f'HPL ran {len(runs)} tests, of which {tally.get("completed and passed", 0)} passed'
        )
