"""A series of values in one line of a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

#: Levels from the least to the greatest value, and what stands where there is no value.
BLOCKS, GAP = '▁▂▃▄▅▆▇█', '·'
ASCII_BLOCKS, ASCII_GAP = '_.-:=+*#', '?'


def sparkline(
    places: Iterable[int], values: Iterable[float], length: int, width: int, encoding: str = 'utf-8'
) -> str:
    """Values at some of ``length`` places, as a line of at most ``width`` characters.

    Where there are more places than characters, each stands for the median of its share of them.

    :param places: shape (n,), each below ``length``.
    :param values: shape (n,), finite; the least and the greatest are the ends of the scale.
    :param encoding: of the terminal; where it has no blocks, ASCII stands for them.
    """
    try:
        f'{BLOCKS}{GAP}'.encode(encoding)
        blocks, gap = BLOCKS, GAP
    except (LookupError, UnicodeEncodeError):
        blocks, gap = ASCII_BLOCKS, ASCII_GAP
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
