"""Which places of a program called MPI, as lines of its source, and which of them became slower.

The report has a site as the build id of an object file and an offset in it. Its function and line
are looked up when the job has ended, by ``addr2line``, which every compiler has beside it.
"""

from __future__ import annotations

import re
import shutil
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from assay.tools import output_of_tool
from assay.witness.report import Lines, Report, Site

#: Of binutils, elfutils and LLVM: they take the same options, and say the same.
TOOLS = ('addr2line', 'eu-addr2line', 'llvm-addr2line')
#: Seconds that one object file may take: debug information can be gigabytes.
PATIENCE = 120


@dataclass
class SiteSummary:
    """One place that called MPI, over all ranks. Times in seconds, of all of them.

    :param function: and ``file`` and ``line``: empty and 0 if unknown.
    :param computed: what the program took before these calls, since it last returned from MPI.
    :param waiting: time spent waiting for other ranks, and ``waited_for`` for which rank how much.
    :param ranks: that called from here, each with its time.
    """

    call: str
    phase: int
    object: str
    build_id: str
    offset: str
    function: str = ''
    file: str = ''
    line: int = 0
    count: int = 0
    time: float = 0.0
    computed: float = 0.0
    bytes: int = 0
    waiting: float = 0.0
    waited_for: dict[int, float] = field(default_factory=dict)
    ranks: dict[int, float] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """``exchange (comm.cpp:123)``, or what is known of it."""
        place = f'{Path(self.object).name or "?"}+{self.offset}'
        if self.line:
            place = f'{Path(self.file).name}:{self.line}'
        return f'{self.function} ({place})' if self.function else place

    @property
    def transfer(self) -> float:
        """Time in the calls that was not spent waiting."""
        return max(0.0, self.time - self.waiting)

    @property
    def whom(self) -> int | None:
        """The rank that was waited for longest, if that is a tenth of the waiting or more."""
        if not self.waited_for:
            return None
        rank, time = min(self.waited_for.items(), key=lambda one: (-one[1], one[0]))
        return rank if time >= 0.1 * self.waiting > 0 else None


def key_of(build_id: str, path: str) -> str:
    """The key of an object file's lines."""
    return build_id or path


def summarise_sites(report: Report, phases: bool = False) -> list[SiteSummary]:
    """All places that called MPI, those that took longest first.

    :param phases: whether the phases of the program are kept apart.
    """
    found: dict[tuple[object, ...], SiteSummary] = {}
    for process in report.processes:
        for part in process.sites:
            key = key_of(part.build_id, part.object)
            for site in part.calls:
                phase = site.phase if phases else 0
                function, file, line = report.lines.get(key, {}).get(site.offset, ('', '', 0))
                # Compilers make several calls of one line.
                where = (file, line) if line else site.offset
                place = (key, where, site.call, phase)
                if place not in found:
                    found[place] = SiteSummary(
                        *(site.call, phase, part.object, part.build_id, site.offset),
                        *(function, file, line),
                    )
                _add(found[place], site, process.rank)
    return sorted(found.values(), key=lambda one: (-one.time, one.call, one.where))


def _add(to: SiteSummary, site: Site, rank: int) -> None:
    to.count += site.count
    to.time += site.time
    to.computed += site.computed or 0.0
    to.bytes += site.bytes
    to.ranks[rank] = to.ranks.get(rank, 0.0) + site.time
    wait = site.waits
    if wait is None or wait.analysed <= 0:
        return
    # What was analysed stands for all of its time.
    scale = site.time / wait.analysed
    to.waiting += scale * (wait.late_sender + wait.late_receiver + wait.imbalance)
    if wait.for_rank is not None:
        known = to.waited_for.get(wait.for_rank, 0.0)
        to.waited_for[wait.for_rank] = known + scale * wait.for_time


# Phases -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PhaseSummary:
    """A phase of the program: its wall time is that of the rank where it was longest.

    Shares are of the wall times of all ranks in it.
    """

    phase: int
    begun: int
    wall: float
    in_mpi: float
    waiting: float


