"""Each figure's values over runs, out of the table of figures: what statistics are taken of."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from assay.config.scales import is_at_most, is_scale
from assay.results.rows import number, with_unit
from assay.results.statistics.series import GREATEST, Series, series, trimmed_mean
from assay.results.statistics.spread import FigureKind, learn
from assay.witness.disturbance import DISTURBANCES
from assay.witness.profile import LEAST_STARTUP, STARTUP

#: Sessions of a history to learn from: what is older says little of the machine today.
NEWEST = 200
#: The columns that make two values values of the same figure. A unit that changed is another one.
IDENTITY = ('system', 'partition', 'environment', 'case', 'figure', 'unit')

#: Shares of a job's time that went to others. They excuse a value, and are none themselves.
CONDITIONS = frozenset({*DISTURBANCES, 'undisturbed_share'})

_WORDS = ('check', 'fabric', 'layout', 'scale')
_COUNTS = ('disturbed', 'unusable', 'below_zero')
#: What each value has of its own: the names of :class:`Measured`, and the columns of the table.
_COLUMNS = {
    'values': 'value',
    'times': 'time',
    'runs': 'run',
    'nodes': 'nodes',
    'provenance': 'provenance',
    'results': 'result',
    'verdicts': 'verdict',
    'lowers': 'lower',
    'uppers': 'upper',
}


@dataclass(frozen=True, order=True)
class FigureKey:
    """The key of a figure of one case in one place; its fields are columns of the table."""

    system: str
    partition: str
    environment: str
    case: str
    figure: str
    unit: str

    @property
    def test_case(self) -> str:
        """Name, partition and environment of the case, as ReFrame prints it."""
        return f'{self.case} @{self.system}:{self.partition}+{self.environment}'

    def __str__(self) -> str:
        return f'{self.figure} of {self.test_case}'


@dataclass(frozen=True, eq=False)
class Measured:
    """A figure in some runs.

    :param check: the class of its check.
    :param better: the direction in which it gets better, as last stored; None if it never was.
    :param values: shape (n,), in order of time, each a finite number not below 0.
    :param times: shape (n,), when the run of each began; seconds since 1970.
    :param runs: shape (n,), identifier of the run that each is of.
    :param nodes: shape (n,), where; None where that is not known.
    :param provenance: shape (n,), what was measured: JSON, as in the table.
    :param results: shape (n,), how the case of each ended, in ReFrame's words.
    :param verdicts: shape (n,), what its run said of each; the words of the table.
    :param lowers: shape (n,), the bounds that each was held to; None where there was none.
    :param uppers: shape (n,), likewise.
    :param disturbed: how many values are left out because others used the nodes.
    :param unusable: how many are left out because they are not finite, negative, or beyond all that
        is measured.
    :param below_zero: how many shares are left out because they are negative.
    """

    figure: FigureKey
    check: str
    fabric: str
    layout: str
    scale: str
    better: str | None
    values: pl.Series
    times: pl.Series
    runs: pl.Series
    nodes: pl.Series
    provenance: pl.Series
    results: pl.Series
    verdicts: pl.Series
    lowers: pl.Series
    uppers: pl.Series
    disturbed: int
    unusable: int
    below_zero: int

    @property
    def kind(self) -> tuple[str, str]:
        """Check and figure: those that have the same lend each other their spread."""
        return self.check, self.figure.figure

    @property
    def reach(self) -> str:
        """Whether its messages leave the node: ``between nodes``, ``within a node`` or unknown."""
        if not is_scale(self.scale):
            return ''
        return 'within a node' if is_at_most(self.scale, 1) else 'between nodes'

    @cached_property
    def series(self) -> Series | None:
        """The values, repeats of a run being one session; None if none is left."""
        if self.values.is_empty():
            return None
        return series(self.values, self.times, self.runs.to_physical())

    @property
    def middle(self) -> float | None:
        """The location of its values, in its unit: of sessions alike; None if none is left."""
        if self.series is None:
            return None
        if not self.series.has_logarithms:
            return float(np.median(self.series.values))
        return float(np.exp(trimmed_mean(self.series.locations)))

    @property
    def middle_text(self) -> str:
        """The middle with its unit, - for none."""
        if self.middle is None:
            return '-'
        return with_unit(number(self.middle), self.figure.unit)

    @cached_property
    def facts(self) -> dict[str, str]:
        """Name and value of what was measured, and ``nodes``; several values with strokes between.

        Empty in runs that were stored before they told any.
        """
        found: dict[str, set[str]] = {}
        for text in dict.fromkeys(self.provenance.to_list()):
            for name, value in json.loads(text or '{}').items():
                found.setdefault(name, set()).add(value)
        if nodes := {one for one in self.nodes.to_list() if one}:
            found['nodes'] = nodes
        return {name: ' / '.join(sorted(values)) for name, values in found.items()}

    def newest(self, most: int) -> Measured:
        """Its values in its newest runs; not of the series, which takes longer to be made."""
        if len(self.runs) <= most:
            return self
        runs = self.runs.unique(maintain_order=True)
        return self if len(runs) <= most else self.of_runs(runs.tail(most))

    def of_runs(self, runs: pl.Series) -> Measured:
        """Its values in some of its runs; not of the series either.

        :param runs: shape (n,), identifiers.
        """
        return self.filter(self.runs.is_in(runs.implode()))

    def filter(self, kept: pl.Series) -> Measured:
        """Some of its values.

        :param kept: shape (n,), whether each is one of them.
        """
        return replace(self, **{name: getattr(self, name).filter(kept) for name in _COLUMNS})


def measured_figures(table: pl.DataFrame) -> dict[FigureKey, Measured]:
    """The figures of a table (:data:`assay.results.figures.SCHEMA`), sorted.

    A case that failed and has no figure is in none of them.
    """
    # Not when each job ended: runs that overlap would be mixed.
    time = pl.col('begun').dt.epoch('ms') / 1000
    number = pl.col('value').is_between(0, GREATEST)
    # A share of what is not there, such as of overlap, is as often below 0 by chance as above.
    is_share = (pl.col('unit').cast(pl.String) == '1') & (pl.col('value') < 0)
    calm = pl.col('disturbances').is_null()
    groups = (
        table.lazy()
        .filter(pl.col('figure') != '-')
        .with_columns(time=time, usable=(number & calm).fill_null(False))
        .sort('begun', 'run', 'measured', maintain_order=True)
        .group_by(IDENTITY)
        .agg(
            pl.col(_WORDS).last(),
            pl.col('better').drop_nulls().last(),
            **{name: pl.col(column).filter('usable') for name, column in _COLUMNS.items()},
            disturbed=(~calm).sum(),
            unusable=(calm & ~(number | is_share).fill_null(False)).sum(),
            below_zero=(calm & is_share.fill_null(False)).sum(),
        )
        .collect()
    )
    words = groups.select(pl.col(*IDENTITY, *_WORDS, 'better').cast(pl.String)).rows(named=True)
    found = []
    for row, texts in enumerate(words):
        own: dict[str, Any] = {name: texts[name] or '' for name in _WORDS}
        own |= {name: groups[name][row] for name in (*_COLUMNS, *_COUNTS)}
        figure = FigureKey(*(texts[name] or '' for name in IDENTITY))
        found.append(Measured(figure=figure, better=texts['better'], **own))
    return {one.figure: one for one in sorted(found, key=lambda one: one.figure)}


@dataclass(frozen=True, eq=False)
class Past:
    """Knowledge on figures that was learned from their histories.

    :param unchanged: of each figure the newest sessions, since the last step in them.
    :param kinds: what figures of a kind (:attr:`Measured.kind`) have in common.
    """

    unchanged: dict[FigureKey, Series]
    kinds: dict[tuple[str, str], FigureKind]


def is_negligible(*measured: Measured) -> bool:
    """Whether values are of starts or ends of jobs that are all too short to be compared."""
    return all(
        one.figure.figure in STARTUP and bool((one.values < LEAST_STARTUP).all())
        for one in measured
    )


def learn_past(histories: Iterable[Measured]) -> Past:
    """Learn from the histories of figures what is usual.

    :param histories: in which nothing changed (:mod:`assay.results.unchanged`), or that somebody
        chose to learn from.
    """
    from assay.results.statistics.changes import find_changes, since_last_change

    found = [(one, past) for one in histories if (past := one.newest(NEWEST).series)]
    changes = find_changes([past for _, past in found])
    unchanged = {
        one.figure: since_last_change(past, steps)
        for (one, past), steps in zip(found, changes, strict=True)
    }
    of_kind: dict[tuple[str, str], list[Series]] = {}
    for one, _ in found:
        of_kind.setdefault(one.kind, []).append(unchanged[one.figure])
    return Past(unchanged, {kind: learn(alike) for kind, alike in of_kind.items()})
