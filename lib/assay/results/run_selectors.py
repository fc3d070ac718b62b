"""The words by which every command chooses runs.

==========================  ======================================================================
``last``, ``last~3``        the newest run, the third before it
``2026-11-01``              the runs that began on that day, of this machine's clock
``2026-11-01..2026-11-20``  those that began from one day to another, both included
``5d38a3d3``                the run whose identifier begins so, at least four characters
``path/to/report.json``     the run of a report of ReFrame's, which may be of another machine
``path/to/perflogs/``       all runs of a folder of perflogs, as far as these tell
anything else               a label: all runs that were given it
==========================  ======================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError
from assay.quantities import seconds_of
from assay.results.history import History, StoredRun, of_file
from assay.text import did_you_mean, first_few, many, plain, similar

if TYPE_CHECKING:
    from assay.results.figure_series import FigureKey, Measured

#: The words for one of the newest runs.
LAST = re.compile(r'last(?:~(\d{1,9}))?')
_DAY = re.compile(r'\d{4}-\d{2}-\d{2}')
_DAYS = re.compile(rf'({_DAY.pattern})(?:\.\.({_DAY.pattern}))?')
_IDENTIFIER = re.compile(r'[0-9a-f]{4,8}|[0-9a-f]{8}-[0-9a-f-]{0,27}', re.IGNORECASE)


def assert_label(label: str) -> None:
    """:raises AssayError: if a text cannot be a label."""
    if not label.strip():
        raise AssayError('--label is empty: give a text by which you will find the run again.')
    if label != plain(label):
        raise AssayError(
            f'--label {plain(label)!r}: a label is one line without blanks at its ends, two in a '
            'row, or signs that cannot be seen.'
        )
    for kind, is_one in (
        ('a place in the history', LAST.fullmatch(label)),
        ('a date', _DAYS.fullmatch(label)),
        ('an identifier', _IDENTIFIER.fullmatch(label)),
        ('a file', _is_file(label)),
    ):
        if is_one:
            raise AssayError(f'--label {label!r}: that chooses runs by {kind}: take another word.')


def day(text: str) -> date:
    """The day of a text; of the forms that ISO 8601 has only the one that all know.

    :raises AssayError: if it is none.
    """
    with suppress(ValueError):
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    raise AssayError(f'{text} is no date: write YEAR-MONTH-DAY.')


def of_system(history: History, system: str | None) -> list[StoredRun]:
    """The runs of a system, oldest first; of all systems without one.

    :param system: it may be ``name:partition``.
    :raises AssayError: if runs are stored, but none of this system.
    """
    found = [run for run in history.runs if _is_of(run, system)]
    if history.runs and not found:
        raise AssayError(
            f'no run of the system {system} is stored in {history.database}: '
            '`assay run` stores one.'
        )
    return found


def choose_runs(
    history: History, words: str, system: str | None = None, uncounted: str | None = None
) -> list[StoredRun]:
    """The runs that words mean, oldest first; at least one.

    :param system: only runs of this one count, if it is given; it may be ``name:partition``.
    :param uncounted: runs of this purpose are chosen by identifier alone.
    :raises AssayError: if they mean none, or are not clear, or mean one that cannot be read.
    """
    if _is_file(words):
        found = of_file(Path(words))
        if not (those := [run for run in found if _is_of(run, system)]):
            raise AssayError(f'{words} is of the system {found[0].summary.system}, not {system}.')
        return those
    runs = of_system(history, system)
    if not runs:
        raise AssayError(f'no run is stored in {history.database}: `assay run` stores one.')
    if uncounted and not _IDENTIFIER.fullmatch(words):
        runs = [run for run in runs if run.summary.purpose != uncounted]
    chosen = _chosen(runs, words)
    for run in chosen:
        if run.summary.problem:
            raise AssayError(
                f'{words!r} means a run that cannot be read: {run.summary.problem}; '
                f'`assay forget {run.name}` drops it.'
            )
    return chosen


def choose_or_all(history: History, words: str, system: str | None) -> list[StoredRun]:
    """The runs that words mean (:func:`choose_runs`); without words all (:func:`of_system`)."""
    return choose_runs(history, words, system) if words else of_system(history, system)


def kept_since(words: str) -> datetime:
    """From when on runs are kept: ``365d`` ago, or the beginning of a day, by this machine's clock.

    :raises AssayError: if the words mean neither, or the future.
    """
    now = datetime.now().astimezone()
    if words.endswith('d'):  # days alone: 12m, meant as months, would be minutes
        with suppress(AssayError):
            return now - timedelta(seconds=seconds_of(words))
    try:
        since = datetime.combine(day(words), time()).astimezone()
    except (AssayError, OverflowError, ValueError):
        raise AssayError(f'--keep {words!r}: write days such as 365d, or YEAR-MONTH-DAY.') from None
    if since > now:
        raise AssayError(f'--keep {words} is in the future: nothing would be kept.')
    return since


def old_runs(history: History, since: datetime) -> list[StoredRun]:
    """The runs that began before a time; one whose own time is damaged is none of them."""
    return [run for run in history.runs if run.is_dated and run.begun < since]


def of_cases(expression: str) -> Callable[[str], bool]:
    """Make a function that tells whether ``-n`` chooses a case, by its full name.

    A name that was copied is found as it stands, whatever its signs mean in an expression.

    :raises AssayError: if it is no regular expression.
    """
    pattern = pattern_of('-n', expression)
    return lambda case: expression in case or bool(pattern.search(case))


def choose_figures(
    found: Mapping[FigureKey, Measured], cases: str, figures: str
) -> dict[FigureKey, Measured]:
    """The figures that ``-n`` and ``--figure`` choose; all if both are empty.

    :raises AssayError: if one is no regular expression, or none is chosen.
    """
    is_case, pattern = of_cases(cases), pattern_of('--figure', figures)
    chosen = {
        key: one
        for key, one in found.items()
        if is_case(key.test_case) and pattern.search(key.figure)
    }
    if (cases or figures) and not chosen:
        options = [f'-n {cases!r}'] * bool(cases) + [f'--figure {figures!r}'] * bool(figures)
        raise AssayError(
            f'{" with ".join(options)} matches none of {len(found)} figures: -n is searched for in '
            'the names of cases, --figure in those of figures.'
        )
    return chosen


def pattern_of(option: str, expression: str) -> re.Pattern[str]:
    try:
        return re.compile(expression)
    except re.error as error:
        raise AssayError(f'{option} {expression!r} is no regular expression: {error}') from None


def removable(history: History, words: str, system: str | None = None) -> list[StoredRun]:
    """The stored runs that words mean, with those that cannot be read, which can be removed too.

    :raises AssayError: as :func:`choose_runs`.
    """
    if _is_file(words):
        raise AssayError(f'{words} is a file: remove it as such.')
    return _chosen(of_system(history, system), words)


def _chosen(runs: list[StoredRun], words: str) -> list[StoredRun]:
    if not runs:
        raise AssayError('no run is stored that could be meant.')
    if match := LAST.fullmatch(words):
        return [_last(runs, int(match[1] or 0), words)]
    if match := _DAYS.fullmatch(words):
        return _between(runs, day(match[1]), day(match[2] or match[1]), words)
    labelled = [run for run in runs if run.summary.label == words]
    named = [run for run in runs if run.uuid.startswith(words.lower())]
    if not _IDENTIFIER.fullmatch(words):
        named = []
    if labelled and named:
        raise AssayError(
            f'{words!r} is a label of {many(len(labelled), "run")} and begins the identifier '
            f'{named[0].uuid}: write more of the identifier, or choose by date.'
        )
    if len(named) > 1:
        identifiers = ', '.join(run.uuid[:13] for run in named[:4])
        raise AssayError(
            f'{words!r} begins the identifiers of {len(named)} runs: {identifiers}: '
            'write more of it.'
        )
    if found := labelled or named:
        return found
    raise AssayError(f'no run is meant by {plain(words)!r}: {_there_is(runs, words)}')


def _last(runs: list[StoredRun], before: int, words: str) -> StoredRun:
    begun = [run for run in runs if not run.is_of_the_future]
    if before >= len(begun):
        future = len(runs) - len(begun)
        others = f', and {future} of the future, which do not count' if future else ''
        raise AssayError(f'{words!r}: stored is no more than {many(len(begun), "run")}{others}.')
    return begun[-1 - before]


def _between(runs: list[StoredRun], first: date, last: date, words: str) -> list[StoredRun]:
    if first > last:
        raise AssayError(f'{words!r} ends before it begins.')
    if first > datetime.now().date():
        raise AssayError(f'{words!r} is in the future: no run can have begun then.')
    found = [run for run in runs if first <= run.begun.astimezone().date() <= last]
    if not found:
        raise AssayError(f'no run began on {words}: {_there_is(runs, words)}')
    return found


def _there_is(runs: Sequence[StoredRun], words: str) -> str:
    """A hint at the runs that could have been meant."""
    labels = list(dict.fromkeys(run.summary.label for run in reversed(runs) if run.summary.label))
    days = [f'{run.begun.astimezone():%Y-%m-%d}' for run in (runs[0], runs[-1])]
    there = f'{many(len(runs), "run")} from {days[0]} to {days[1]}'
    if near := similar(words, labels):
        return f'{did_you_mean(near)} Stored: {there}.'
    the_labels = f'the labels {first_few([*map(repr, labels)], 8)}' if labels else 'no label'
    return f'stored: {there}, with {the_labels}.'


def _is_of(run: StoredRun, system: str | None) -> bool:
    return system is None or run.summary.system == system.partition(':')[0]


def _is_file(words: str) -> bool:
    return '/' in words or words.endswith('.json')
