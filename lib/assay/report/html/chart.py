"""What a chart shows: the page draws it by Plotly, and has its numbers in a table as well."""

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
class Series:
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
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    @property
    def places(self) -> Places:
        """Where anything stands."""
        found = {place: None for one in self.series for place in one.at}
        if self.kind == 'lines':
            return sorted(place for place in found if not isinstance(place, str))
        return self.order or [place for place in found if isinstance(place, str)]

    @property
    def quantity(self) -> str:
        """What the numbers are."""
        return (self.upwards if self.kind == 'lines' else self.across).title

    @property
    def drawn(self) -> dict[str, Any]:
        """What draws it."""
        return {**asdict(self), 'places': self.places}

    @property
    def headings(self) -> list[str]:
        """Of the table: the place, and each series."""
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
