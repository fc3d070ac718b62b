"""Runs of which there are only perflogs, as reports of ReFrame's would have them.

A line of a perflog does not name its run. So the lines of a system are taken by the time at which
their jobs ended: a run ends where one of its cases comes again, or after a pause (:data:`PAUSE`).
A line without a time is of no run that can be told. It is an error, as a damaged one is: left out,
its figure would be missing in a run without a word.
"""

from __future__ import annotations

import os
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from assay import AssayError
from assay.results.cases import Case, Report, case_name
from assay.results.perflogs import TIME, perflogs

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


def reports_of(folder: Path) -> list[Report]:
    """The runs in a folder of perflogs, oldest first, as far as their reports can be told.

    Not known are labels, modes, jobs, nodes, directions of figures, what disturbed a case, and
    cases that ended without a figure.

    :raises AssayError: if it has none, or one of them is written neither as config/common.py has
        it, nor as ReFrame 3 or 4 does by itself.
    """
    by_system: dict[str, list[Case]] = {}
    for path in perflogs(folder):
        for case in _cases(path):
            by_system.setdefault(case['system'], []).append(case)
    if not by_system:
        raise AssayError(f'{folder} has no perflogs of ReFrame with a line in them.')
    found, like = list[Report](), Counter[str]()
    for system, cases in by_system.items():
        for run in _runs(sorted(cases, key=_ended)):
            # Always the same for the same lines; two runs at once may begin alike.
            name = f'{system} {_ended(run[0])} {case_name(run[0])}'
            like[name] += 1
            found.append(_report(f'{name} {like[name]}', run))
    return sorted(found, key=lambda report: report['session_info']['time_start_unix'])


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
    name, figure = known['display_name'], known.get('perf_var')
    numbers = [float(known[one]) if one in known else None for one in _NUMBERS]
    values = (*numbers, known.get('perf_unit'), known.get('perf_result'))
    return {
        **dict(re.findall(r'%(\w+)=(\S+)', name)),
        **{one: known.get(one, '') for one in columns if one.startswith(('built_', 'ran_'))},
        'suite_commit': known.get('suite_commit', ''),
        'display_name': name,
        'system': known['system'],
        'partition': known['partition'],
        'environ': known['environ'],
        'fixture': ' ~' in name,
        'result': known.get('result', 'pass'),
        'fail_phase': None,
        'fail_reason': None,
        'stagedir': os.devnull,  # nothing is left of the job
        'job_completion_time_unix': _seconds(known[TIME.decode()]),
        'perfvalues': {f'{known["system"]}:{known["partition"]}:{figure}': values}
        if figure
        else {},
    }


def _seconds(text: str) -> float:
    # Without a zone it is of this machine's clock.
    return datetime.fromisoformat(text).astimezone().timestamp()


def _ended(case: Case) -> float:
    ended: float = case['job_completion_time_unix']
    return ended


def _runs(cases: list[Case]) -> Iterator[list[Case]]:
    """The cases of one run after another, with all their figures.

    :param cases: of a system, with a figure each, in the order of their times.
    """
    run: dict[str, Case] = {}
    before = _ended(cases[0])
    for case in cases:
        earlier = run.get(case_name(case))
        if (
            earlier
            and _ended(earlier) == _ended(case)
            and not earlier['perfvalues'].keys() & case['perfvalues'].keys()
        ):
            earlier['perfvalues'] |= case['perfvalues']
            continue
        if earlier or _ended(case) - before > PAUSE:
            yield [*run.values()]
            run = {}
        run[case_name(case)] = case
        before = _ended(case)
    yield [*run.values()]


def _report(name: str, cases: list[Case]) -> Report:
    """A report of these cases, with an identifier of the name."""
    times = [*map(_ended, cases)]
    info = {
        'uuid': str(uuid.uuid5(uuid.NAMESPACE_OID, name)),
        'time_start_unix': min(times),
        'time_end_unix': max(times),
    }
    return {'session_info': info, 'runs': [{'testcases': cases}]}
