"""Heat maps: a colour for each cell, drawn by Plotly, with the numbers in a table as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from assay.report.html.chart import Axis

#: Cells of a row or a column: none of them has a value, or shows what is in it.
Values = Sequence[Sequence[float | None]]
Texts = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Panel:
    """One of the maps that have their cells in common.

    :param title: what its colours tell; empty where there is one panel.
    :param values: shape (rows, columns), None where nothing was measured.
    """

    title: str
    values: Values


@dataclass(frozen=True)
class Mark:
    """Cells that are told apart by more than a colour.

    :param name: what they are.
    :param cells: row and column of each.
    :param style: which sign; the same for the same name in all charts.
    """

    name: str
    cells: Sequence[tuple[int, int]]
    style: int


@dataclass(frozen=True)
class Grid:
    """Panels of cells in rows and columns.

    :param across: what the columns are, and ``upwards`` the rows.
    :param columns: their names, of which no two are the same; also of ``rows``, from the top.
    :param measure: what a colour tells, and its unit. Logarithmic ones are above 0.
    :param colours: ``amount``: the darker the more; ``low`` or ``high``: what is bad of it;
        ``seats``: for 0, 1 and more.
    :param ends: the values of the first and the last colour; what is beyond has that one.
    :param headings: of the table, and ``cells`` its rows.
    :param labels: shape (rows, columns), what stands in the cells; empty for nothing.
    :param texts: shape (rows, columns), what the cells are called; empty for row and column.
    """

    title: str
    across: Axis
    upwards: Axis
    columns: Sequence[str]
    rows: Sequence[str]
    measure: Axis
    colours: Literal['amount', 'low', 'high', 'seats']
    ends: tuple[float, float]
    panels: Sequence[Panel]
    headings: Sequence[str]
    cells: Sequence[Sequence[str]]
    marks: Sequence[Mark] = ()
    notes: Sequence[str] = ()
    labels: Texts = ()
    texts: Texts = ()
    kind: Literal['grid'] = 'grid'

    @property
    def quantity(self) -> str:
        """What the numbers are."""
        return self.measure.title

    @property
    def drawn(self) -> dict[str, Any]:
        """What draws it: all but its table."""
        return {name: one for name, one in asdict(self).items() if name not in _OF_TABLE}


_OF_TABLE = ('headings', 'cells', 'notes')
