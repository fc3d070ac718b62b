"""ReFrame's perflogs, text files with a line a figure: old lines are removed, and runs read.

ReFrame opens such a file for each line, under a lock of its own beside it (``locking_enable`` in
config/common.py). Under the same lock a file can be replaced, and no line is lost.

A line of a perflog does not name its run. So the lines of a system are taken by the time at which
their jobs ended: a run ends where one of its cases comes again, or after a pause (:data:`PAUSE`).
A line without a time cannot be given to a run. It is an error, as a damaged one is: without it a
run would lack a figure, and nothing would tell so.
"""

from __future__ import annotations

import os
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from assay import AssayError, locks
from assay.files import keep_access
from assay.results.cases import (
    PARAMETERS,
    Case,
    CaseFigure,
    Job,
    Run,
    parameters_of,
    reference_and_bounds,
)
from assay.results.provenance import facts_from_variables

#: The column of config/common.py by which a line has its age: no line names its run.
TIME = b'job_completion_time'

#: Seconds without a job that ended, after which the next job is one of another run.
PAUSE = 6 * 3600

# What config/common.py writes of each figure; what else it writes there are facts of the case.
_NUMBERS = ('perf_value', 'perf_ref', 'perf_lower_thres', 'perf_upper_thres')

_OF_FIGURE = ('perf_var', *_NUMBERS, 'perf_unit', 'perf_result')

_NEEDED = (TIME.decode(), 'system', 'partition', 'environ', 'display_name', *_OF_FIGURE[:2])

# By itself ReFrame 4 writes a line a case, with columns of each figure that begin with its name.
_OF_A_FIGURE = re.compile(r'(.+)_(value|ref|lower(?:_thres)?|upper(?:_thres)?|unit|result)')

# ReFrame 3 names no columns. What it calls a check names system, partition and environment.
_OF_REFRAME_3 = re.compile(
    rf'(?P<{TIME.decode()}>[^|]+)\|reframe (?P<version>[^|]+)\|(?P<display_name>[^|]+) on '
    r'(?P<system>[^|:]+):(?P<partition>[^|]+) using (?P<environ>[^|]+)\|(?:[^|]+\|)*?'
    r'(?P<perf_var>[^|=]+)=(?P<perf_value>[^|]+)\|'
    r'ref=(?P<perf_ref>\S+) \(l=(?P<perf_lower_thres>[^,]+), u=(?P<perf_upper_thres>[^)]+)\)'
    r'(?:\|(?P<perf_unit>[^|]*))?'
)


def perflogs(folder: Path) -> list[Path]:
    """The perflogs below a folder, and those that ReFrame renamed as their columns changed.

    :raises AssayError: if something below it cannot be searched, or vanishes meanwhile.
    """
    try:
        found = {*folder.rglob('*.log'), *folder.rglob('*.log.h[0-9]*')}
        # What begins with a dot is a draft of ours.
        return sorted(path for path in found if not path.name.startswith('.') and path.is_file())
    except OSError as error:
        raise AssayError(f'{folder}: cannot be searched for perflogs: {error}') from None


def remove_old_lines(folder: Path, since: datetime, dry_run: bool) -> dict[Path, int]:
    """Remove the lines of jobs that ended before a time from all perflogs.

    A line does not name its run. All jobs of a run that is kept ended later. If it is killed, the
    next call finishes the rest.

    :param dry_run: nothing is removed.
    :returns: how many there were in each perflog that had any.
    :raises AssayError: if one cannot be read or written.
    """
    counted = {path: count_before(path, since) for path in perflogs(folder)}
    old = {path: count for path, count in counted.items() if count}
    return old if dry_run else {path: remove_before(path, since) for path in old}


def count_before(path: Path, limit: datetime) -> int:
    """How many lines of a perflog are of jobs that ended before a time.

    :raises AssayError: if it cannot be read.
    """
    with _told(path), path.open('rb') as file:
        return sum(is_old for _, is_old in _lines(file, limit))


