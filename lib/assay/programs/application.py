"""Applications: the problem of a size, and what their output says.

An application is the same problem from whoever built it: our own sources, upstream, or a binary of
a vendor. One class reads them all.
"""

from __future__ import annotations

import itertools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from assay.programs.figure import Figure, Quantity

# Written by print_limit of sources/common/application.hpp.
_LIMIT = re.compile(
    r'^Limit of (?P<kernel>[\w ]+): (?P<name>[\w -]+) (?P<limit>\S+) \S+; '
    r'achieved (?P<achieved>\S+) (?P<unit>\S+); fraction (?P<fraction>\S+)$',
    re.MULTILINE,
)

# Written by print_windows of the same file.
_WINDOWS = re.compile(
    r'Windows of (?P<kernel>[\w ]+): (?P<count>[1-9]\d*)'
    r'(?: of (?P<calls>[1-9]\d*) calls, (?P<runs>\d+) in all)?; '
    r'best (?P<rate>\S+) (?P<unit>[^\s;]+) of (?P<seconds>\S+) s; '
    r'whole of best (?P<share>[^\s;]+); all (?P<all>\S+) s(?:, fresh (?P<fresh>\S+) s)?; '
    r'(?P<shorter>\d+) shorter, (?P<equal>\d+) equal'
)

# Written by print_limit of the same file.
_BOUTS = re.compile(
    r'^Bouts of (?P<kernel>[\w ]+): (?P<bouts>[^;]+); between (?P<slices>[^;]+); '
    r'no less than (?P<least>.+)$',
    re.MULTILINE,
)
_BOUT = re.compile(r'(\S+) in (\d+)')
# Of programs before that nothing of this kind was printed, as some golden jobs are: a program that
# prints any of it prints all.
_TELLS_BOUTS = re.compile(
    r'^(Bouts|Work) of |^Windows of .*, fresh |^Last residual: |'
    r'^Time of the (iterations|force of the slowest): ',
    re.MULTILINE,
)

# Written by print_time of the same file.
_TIME = re.compile(
    r"^Time of the (?P<what>[\w ]+): (?P<seconds>\S+) s; by the system's clock "
    r'(?P<least>\S+) to (?P<most>\S+)$',
    re.MULTILINE,
)

#: How much of what it gives when it is let a program got as a rule: 1 without any jitter.
WHOLE_OF_BEST = Quantity('1', 'higher')

#: What names of figures end with of kernels that a control was measured beside.
OF_CONTROL = '_of_control'

# How much faster one clock of a machine may run than another: where the network sets the system's
# it is slewed by up to 5e-4, which a counter of cycles is not, and that is calibrated to some 1e-4.
CLOCK_RATE = 7e-4
# Of the loops of programs of ours: see Bouts in the same file.
_MOST_BOUTS, _FEWEST_WINDOWS = 10, 5
# Of the best slice of a control: one that had less was interrupted all its time, which is shorter
# than a bout's. A neighbour on the other hardware thread left 0.67 and more (measurements.md).
_LEAST_SLICE = 0.6

# The last digit of a time that is printed.
_LAST_DIGIT = 2e-6
#: Relative, of a number that is printed in six digits.
SIX_DIGITS = 1e-5


class WrongAnswerError(ValueError):
    """The application ran, and what it printed is not the answer to what was asked."""


@dataclass(frozen=True)
class Problem:
    """The problem that a job is to compute.

    :param arguments: of the command line.
    :param files: input files of the job's folder: content by name.
    :param facts: what the output must say again, such as the mesh or the number of atoms.
    """

    arguments: list[str]
    files: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


class Application(ABC):
    """A program with a problem, an answer and phases that take time."""

    #: Its folder in ``sources``, and its package in Spack.
    name: str
    #: The file name of the executable, ours and upstream's.
    program: str
    #: The figures that a run may have, by names.
    measures: Mapping[str, Quantity]
    #: Of the figures, the rate that sizes and numbers of ranks are compared by.
    rate: str
    #: Of the figures, the time of the whole that implementations are compared by.
    time: str
    #: Of the figures, the one that people ask for first.
    headline: str
    #: Patterns of the names of files that it leaves beside its output, and that are read.
    leaves: tuple[str, ...] = ()

    @abstractmethod
    def problem(self, size: float, ranks: int, threads: int) -> Problem:
        """The largest problem whose working set is at most ``size`` bytes, over all ranks.

        :raises ValueError: if not even the smallest problem is that small.
        """

    @abstractmethod
    def read(
        self, output: str, folder: Path, problem: Problem, ranks: int, threads: int
    ) -> dict[str, Figure]:
        """The figures of a run: every phase's time and rate, and fractions of limits.

        :param output: standard output and error of the job.
        :param folder: the job's folder, where applications leave files.
        :raises WrongAnswerError: with one sentence, if the output is not whole, another problem or
            number of ranks was run, or the application's own check failed.
        """


