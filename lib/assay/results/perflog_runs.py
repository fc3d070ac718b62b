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
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from assay import AssayError
from assay.results.cases import Case, Report, case_name
from assay.results.perflogs import TIME, perflogs

#: Seconds without a job that ended, after which the next job is one of another run.
PAUSE = 6 * 3600

# What config/common.py writes of each figure; what else it writes there are facts of the case.
_NUMBERS = ('perf_value', 'perf_ref', 'perf_lower_thres', 'perf_upper_thres')
_NEEDED = {
    TIME.decode(),
    *('system', 'partition', 'environ', 'display_name', 'result'),
    *('perf_var', *_NUMBERS, 'perf_unit', 'perf_result'),
}


def reports_of(folder: Path) -> list[Report]:
    """The runs in a folder of perflogs, oldest first, as far as their reports can be told.

    Not known are labels, modes, jobs, nodes, directions of figures, what disturbed a case, and
    cases that ended without a figure.

    :raises AssayError: if it has none, or one of them is not as config/common.py has them written.
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
    """A case for each line, with one figure; of a line without a figure with none."""
    try:
        lines = path.read_text().split('\n')
    except (OSError, ValueError) as error:
        raise AssayError(f'{path}: cannot be read: {error}') from None
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        texts = line.split('|')
        if TIME.decode() in texts:
            names = texts
            if missing := sorted(_NEEDED - {*names}):
                raise AssayError(f'{path} has no column {missing[0]}: Assay did not write it.')
        elif line:
            try:
                yield _case(dict(zip(names, texts, strict=True)))
            except (LookupError, OverflowError, ValueError):
                raise AssayError(
                    f'{path}: line {number} is damaged, or has no time: remove it.'
                ) from None


def _case(columns: dict[str, str]) -> Case:
    """:raises LookupError, OverflowError, ValueError: if the columns are not as ReFrame writes."""
    known = {name: text for name, text in columns.items() if text not in ('', 'null')}
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
        'result': known['result'],
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