def remove_before(path: Path, limit: datetime) -> int:
    """Remove the lines of jobs that ended before a time; a process that is killed leaves the file.

    The line of columns and each line whose time cannot be read stay.

    :returns: how many there were.
    :raises AssayError: if it cannot be written.
    """
    # The file of ReFrame's lock; all files of one check share it.
    lock = path.with_name(f'.{path.name.partition(".log")[0]}.lock')
    draft = path.with_name(f'.{path.name}.draft')
    with _told(path), lock.open('a') as held:
        locks.lock_as_reframe(held.fileno(), lock)
        with path.open('rb') as old, draft.open('wb') as new:
            removed = _copy_rest(_lines(old, limit), new)
            keep_access(os.fstat(old.fileno()), new.fileno())
            new.flush()
            os.fsync(new.fileno())
        if removed:
            draft.replace(path)
        else:
            draft.unlink()
        return removed


def _copy_rest(lines: Iterable[tuple[bytes, bool]], new: IO[bytes]) -> int:
    removed = 0
    for line, is_old in lines:
        if is_old:
            removed += 1
        else:
            new.write(line)
    return removed


def _lines(file: Iterable[bytes], limit: datetime) -> Iterator[tuple[bytes, bool]]:
    """Each line, and whether its job ended before the limit."""
    # Times of lines are in whole seconds.
    limit, column = limit.replace(microsecond=0), None
    for line in file:
        fields = line.rstrip(b'\n').split(b'|')
        if TIME in fields:
            column = fields.index(TIME)
            yield line, False
        else:
            yield line, column is not None and _is_before(fields[column : column + 1], limit)


def _is_before(field: list[bytes], limit: datetime) -> bool:
    try:
        # Without a zone it is of this machine's clock.
        return datetime.fromisoformat(field[0].decode()).astimezone() < limit
    except (IndexError, OSError, OverflowError, ValueError):
        return False


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """:raises AssayError: for what goes wrong with a file."""
    try:
        yield
    except OSError as error:
        raise AssayError(f'{path} stays as it is: {error.strerror}') from None


def runs_of(folder: Path) -> list[Run]:
    """The runs in a folder of perflogs, oldest first.

    Perflogs do not tell labels, modes, jobs, nodes, directions of figures, disturbances, and cases
    without a figure.

    :raises AssayError: if it has none, or one of them is written neither as config/common.py has
        it, nor as ReFrame 3 or 4 does by itself.
    """
    by_system: dict[str, list[Case]] = {}
    for path in perflogs(folder):
        for case in _cases(path):
            by_system.setdefault(case.system, []).append(case)
    if not by_system:
        raise AssayError(f'{folder} has no perflogs of ReFrame with a line in them.')
    found, like = list[Run](), Counter[str]()
    for system, cases in by_system.items():
        for run in _divided(sorted(cases, key=_ended)):
            # Always the same for the same lines; two runs at once may begin alike.
            name = f'{system} {_ended(run[0]).timestamp()} {run[0].full_name}'
            like[name] += 1
            found.append(_run(f'{name} {like[name]}', run))
    return sorted(found, key=lambda run: run.begun)


def _cases(path: Path) -> Iterator[Case]:
    """A case for each figure of a line; of a line without a figure one with none."""
    try:
        lines = path.read_text().split('\n')
    except (OSError, ValueError) as error:
        raise AssayError(f'{path}: cannot be read: {error}') from None
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        texts = line.split('|')
        if TIME.decode() in texts:
            names = texts
            if missing := _missing(names):
                raise AssayError(
                    f'{path} has no column {missing}, without which its lines cannot be read: '
                    'Assay did not write it. Name a folder without it.'
                )
        elif line:
            in_three = None if names else _OF_REFRAME_3.fullmatch(line)
            if not names and not in_three:
                raise AssayError(
                    f'{path}: line {number} has no columns with names before it, and is not as '
                    'ReFrame 3 writes one: it is damaged, or in a format of its site. Name a '
                    'folder without it.'
                )
            try:
                columns = in_three.groupdict('') if in_three else _named(names, texts)
                yield from map(_case, _by_figure(columns))
            except (LookupError, OverflowError, ValueError):
                raise AssayError(
                    f'{path}: line {number} is damaged, or has no time: remove it.'
                ) from None


