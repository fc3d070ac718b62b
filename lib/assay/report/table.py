"""Tables of text as wide as the window, and how numbers stand in them.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

# Rows of a table before the rest is only counted, and columns of a window that shows all of it.
MOST_ROWS, WIDE = 16, 100


def say(out: Console, text: str) -> None:
    """A line of text as it is, wrapped by nobody."""
    out.print(text, markup=False, soft_wrap=True)


def table(
    out: Console, title: str, columns: str, rows: Iterable[Iterable[object]], all_rows: bool = False
) -> None:
    """A table under a title: the first rows, and how many more there are.

    :param columns: headings, divided by ``|``. One that starts with ``<`` is of text, and one that
        starts with ``~`` is left out of a narrow window.
    """
    from rich.table import Table
    from rich.text import Text

    headings = columns.split('|')
    kept = [n for n, heading in enumerate(headings) if out.width >= WIDE or heading[:1] != '~']
    rows = list(rows)
    first = rows if all_rows else rows[:MOST_ROWS]
    shown = Table(box=None, pad_edge=False, header_style='bold')
    for heading in (headings[n].removeprefix('~') for n in kept):
        if heading.startswith('<'):
            shown.add_column(heading[1:], overflow='fold', max_width=40)
        else:
            shown.add_column(heading, justify='right', no_wrap=True)
    for row in first:
        cells = list(row)
        shown.add_row(*(Text(plain(cells[n])) for n in kept))
    # A table that is too wide all the same is wrapped by the window, not cut here.
    shown.width = out.measure(shown, options=out.options.update(max_width=1000)).maximum
    out.print()
    say(out, f'{title}:')
    out.print(shown, crop=False, no_wrap=True, overflow='ignore')
    if len(rows) > len(first):
        say(out, f'... and {len(rows) - len(first)} more')


def percent(fraction: float) -> str:
    return f'{fraction:.1%}'


def seconds(time: float) -> str:
    """To the microsecond, so that a column can be compared at a glance."""
    return f'{time:.6f}'