def summarise_phases(report: Report) -> list[PhaseSummary]:
    """The phases that the program began by ``MPI_Pcontrol``, by their numbers."""
    walls: defaultdict[int, list[float]] = defaultdict(list)
    begun: Counter[int] = Counter()
    for process in report.processes:
        for one in process.phases:
            walls[one.phase].append(one.wall)
            begun[one.phase] = max(begun[one.phase], one.begun)
    times: defaultdict[int, float] = defaultdict(float)
    waits: defaultdict[int, float] = defaultdict(float)
    for site in summarise_sites(report, phases=True):
        times[site.phase] += site.time
        waits[site.phase] += site.waiting
    return [
        PhaseSummary(
            phase,
            begun[phase],
            max(walls[phase]),
            times[phase] / sum(walls[phase]) if sum(walls[phase]) > 0 else 0.0,
            waits[phase] / sum(walls[phase]) if sum(walls[phase]) > 0 else 0.0,
        )
        for phase in sorted(walls)
    ]


# Two reports --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SiteChange:
    """A place in two jobs; None where one of them did not call from it."""

    before: SiteSummary | None
    after: SiteSummary | None

    def both(self, part: str) -> tuple[float, float]:
        """Seconds of a part in both jobs: ``time``, ``computed``, ``transfer``, ``waiting``."""
        first, second = (getattr(one, part) if one else 0.0 for one in (self.before, self.after))
        return first, second

    def grown(self, part: str) -> float:
        """By how many seconds that is more in the second job."""
        before, after = self.both(part)
        return after - before


def slower_most(changes: Iterable[SiteChange], least: float) -> tuple[SiteChange, str] | None:
    """The place and its part that became slower most, by ``least`` seconds or more.

    Waiting counts only where neither the program nor a call became slower by itself: ranks wait
    longer because another one does.
    """
    seen = [one for one in changes if one.after]
    for parts in (('computed', 'transfer'), ('time',)):
        found = [(one.grown(part), one, part) for one in seen for part in parts]
        most, place, part = max(found, key=lambda one: one[0], default=(0.0, None, ''))
        if place and most >= least:
            return place, part
    return None


def compare_sites(before: Report, after: Report) -> list[SiteChange]:
    """The places of two jobs side by side, those whose times changed most first.

    Computation before calls is 0 in both if one report does not have it.

    The same object file is known by its build id. In another build of the program a place is known
    by its call and function, and by which of these calls it is: lines may have moved.
    """
    # What is known of an object file holds for both, if its build id says that it is the same.
    reports = (before, after)
    ids = {part.build_id for one in reports for each in one.processes for part in each.sites}
    both = {key: one for key, one in (before.lines | after.lines).items() if key in ids - {''}}
    old, new = (
        summarise_sites(one.model_copy(update={'lines': one.lines | both})) for one in reports
    )
    if not (_has_computed(before) and _has_computed(after)):
        for one in (*old, *new):
            one.computed = 0.0
    shared = {one.build_id for one in old} & {one.build_id for one in new} - {''}
    olds, news = _by_name(old, shared), _by_name(new, shared)
    found = [SiteChange(olds.get(name), news.get(name)) for name in {**olds, **news}]
    return sorted(found, key=lambda one: -max(abs(one.grown('time')), abs(one.grown('computed'))))


def _has_computed(report: Report) -> bool:
    sites = (site for one in report.processes for part in one.sites for site in part.calls)
    return any(site.computed is not None for site in sites)


def _by_name(
    sites: Iterable[SiteSummary], shared: set[str]
) -> dict[tuple[object, ...], SiteSummary]:
    named: dict[tuple[object, ...], SiteSummary] = {}
    counted: Counter[tuple[str, str, str]] = Counter()
    for one in sorted(sites, key=lambda one: (one.file, one.line, int(one.offset, 16))):
        if one.build_id in shared:
            where = one.line or one.offset
            named[one.build_id, one.file, where, one.call] = one
            continue
        name = (Path(one.object).name, one.function, one.call)
        named[name + (counted[name],)] = one  # noqa: RUF005
        counted[name] += 1
    return named


# Lines --------------------------------------------------------------------------------------------