def is_ours(output: str) -> bool:
    """Whether an application of ours wrote an output."""
    return 'Implementation: assay' in output


def tells_bouts(output: str) -> bool:
    """Whether an application of ours tells what its windows and limits are made of."""
    return bool(_TELLS_BOUTS.search(output))


def limit_figures(output: str) -> dict[str, Figure]:
    """Fractions of what an application of ours measured beside its kernels in the same job.

    Empty for other implementations. Names are ``<kernel>_of_limit``, and of kernels in caches
    ``<kernel>_of_control``: what they are held against there is no limit. It is the upper quartile
    of bouts, not their median: they have different copies of the data, and some lie badly. Bouts
    between slices of the control that others interrupted throughout are left out.

    :raises WrongAnswerError: if one is no number above zero, or has no bouts.
    """
    figures, bouts = {}, {line['kernel']: line for line in _BOUTS.finditer(output)}
    for found in _LIMIT.finditer(output):
        name, fraction = '_of_limit', _above_zero(found, 'fraction')
        if found['name'] == 'control':
            if found['kernel'] not in bouts:
                raise WrongAnswerError(f'no bouts of {found["kernel"]} were printed')
            fractions = _Bouts(bouts[found['kernel']]).of_control
            name, fraction = OF_CONTROL, fractions[-1 - len(fractions) // 4]
        figures[f'{_name(found["kernel"])}{name}'] = Figure(fraction, '1', 'higher')
    return figures


def window_figures(output: str, main: str) -> dict[str, Figure]:
    """Rates in the best windows of kernels, which an application of ours times one by one.

    Names are ``<kernel>_rate``, and ``<kernel>_whole_of_best`` for the main one: how much of its
    best rate its windows had on average, 1 if nothing disturbed it.

    :param main: the kernel that has both.
    :raises WrongAnswerError: if the main one was not timed, or one is no number above zero.
    """
    figures, has_bouts = {}, tells_bouts(output)
    for kernel, found in _windows(output).items():
        _check_best_window(found)
        if has_bouts:
            _check_mean(found)
        rate = Figure(_above_zero(found, 'rate'), found['unit'], 'higher')
        figures[f'{_name(kernel)}_rate'] = rate
        if _name(kernel) == main:
            share = _above_zero(found, 'share')
            figures[f'{main}_whole_of_best'] = Figure(share, '1', 'higher')
    if f'{main}_rate' not in figures:
        raise WrongAnswerError(f'no windows of {main} were timed')
    return figures


def _windows(output: str) -> dict[str, re.Match[str]]:
    """The lines on windows that an application of ours printed, by kernel.

    :raises WrongAnswerError: if a line of them is not whole.
    """
    found = {}
    for line in output.splitlines():
        if line.startswith('Windows of '):
            if not (match := _WINDOWS.fullmatch(line)):
                raise WrongAnswerError(f'a line of windows is not whole: {line!r}')
            found[match['kernel']] = match
    return found


def _check_best_window(found: re.Match[str]) -> None:
    """The best is the first decile, by its nearest rank."""
    rank = (int(found['count']) + 9) // 10
    shorter, equal = int(found['shorter']), int(found['equal'])
    if not shorter < rank <= shorter + equal:
        raise WrongAnswerError(
            f'of {found["count"]} windows of {found["kernel"]} {shorter} are shorter than the best '
            f'and {equal} as long, which is not number {rank}'
        )


def _check_mean(found: re.Match[str]) -> None:
    """Check that the mean is that of all windows, including those that begin a bout."""
    if found['fresh'] is None:
        raise WrongAnswerError(f'how long fresh windows of {found["kernel"]} took was not printed')
    whole, fresh = _above_zero(found, 'all'), float(found['fresh'])
    steady = int(found['count']) * _above_zero(found, 'seconds') / _above_zero(found, 'share')
    if not abs(steady + fresh - whole) <= 3 * SIX_DIGITS * whole:
        raise WrongAnswerError(
            f'the windows of {found["kernel"]} took {steady + fresh:.7g} s by their mean, and '
            f'{whole} s in all'
        )


class _Bouts:
    """The bouts of a kernel's windows, and the slices of its limit around them.

    :raises WrongAnswerError: if the line of them is not whole.
    """

    slices: list[float]
    #: What was done in the time of each slice by another clock, at least.
    least: list[float]
    #: Of all bouts.
    windows: int
    #: What each bout had of the faster slice beside it, ascending; without bouts of few windows.
    fractions: list[float]
    #: Those of them whose faster slice was not interrupted throughout.
    of_control: list[float]

    def __init__(self, line: re.Match[str]) -> None:
        broken = WrongAnswerError(f'the line of bouts is not whole: {line[0]!r}')
        try:
            bouts = [(float(rate), int(count)) for rate, count in _BOUT.findall(line['bouts'])]
            self.slices, self.least = (
                [*map(float, line[name].split())] for name in ('slices', 'least')
            )
        except ValueError:
            raise broken from None
        is_whole = 1 < len(bouts) + 1 == len(self.slices) == len(self.least)
        if not is_whole or not all(one > 0 for one in self.slices):
            raise broken
        counts = [count for _, count in bouts]
        self.windows = sum(counts)
        fewest = max(min(max(counts), _FEWEST_WINDOWS), 1)
        pairs = [
            (rate / max(around), max(around))
            for (rate, count), around in zip(bouts, itertools.pairwise(self.slices), strict=True)
            if count >= fewest
        ]
        self.fractions = sorted(fraction for fraction, _ in pairs)
        least = _LEAST_SLICE * max((slice_ for _, slice_ in pairs), default=0.0)
        self.of_control = sorted(fraction for fraction, slice_ in pairs if slice_ >= least)
        if not self.fractions or not all(one > 0 for one in self.fractions):
            raise broken


def check_limit(output: str, kernel: str, work: float, windows: str = '') -> None:
    """Check that a limit of a program of ours is its best slice, and the fraction that of bouts.

    :param work: of a window over all ranks, in the unit of the rate times seconds.
    :param windows: the kernel whose windows they are, where it has another name.
    :raises WrongAnswerError: if not.
    """
    limit = next((m for m in _LIMIT.finditer(output) if m['kernel'] == kernel), None)
    if limit is None or not tells_bouts(output):  # whoever asks for the fraction says so
        return
    line = next((m for m in _BOUTS.finditer(output) if m['kernel'] == kernel), None)
    window = _windows(output).get(windows or kernel)
    if not (line and window):
        raise WrongAnswerError(f'no bouts of {kernel} were printed, or no windows')
    bouts = _Bouts(line)
    # What was done in longer times than the limit's, by another clock.
    if any(
        not slice_ >= low * (1 - CLOCK_RATE - SIX_DIGITS)
        for slice_, low in zip(bouts.slices, bouts.least, strict=True)
    ):
        raise WrongAnswerError(f'a limit of {kernel} is less than what was done: {line[0]}')
    if bouts.windows != int(window['count']):
        raise WrongAnswerError(f'the bouts of {kernel} do not have its {window["count"]} windows')
    expected = {
        'achieved': work / _above_zero(window, 'seconds'),
        'limit': max(bouts.slices),
        'fraction': bouts.fractions[len(bouts.fractions) // 2],
    }
    for name, value in expected.items():
        if not abs(float(limit[name]) - value) <= 3 * SIX_DIGITS * value:
            raise WrongAnswerError(f'{limit[0]!r}, but the {name} is {value:.7g} by the rest')


def check_windows(
    output: str, kernel: str, count: int, work: float, least: float, most: float
) -> None:
    """Check that a kernel of a program of ours was timed in every window of its loop.

    :param work: of a window over all ranks, in the unit of the rate times seconds.
    :param least: seconds of all windows together, as is ``most``, by the times of the same kernel:
        as long as the ranks took on average, or one after the other.
    :raises WrongAnswerError: if something else was printed.
    """
    found = _windows(output).get(kernel)
    if count != (int(found['count']) if found else 0):
        said = found['count'] if found else 'no'
        raise WrongAnswerError(f'{said} windows of {kernel} were timed, not {count}')
    if found is None:
        return
    done = _above_zero(found, 'rate') * _above_zero(found, 'seconds')
    if not abs(done - work) <= SIX_DIGITS * work:
        raise WrongAnswerError(f'a window of {kernel} does {done:.7g}, which is {work:.7g}')
    seconds, slack = _above_zero(found, 'all'), _LAST_DIGIT + SIX_DIGITS * most
    if not least - slack <= seconds <= most + slack:
        raise WrongAnswerError(
            f'the windows of {kernel} took {seconds} s, but the kernel {least:.6g} to {most:.6g} s'
        )


class WorkInCaches(NamedTuple):
    """The work of one call of a kernel in caches.

    :param work: on all ranks, in the unit of the rate times seconds.
    :param operations: of floating-point numbers on one rank, in 1e9.
    """

    work: float
    operations: float


def check_in_caches(output: str, works: Mapping[str, WorkInCaches]) -> None:
    """Check that kernels in caches did the counted work, in the time that passed.

    :param works: by the kernel.
    :raises WrongAnswerError: if one did not.
    """
    windows_of, has_control = _windows(output), tells_bouts(output)
    controlled = {found['kernel'] for found in _LIMIT.finditer(output)}
    for kernel, (work_of_call, operations) in works.items():
        found = windows_of.get(kernel)
        if found is None or found['calls'] is None:
            raise WrongAnswerError(f'no windows of calls of {kernel} were timed')
        seconds, work = _above_zero(found, 'seconds'), int(found['calls']) * work_of_call
        done = _above_zero(found, 'rate') * seconds
        if not abs(done - work) <= SIX_DIGITS * work:
            raise WrongAnswerError(f'a window of {kernel} does {done:.7g}, which is {work:.7g}')
        # Fresh windows are none of those that count.
        windows, rest = divmod(int(found['runs']), int(found['calls']))
        expected = steady_windows(windows, range(windows)) if has_control else windows
        if rest or expected != int(found['count']):
            raise WrongAnswerError(
                f'{kernel} ran {found["runs"]} times, {found["calls"]} times a window, and has '
                f'{found["count"]} windows'
            )
        if has_control and kernel not in controlled:
            raise WrongAnswerError(f'no control was measured beside {kernel}')
        check_limit(output, kernel, operations * int(found['calls']))
        check_times(output, {kernel: _above_zero(found, 'all')})


def steady_windows(steps: int, numbers: Iterable[int]) -> int:
    """How many windows in these steps, which are counted from 0, begin no bout; all if all do."""
    numbers = list(numbers)
    bout = steps_of_bout(steps)
    return sum(number % bout != 0 for number in numbers) or len(numbers)


def printed_time(output: str, what: str) -> float:
    """The seconds that a program of ours printed beside a second clock's.

    :raises WrongAnswerError: if it printed none.
    """
    for found in _TIME.finditer(output):
        if found['what'] == what:
            return float(found['seconds'])
    raise WrongAnswerError(f"no time of the {what} by the system's clock was printed")


def steps_of_bout(steps: int) -> int:
    """How many steps a bout of a loop of ours has: before each of them the limit is measured."""
    return max(-(-steps // _MOST_BOUTS), _FEWEST_WINDOWS)


def is_of_both_clocks(seconds: float, least: float, most: float, step: float) -> bool:
    """Whether a time is what a second clock says, read just before and just after the first.

    :param least: seconds by the second clock, as is ``most``.
    :param step: seconds that a reading may be off by.
    """
    slack = step + CLOCK_RATE * most
    return least - slack <= seconds <= most + slack


def check_times(output: str, reported: Mapping[str, float]) -> None:
    """Check times of a program of ours against a second clock.

    The system's clock is read just before and just after MPI's, so that it holds on any machine,
    however busy: a time that was scaled, or left something out, is not between its bounds.

    :param reported: seconds by what they are of.
    :raises WrongAnswerError: if one is not, or was not printed.
    """
    measured = {found['what']: found for found in _TIME.finditer(output)}
    for what, seconds in reported.items():
        if what not in measured:
            raise WrongAnswerError(f"no time of the {what} by the system's clock was printed")
        found = measured[what]
        timed, least, most = (float(found[name]) for name in ('seconds', 'least', 'most'))
        # So written that no number is wrong.
        if not (least <= most and is_of_both_clocks(seconds, least, most, _LAST_DIGIT)):
            raise WrongAnswerError(
                f"the time of the {what} is {seconds} s, but {least} to {most} s by the system's "
                'clock'
            )
        if not abs(seconds - timed) <= _LAST_DIGIT + SIX_DIGITS * timed:
            raise WrongAnswerError(f'the time of the {what} is {seconds} s, and {timed} s as well')


def _name(kernel: str) -> str:
    return kernel.lower().replace(' ', '_')


def as_number(word: str | None) -> float:
    """A number that a program printed; NaN, which is within no bounds, if it is none."""
    try:
        return float(word or '')
    except ValueError:
        return math.nan


def check_once(program: str, count: int, what: str) -> None:
    """Check that one program ran, and came to where it prints something once.

    :param what: that it prints there so many times.
    :raises WrongAnswerError: if not.
    """
    if count > 1:
        raise WrongAnswerError(
            f'{count} {program} ran beside each other: were they started by the launcher of '
            'another MPI?'
        )
    if count == 0:
        raise WrongAnswerError(f'{program} printed no {what}: its output is not whole')


def _above_zero(found: re.Match[str], group: str) -> float:
    value = as_number(found[group])
    if not 0 < value < math.inf:
        raise WrongAnswerError(f'a figure that is no number above zero: {found[0]!r}')
    return value
