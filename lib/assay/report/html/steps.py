"""What changed over the runs of a history, as `assay trend` finds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.report.table import as_change
from assay.results.history import History, StoredRun
from assay.text import plain

#: Changes that are told, of those that are worse first.
MOST = 60


@dataclass(frozen=True)
class Step:
    """A figure that is not what it was.

    :param change: in words, such as ``-12.0%`` or ``-0.50% a week``.
    :param since: the first run of it, as most likely.
    :param state: ``worse``, ``better``, ``changed`` or ``worse, repaired``.
    :param facts: what else changed there, a line each.
    """

    figure: str
    change: str
    since: str
    state: str
    facts: Sequence[str]


def steps(history: History | None, runs: Sequence[StoredRun]) -> list[Step]:
    """Steps and drifts in these runs; what is worse stands first.

    :param runs: oldest first.
    :raises AssayError: if the report of one can no longer be read.
    """
    if not history or len(runs) < 2:
        return []
    from assay.results.trend import trend

    found = sorted(trend(history, runs).found, key=lambda one: not one.is_bad)
    return [
        Step(
            plain(one.figure),
            f'{one.per_week:+.2%} a week' if one.form == 'drift' else as_change(one.ratio),
            f'{one.first.name}, {one.first.begun:%Y-%m-%d}',
            'worse, repaired' if one.direction == 'worse' and one.is_repaired else one.direction,
            [plain(f'{name}: {change}') for name, change in one.facts],
        )
        for one in found[:MOST]
    ]
