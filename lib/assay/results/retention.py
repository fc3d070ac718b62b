"""What of the history is removed as too old: runs in the database, and lines of perflogs."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from pathlib import Path

from assay import AssayError
from assay.results import perflogs
from assay.results.history import History, StoredRun
from assay.results.run_selectors import day

_DAYS = re.compile(r'([1-9]\d{0,4})d')


def beginning(words: str) -> datetime:
    """From when on runs are kept: ``365d`` ago, or the beginning of a day, by this machine's clock.

    :raises AssayError: if the words mean neither, or the future.
    """
    now = datetime.now().astimezone()
    if match := _DAYS.fullmatch(words):
        return now - timedelta(days=int(match[1]))
    try:
        since = datetime.combine(day(words), time()).astimezone()
    except (AssayError, OverflowError, ValueError):
        raise AssayError(
            f'--keep {words!r}: write a number of days, such as 365d, or YEAR-MONTH-DAY.'
        ) from None
    if since > now:
        raise AssayError(f'--keep {words} is in the future: nothing would be kept.')
    return since


def old_runs(history: History, since: datetime) -> list[StoredRun]:
    """The runs that began before a time; one whose own time is damaged is none of them."""
    return [run for run in history.runs if run.is_dated and run.begun < since]


def old_lines(history: History, since: datetime) -> dict[Path, int]:
    """How many lines of each perflog are of jobs that ended before a time; of those that have any.

    A line does not name its run. All jobs of a run that is kept ended later.

    :raises AssayError: if a perflog cannot be read.
    """
    found = perflogs.perflogs(history.database.parent)
    counted = {path: perflogs.count_before(path, since) for path in found}
    return {path: count for path, count in counted.items() if count}


def remove_lines(history: History, since: datetime) -> dict[Path, int]:
    """Remove the lines of :func:`old_lines`; where it is killed, whoever calls it next goes on.

    :returns: how many of each perflog.
    :raises AssayError: if one cannot be written.
    """
    return {path: perflogs.remove_before(path, since) for path in old_lines(history, since)}
