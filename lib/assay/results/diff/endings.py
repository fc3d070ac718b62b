"""Cases that end otherwise than they did before, and figures without a value that they had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from assay.results.diff.compared import Compared
from assay.results.figure_series import FigureKey, Measured
from assay.text import many

#: A share that was at least this much each time is not below 0 by chance.
MUCH = 0.2


@dataclass(frozen=True)
class Failed:
    """A case that gave figures before, and did not always after although it was run.

    :param case: its name, partition and environment.
    :param ends: how it ended after, each with how often: ReFrame's word, or None where it gave
        figures.
    """

    case: str
    ends: Counter[str | None]


@dataclass(frozen=True)
class Gone:
    """A figure that has no usable value any more, although its case ran, and why."""

    figure: FigureKey
    reason: str


def ends_of(table: pl.DataFrame) -> dict[str, Counter[str | None]]:
    """How each case ended that was run, by its name, partition and environment: as ``Failed``.

    One that was stopped with its run says nothing of the machine: it was not run.
    """
    rows = (
        table.filter(pl.col('result').cast(pl.String).ne_missing('abort'))
        .group_by('case', 'system', 'partition', 'environment', 'run', 'repeat')
        .agg(pl.when((pl.col('figure') == '-').all()).then(pl.col('result').first()))
        .rows(named=True)
    )
    found: dict[str, Counter[str | None]] = {}
    for row in rows:
        name = '{case} @{system}:{partition}+{environment}'.format(**row)
        found.setdefault(name, Counter())[row['result']] += 1
    return found


def is_lost_case(before: Counter[str | None], after: Counter[str | None]) -> bool:
    """Whether a case gave figures before, and only failed after."""
    return None in before and None not in after


def fails_at_times(before: Counter[str | None], after: Counter[str | None]) -> bool:
    """Whether a case never failed before, and after in some runs."""
    return {*before} == {None} < {*after}


def _is_below_zero(share: Measured) -> bool:
    return share.values.is_empty() and share.below_zero > 0


def _was_much(share: Measured) -> bool:
    return not (share.below_zero or share.values.is_empty()) and min(share.values) >= MUCH


def unusable_values(compared: Iterable[Compared]) -> Iterator[Gone]:
    """Values that are no longer usable; the comparison leaves them out."""
    for one in compared:
        before, after = one.before, one.after
        if after.unusable and not before.unusable:
            yield Gone(one.figure, f'{many(after.unusable, "value")} not a number, or negative')
        elif after.better == 'higher' and 0 in after.values and 0 not in before.values:
            yield Gone(one.figure, 'it is 0')
        elif after.better == 'higher' and _is_below_zero(after) and _was_much(before):
            yield Gone(one.figure, 'it is below 0')
