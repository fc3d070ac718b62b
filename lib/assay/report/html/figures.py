"""The table of figures: each with what it is held to, its history, and a link that stays."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.report.console import sparkline
from assay.report.html.charts import reached
from assay.results.cases import Case
from assay.results.history import History, StoredRun
from assay.results.rows import Row, is_number, number, of_unit, rows_of

#: Runs of which a history is shown, and the characters that it takes.
RUNS, WIDTH = 60, 12

#: What a verdict is to the page: a symbol and a colour. Any other is ``bad``.
KINDS = {'pass': 'good', 'xfail': 'good', 'disturbed': 'odd', 'no bound': 'none'}

#: Values of a figure by run: its partition, environment, case, name and unit.
Key = tuple[str, str, str, str, str]
Past = Mapping[Key, Mapping[str, float]]


@dataclass(frozen=True)
class FigureLine:
    """A figure of the table.

    :param anchor: what a link to it ends with; the same in the page of every run.
    :param value: with its unit.
    :param reference: what it is held to.
    :param off_by: how far it is from that, and ``room`` how far from failing, in words.
    :param allowed: what it is held to, in words; ``-`` if nothing holds it.
    :param of_limit: how much of the machine's limit was reached, in words.
    :param history: a sparkline, or nothing if it is of one run only.
    :param before: its value in the run to compare with, and how it changed since.
    :param kind: of its verdict: ``good``, ``bad``, ``odd`` or ``none``.
    """

    row: Row
    partition: str
    anchor: str
    value: str
    reference: str
    allowed: str
    off_by: str
    room: str
    of_limit: str
    history: str
    before: tuple[str, str]
    kind: str

    @property
    def is_held(self) -> bool:
        """Whether it can fail by a reference."""
        return self.row.lower is not None or self.row.upper is not None

    @property
    def is_shown_first(self) -> bool:
        """Whether people ask for it before others: it is held, or a headline."""
        return self.row.verdict != 'no bound' or self.row.headline


def figure_lines(
    cases: Sequence[Case], past: Past, runs: Sequence[StoredRun], before: StoredRun | None
) -> list[FigureLine]:
    """All figures of some cases, and a line for each case that has none.

    :param past: their values in these runs.
    :param before: the run whose values stand beside them.
    """
    seen: dict[str, int] = {}
    found = []
    for case in cases:
        where = (case.partition, case.environment, case.name)
        name = case.full_name
        for row in rows_of(case):
            values = past.get((*where, row.figure, row.unit), {})
            text = f'{name} {row.figure}'
            seen[text] = seen.get(text, 0) + 1
            anchor = f'f{hashlib.sha1(text.encode(errors="replace")).hexdigest()[:10]}'
            found.append(
                FigureLine(
                    row,
                    case.partition,
                    anchor if seen[text] == 1 else f'{anchor}-{seen[text]}',
                    of_unit(number(row.value), row.unit),
                    number(row.reference),
                    _allowed(row),
                    _change(row.value, row.reference),
                    '-' if row.room is None else _percent(row.room, '+'),
                    _of_limit(row),
                    _history(values, runs),
                    _before(row, values.get(before.uuid) if before else None),
                    KINDS.get(row.verdict, 'bad'),
                )
            )
    return found


def past(history: History | None, runs: Sequence[StoredRun]) -> Past:
    """The values of all figures in some runs; of several in one run their median.

    :raises AssayError: if the report of one can no longer be read.
    """
    if not history or not runs:
        return {}
    import polars as pl

    columns = ('partition', 'environment', 'case', 'figure', 'unit')
    table = (
        history.figures(runs)
        .lazy()
        .filter(pl.col('value').is_finite())
        .group_by(*columns, 'run')
        .agg(pl.col('value').median())
        .with_columns(pl.col(*columns, 'run').cast(pl.String))
        .group_by(columns)
        .agg('run', 'value')
        .collect()
    )
    return {
        (partition, environment, case, figure, unit or ''): dict(zip(of_runs, values, strict=True))
        for partition, environment, case, figure, unit, of_runs, values in table.iter_rows()
    }


def _allowed(row: Row) -> str:
    words = [
        f'{sign} {number(bound)}'
        for sign, bound in (('≥', row.lower), ('≤', row.upper))
        if bound is not None
    ]
    return ', '.join(words) or '-'


def _change(value: float | None, since: float | None) -> str:
    """How far a value is from another, in percent of that."""
    if not since or not is_number(value):
        return '-'
    return _percent((value - since) / abs(since), '+')


def _of_limit(row: Row) -> str:
    part = reached(row.figure, row.value)
    return '-' if part is None else _percent(part)


def _percent(part: float, sign: str = '') -> str:
    if not is_number(100 * part):
        return '-'
    return f'{part:{sign}.1%}' if abs(part) < 1e6 else f'{100 * part:{sign}.1e}%'


def _history(values: Mapping[str, float], runs: Sequence[StoredRun]) -> str:
    places = [number for number, run in enumerate(runs) if run.uuid in values]
    if len(places) < 2:
        return ''
    numbers = [values[runs[place].uuid] for place in places]
    return sparkline(places, numbers, len(runs), WIDTH)


def _before(row: Row, value: float | None) -> tuple[str, str]:
    if value is None:
        return '-', '-'
    return number(value), _change(row.value, value)
