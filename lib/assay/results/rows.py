"""The figures of a run as rows: each with its reference, its bounds and its verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, TypeGuard

from assay.results.cases import GOOD, Case, CaseFigure, Run, is_no_evidence
from assay.text import plain

# The verdicts of rows that fail a run.
BAD = {'fail', 'not run', 'no figure', 'abort', 'xpass'}


class Row(NamedTuple):
    """A figure of a case, and its verdict.

    :param figure: of a case that has none, one that is called ``-`` and has no value.
    """

    case: Case
    figure: CaseFigure
    verdict: str

    @property
    def room(self) -> float | None:
        """How far the value is inside its nearest bound, as a fraction of the reference.

        Negative where it is beyond.
        """
        one = self.figure
        if not one.reference or not is_number(one.value):
            return None
        rooms = []
        if one.lower is not None:
            rooms.append(one.value - one.lower)
        if one.upper is not None:
            rooms.append(one.upper - one.value)
        return min(rooms) / abs(one.reference) if rooms else None

    @property
    def leeway(self) -> float | None:
        """How far the value is from failing: 0 at its nearest bound, at most 1.

        As a part of what its reference allows or, if that is more, of the value itself: many
        references are limits that nothing reaches, and leave little below what everybody has.
        None if no value can be nearer than another.
        """
        one = self.figure
        if self.room is None or not is_number(one.value) or one.lower == one.upper:
            return None
        found = []
        for bound, side in ((one.lower, 1), (one.upper, -1)):
            if bound is None or one.value == bound == one.reference:
                continue
            inside = side * (one.value - bound)
            of = (side * ((one.reference or 0.0) - bound), max(abs(one.value), abs(bound)))
            found.append(max((inside / size for size in of if size > 0), default=0.0))
        return min(1.0, *found) if found else None


def nearest(rows: Iterable[Row], most: int = 1) -> list[Row]:
    """The rows that are nearest to failing, the nearest first."""
    held = [(leeway, row) for row in rows if (leeway := row.leeway) is not None]
    return [row for _, row in sorted(held, key=lambda one: one[0])[:most]]


def rows(run: Run) -> list[Row]:
    """One row for each figure, and one for each case that has none; build fixtures have none."""
    return [row for case in run.counted for row in rows_of(case)]


def rows_of(case: Case) -> list[Row]:
    """The rows of one case; none if it was skipped."""
    if case.result == 'skip':
        return []
    if figures := [figure for figure in case.figures if figure.value is not None]:
        return [row_of(case, figure) for figure in figures]
    if case.is_fixture and case.result in GOOD:
        return []
    return [row_of(case, CaseFigure('-', None))]


def row_of(case: Case, figure: CaseFigure) -> Row:
    """The row of one figure."""
    return Row(case, figure, _verdict(case, figure))


def _verdict(case: Case, figure: CaseFigure) -> str:
    if figure.name == '-' and case.result in GOOD:
        return 'pass' if case.is_fixture else 'no figure'
    if figure.value is not None and not is_number(figure.value):
        return 'fail'  # ReFrame compares what is no number with nothing, and passes it
    if figure.result in ('xfail', 'xpass'):
        return figure.result
    if is_beyond(figure.value, figure.lower, figure.upper):
        return 'disturbed' if is_no_evidence(case) else 'fail'
    if case.result in GOOD or figure.result == 'pass':  # else another figure may have failed
        return 'pass' if figure.has_bound else 'no bound'
    return 'not run' if case.result == 'fail_deps' else case.result


def is_beyond(value: float | None, lower: float | None, upper: float | None) -> bool:
    """Whether a value is beyond its bounds, whatever ReFrame was told to make of it."""
    if not is_number(value):
        return False  # which is judged by itself
    return (lower is not None and value < lower) or (upper is not None and value > upper)


def bounds_in_words(lower: float | None, upper: float | None) -> str:
    """The range that bounds allow, in words; empty if there are none."""
    if lower is None:
        return '' if upper is None else f'at most {number(upper)}'
    if upper is None:
        return f'at least {number(lower)}'
    return f'only {number(upper)}' if lower == upper else f'{number(lower)} to {number(upper)}'


def row_in_words(row: Row) -> str:
    """The figure of a row with what is allowed."""
    one = row.figure
    told = plain(f'{one.name} {with_unit(number(one.value), one.unit)}')
    bounds = bounds_in_words(one.lower, one.upper)
    return f'{told} ({bounds})' if bounds else told


def with_unit(text: str, unit: str) -> str:
    """A number, or words that end with one, with its unit; a ratio has none."""
    return text if unit in ('', '1') else f'{text} {unit}'


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many significant digits, and no exponent where people read without one."""
    if value is None:
        return '-'
    if not math.isfinite(value) or value == 0:
        return f'{value:g}'
    power = math.floor(math.log10(abs(value)))
    return f'{value:.{max(0, digits - 1 - power)}f}' if -7 < power < 15 else f'{value:.3e}'
