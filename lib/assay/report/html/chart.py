"""Charts and heat maps: the page draws them by Plotly, and has their numbers in tables as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from assay.results.rows import number

#: Places on an axis: numbers, or names of what is measured.
Places = Sequence[float] | Sequence[str]


@dataclass(frozen=True)
class Axis:
    """An axis of numbers.

    :param title: what it is, and its unit.
    """

    title: str
    is_logarithmic: bool = False


@dataclass(frozen=True)
class ChartSeries:
    """Values that belong together.

    :param at: shape (n,), where each stands.
    :param values: shape (n,), finite.
    :param colour: which colour of the page; series that share something share it.
    :param style: which line and mark, so that no series is known by its colour alone.
    :param form: ``line``; ``faint``, of an earlier run; ``marks``, without a line.
    :param group: what the legend calls it together with others; empty to name it by itself.
    """

    name: str
    at: Places
    values: Sequence[float]
    colour: int = 0
    style: int = 0
    form: Literal['line', 'faint', 'marks'] = 'line'
    group: str = ''


@dataclass(frozen=True)
class Chart:
    """Some series.

    :param kind: ``lines`` over numbers; ``bars`` beside each other or ``stacked`` ones, each of a
        name on the upright axis.
    :param across: the axis of the places of lines, and of the values of bars.
    :param upwards: the axis of the values of lines; of bars, what their names are.
    :param notes: what there is to know of it, a sentence each.
    :param order: of the names of bars, from the top; empty to take them as they come.
    """

    title: str
    kind: Literal['lines', 'bars', 'stacked']
    across: Axis
    upwards: Axis
    series: tuple[ChartSeries, ...]
    notes: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    @property
    def places(self) -> Places:
        """The places along the axis: for lines the numbers, sorted; for bars ``order``, if any."""
        found = {place: None for one in self.series for place in one.at}
        if self.kind == 'lines':
            return sorted(place for place in found if not isinstance(place, str))
        return self.order or [place for place in found if isinstance(place, str)]

    @property
    def quantity(self) -> str:
        """The quantity in the table, with its unit."""
        return (self.upwards if self.kind == 'lines' else self.across).title

    @property
    def drawn(self) -> dict[str, Any]:
        """The data for the script of the page."""
        return {**asdict(self), 'places': self.places}

    @property
    def headings(self) -> list[str]:
        """The headings of the table: the place, and each series."""
        first = self.across if self.kind == 'lines' else self.upwards
        return [first.title, *(one.name for one in self.series)]

    @property
    def cells(self) -> list[list[str]]:
        """The table: a row for each place, with the value of each series there."""
        columns = [dict(zip(one.at, one.values, strict=True)) for one in self.series]
        return [
            [_name(place), *(number(column.get(place)) for column in columns)]
            for place in self.places
        ]


def _name(place: float | str) -> str:
    return place if isinstance(place, str) else f'{place:g}' if place % 1 else f'{place:.0f}'


# Maps ---------------------------------------------------------------------------------------------


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
    """Cells that differ from others by more than a colour.

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
    :param columns: their names, all different; also of ``rows``, from the top.
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
        """The quantity in the table, with its unit."""
        return self.measure.title

    @property
    def drawn(self) -> dict[str, Any]:
        """The data for the script of the page: all but the table."""
        return {name: one for name, one in asdict(self).items() if name not in _OF_TABLE}


_OF_TABLE = ('headings', 'cells', 'notes')