def _named(names: list[str], texts: list[str]) -> dict[str, str]:
    """The columns of a line, with the names of config/common.py.

    :raises ValueError: if there are more of them, or fewer.
    """
    columns = dict(zip(names, texts, strict=True))
    columns.setdefault('display_name', columns.get('name', ''))
    return columns


def _missing(names: list[str]) -> str | None:
    """A column that is needed and not there."""
    have = {*names, *(['display_name'] if 'name' in names else [])}
    if _figures_in(names):
        have |= {*_OF_FIGURE}
    return next((name for name in _NEEDED if name not in have), None)


def _figures_in(names: Iterable[str]) -> list[str]:
    """The figures that have columns of their own: each has a unit, and a value or its bare name."""
    names = [*names]
    units = [name.removesuffix('_unit') for name in names if name.endswith('_unit')]
    return [one for one in units if one != 'perf' and {one, f'{one}_value'} & {*names}]


def _by_figure(columns: dict[str, str]) -> Iterator[dict[str, str]]:
    """The columns of a line for each of its figures, with the names of config/common.py."""
    if not (figures := _figures_in(columns)):
        yield columns
    for figure in figures:
        own = {'perf_var': figure, 'perf_value': columns.get(figure, '')}
        for name, text in columns.items():
            if (found := _OF_A_FIGURE.fullmatch(name)) and found[1] == figure:
                kind = found[2] + '_thres' * (found[2] in ('lower', 'upper'))
                own[f'perf_{kind}'] = text
        yield columns | own


def _case(columns: dict[str, str]) -> Case:
    """:raises LookupError, OverflowError, ValueError: if the columns are not as ReFrame writes."""
    known = {name: text for name, text in columns.items() if text not in ('', 'null', 'None')}
    name = known['display_name']
    parameters: dict[str, Any] = parameters_of(name)
    return Case(
        display_name=name,
        system=known['system'],
        partition=known['partition'],
        environment=known['environ'],
        is_fixture=' ~' in name,
        **{one: parameters.get(one, '') for one in PARAMETERS},
        result=known.get('result', 'pass'),
        figures=_figures(known),
        job=Job(ended=_time(known[TIME.decode()])),
        facts=facts_from_variables({one: known.get(one, '') for one in columns}),
    )


def _figures(known: dict[str, str]) -> tuple[CaseFigure, ...]:
    if not (name := known.get('perf_var')):
        return ()
    value, reference, lower, upper = (
        float(known[one]) if one in known else None for one in _NUMBERS
    )
    unit, result = known.get('perf_unit', ''), known.get('perf_result')
    return (CaseFigure(name, value, *reference_and_bounds(reference, lower, upper), unit, result),)


def _time(text: str) -> datetime:
    # Without a zone it is of this machine's clock.
    return datetime.fromisoformat(text).astimezone(timezone.utc)


def _ended(case: Case) -> datetime:
    """When its job ended, which each line tells."""
    assert case.job.ended
    return case.job.ended


def _divided(cases: list[Case]) -> Iterator[list[Case]]:
    """The cases of one run after another, with all their figures.

    :param cases: of a system, with a figure each, in the order of their times.
    """
    run: dict[str, Case] = {}
    before = _ended(cases[0])
    for case in cases:
        name, ended, names = case.full_name, _ended(case), [one.name for one in case.figures]
        earlier = run.get(name)
        if earlier and _ended(earlier) == ended and not any(map(earlier.figure, names)):
            run[name] = replace(earlier, figures=(*earlier.figures, *case.figures))
            continue
        if earlier or (ended - before).total_seconds() > PAUSE:
            yield [*run.values()]
            run = {}
        run[name] = case
        before = ended
    yield [*run.values()]


def _run(name: str, cases: list[Case]) -> Run:
    """A run of these cases, with an identifier of the name."""
    times = [*map(_ended, cases)]
    identifier = str(uuid.uuid5(uuid.NAMESPACE_OID, name))
    return Run(identifier, min(times), max(times), (tuple(cases),))
