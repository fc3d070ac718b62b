"""Output on the terminal: control characters made visible, tables, numbers and sparklines.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from assay.text import VisibleStream, plain, visible_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console


def write_visibly() -> None:
    """Make control characters visible in all that this process prints from now on."""
    sys.stdout = VisibleStream(sys.stdout)
    sys.stderr = VisibleStream(sys.stderr)


def console(errors: bool = False) -> Console:
    """Standard output, or that of errors; without a window it is so wide that no figure is cut.

    Control characters in text are made visible; only Rich's own colours reach the terminal.
    """
    from rich.console import Console
    from rich.segment import Segment

    class VisibleConsole(Console):
        def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
            for one in super().render(*arguments, **options):
                yield one if one.control else Segment(visible_lines(one.text), one.style)

    out = sys.stderr if errors else sys.stdout
    limited = out.isatty() or 'COLUMNS' in os.environ
    file = out.beneath if isinstance(out, VisibleStream) else out
    return VisibleConsole(file=file, highlight=False, width=None if limited else 160)


# Tables and numbers -------------------------------------------------------------------------------


# Rows of a table before the rest is only counted, and columns of a window that shows all of it.
MOST_ROWS, WIDE = 16, 100
#: Characters that a column of text has at most, those of a word that is not folded, and those
#: between two columns.
MOST_TEXT, MOST_WORD, GAP = 40, 26, 2
#: A ratio beyond this, either way, is no percentage that anybody reads.
FAR = 10.0
#: And beyond this the number does not matter.
FURTHEST = 1000.0


def print_line(out: Console, text: str) -> None:
    """Print a line of text as it is, without markup and without wrapping it."""
    out.print(text, markup=False, soft_wrap=True)


def height(text: str, width: int) -> int:
    """How many lines of a window a text takes."""
    return sum(max(1, -(-len(line) // width)) for line in text.split('\n'))


def print_table(
    out: Console, title: str, columns: str, rows: Iterable[Iterable[object]], all_rows: bool = False
) -> None:
    """Print a table under a title: its first rows and how many more there are, or ``none``.

    :param columns: headings, divided by ``|``. One that starts with ``<`` is of text, and one that
        starts with ``~`` is left out of a narrow window.
    """
    from rich.table import Table
    from rich.text import Text

    headings = columns.split('|')
    kept = [n for n, heading in enumerate(headings) if out.width >= WIDE or heading[:1] != '~']
    rows = list(rows)
    out.print()
    if not rows:
        print_line(out, f'{title}: none')
        return
    first = rows if all_rows else rows[:MOST_ROWS]
    cells = [[plain(row[n]) for n in kept] for row in map(list, first)]
    shown = Table(box=None, pad_edge=False, header_style='bold')
    least = 0
    for place, heading in enumerate(headings[n].removeprefix('~') for n in kept):
        name = heading.removeprefix('<')
        whole = [name, *(row[place] for row in cells)]
        if name != heading:
            shown.add_column(name, overflow='fold', max_width=MOST_TEXT)
            words = [word for text in whole for word in text.split()]
            least += min(MOST_WORD, max(map(len, words), default=0)) + GAP
        else:
            shown.add_column(heading, justify='right', no_wrap=True)
            least += max(map(len, whole)) + GAP
    for row in cells:
        shown.add_row(*map(Text, row))
    most = out.measure(shown, options=out.options.update(max_width=1000)).maximum
    # What is too wide for its words and numbers is wrapped by the window: none is cut here.
    shown.width = min(most, max(least - GAP, out.width))
    print_line(out, f'{title}:')
    out.print(shown, crop=False, no_wrap=True, overflow='ignore')
    if len(rows) > len(first):
        print_line(out, f'... and {len(rows) - len(first)} more')


def percent(fraction: float) -> str:
    return f'{fraction:.1%}'


def as_change(ratio: float) -> str:
    """How much something changed, such as ``-5.0%``; beyond tenfold ``40x``, or ``0.025x``."""
    if not is_tenfold(ratio):
        return f'{ratio - 1:+.1%}'
    if 1 / FURTHEST <= ratio <= FURTHEST:
        return f'{ratio:.3g}x'
    return f'>{FURTHEST:g}x' if ratio > 1 else f'<{1 / FURTHEST:g}x'


def is_tenfold(ratio: float) -> bool:
    """Whether a ratio is beyond tenfold, where a percentage says little."""
    return not 1 / FAR <= ratio <= FAR


def as_multiple(ratio: float) -> str:
    """A change beyond tenfold in a sentence: ``40 times as much``."""
    if 1 / FURTHEST <= ratio <= FURTHEST:
        return f'{ratio:.3g} times as much'
    limit, how = (FURTHEST, 'more') if ratio > 1 else (1 / FURTHEST, 'less')
    return f'{how} than {limit:g} times as much'


def as_interval(low: float, high: float) -> str:
    """The interval of a ratio, such as ``-5.0% to +2.0%``.

    It is ``unknown`` if both ends are beyond tenfold. A few runs hardly tell their own error, and
    ratios are compared by their logarithms, so that the ends may be beyond all sense.
    """
    if low < 1 / FAR and high > FAR:
        return 'unknown'
    return f'{as_change(low)} to {as_change(high)}'


def in_seconds(time: float) -> str:
    """To the microsecond, so that a column can be compared at a glance."""
    return f'{time:.6f}'


# A series of values in a line ---------------------------------------------------------------------


#: Levels from the least to the greatest value, and what stands where there is no value.
BLOCKS, NOTHING = '▁▂▃▄▅▆▇█', '·'
ASCII_BLOCKS, ASCII_NOTHING = '_.-:=+*#', '?'


def sparkline(
    places: Iterable[int], values: Iterable[float], length: int, width: int, encoding: str = 'utf-8'
) -> str:
    """Values at some of ``length`` places, as a line of at most ``width`` characters.

    Where there are more places than characters, each stands for the median of its share of them.

    :param places: shape (n,), each below ``length``.
    :param values: shape (n,), finite; the least and the greatest are the ends of the scale.
    :param encoding: of the terminal; where it has no blocks, ASCII stands for them.
    """
    from statistics import median

    try:
        f'{BLOCKS}{NOTHING}'.encode(encoding)
        blocks, gap = BLOCKS, NOTHING
    except (LookupError, UnicodeEncodeError):
        blocks, gap = ASCII_BLOCKS, ASCII_NOTHING
    width = min(width, length)
    buckets: dict[int, list[float]] = {}
    for place, value in zip(places, values, strict=True):
        # Of the greatest numbers there is no sum and no difference: of their halves there is.
        buckets.setdefault(int(place) * width // max(length, 1), []).append(float(value) / 2)
    medians = {one: median(its) for one, its in buckets.items()}
    low, high = min(medians.values(), default=0.0), max(medians.values(), default=0.0)
    if high == low:
        level = {one: len(blocks) // 2 for one in medians}
    else:
        level = {
            one: round((value - low) / (high - low) * (len(blocks) - 1))
            for one, value in medians.items()
        }
    return ''.join(blocks[level[one]] if one in level else gap for one in range(width))