def find_lines(report: Report) -> tuple[Lines, list[str]]:
    """Functions and lines of a report's sites, and what could not be looked up, with a remedy each.

    Lines that the report has already are kept: a program may have been built anew since.
    """
    offsets: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for process in report.processes:
        for part in process.sites:
            offsets[part.build_id, part.object] |= {site.offset for site in part.calls}
    found: Lines = dict(report.lines)
    tool = next(filter(None, map(shutil.which, TOOLS)), None)
    problems = []
    for (build_id, path), places in offsets.items():
        key = key_of(build_id, path)
        if key in found or not path:
            continue
        if tool is None:
            problems.append(
                'lines of the program are not shown: there is no addr2line (install binutils)'
            )
            break
        if not Path(path).is_file():
            problems.append(f'{path} is not on this machine: its lines are unknown')
            continue
        if build_id and (there := _build_ids(path)) and build_id not in there:
            problems.append(f'{path} is another build than the one that ran: its lines are unknown')
            continue
        if not (looked_up := _look_up(tool, path, sorted(places))):
            problems.append(f'{tool} found nothing out about {path}')
            continue
        found[key] = looked_up
        if not any(line for _, _, line in found[key].values()):
            problems.append(f'{Path(path).name} has no line numbers: build it with -g to see lines')
    return found, problems


def with_lines(report: Report) -> Report:
    """A report with the functions and lines that can be looked up here."""
    return report.model_copy(update={'lines': find_lines(report)[0]})


def _build_ids(path: str) -> set[str]:
    """The build id of a file, in hexadecimal, as ELF's notes hold it (type 3, owner GNU)."""
    try:
        with open(path, 'rb') as file:
            head = file.read(1 << 16)  # the notes stand near its begin
    except OSError:
        return set()
    marks = re.finditer(rb'\x04\0\0\0(.)\0\0\0\x03\0\0\0GNU\0', head, re.DOTALL)
    return {head[one.end() : one.end() + one[1][0]].hex() for one in marks}


def _look_up(tool: str, path: str, offsets: list[str]) -> dict[str, tuple[str, str, int]]:
    """Function, file and line of each offset; empty and 0 where the tool does not know."""
    command = [tool, '-f', '-C', '-e', path]
    given = ''.join(f'{offset}\n' for offset in offsets)
    said = output_of_tool(command, PATIENCE, given).splitlines()
    if len(said) < 2 * len(offsets):
        return {}
    begins, ends = _functions(path)
    found = {}
    for offset, function, place in zip(offsets, said[::2], said[1::2], strict=False):
        # A discriminator or a column may follow the line.
        match = re.match(r'(.*?):(\d+)', place)
        file, line = (match[1], int(match[2])) if match else ('', 0)
        name = '' if function.startswith('?') else _without_parameters(function)
        # Of a stripped file the tools name the last function before it that others may call.
        at = bisect_right(begins, int(offset, 16))
        if not line and not (at and int(offset, 16) < ends[at - 1]):
            name = ''
        found[offset] = (name, '' if file.startswith('?') else file, line)
    return found


def _functions(path: str) -> tuple[list[int], list[int]]:
    """The starts of the functions in a file's symbol tables, in order; and for each the last end of
    it and those before.
    """
    found = []
    for option in ('-S', '-DS'):
        symbols = output_of_tool(['nm', option, path], PATIENCE)
        for begin, size in re.findall(r'^([0-9a-f]+) ([0-9a-f]+) [tTwWiu] ', symbols, re.M):
            found.append((int(begin, 16), int(begin, 16) + int(size, 16)))
    found.sort()
    return [begin for begin, _ in found], [*accumulate((end for _, end in found), max)]


def _without_parameters(function: str) -> str:
    """The name of a C++ function: what stands before the parentheses that match the last one."""
    if function.endswith('operator()'):
        return function
    depth = 0
    for place in range(len(function) - 1, -1, -1):
        depth += {')': 1, '(': -1}.get(function[place], 0)
        if depth == 0 and function[place] == '(' and function.endswith((')', ') const')):
            return function[:place] or function
    return function
