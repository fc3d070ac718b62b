"""A series of values in one line of a terminal."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

#: Levels from the least to the greatest value, and what stands where there is no value.
BLOCKS, GAP = '▁▂▃▄▅▆▇█', '·'
ASCII_BLOCKS, ASCII_GAP = '_.-:=+*#', '?'


def sparkline(
    places: ArrayLike, values: ArrayLike, length: int, width: int, encoding: str = 'utf-8'
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
    buckets = np.asarray(places, dtype=int) * width // max(length, 1)
    numbers = np.asarray(values, dtype=float)
    medians = {int(one): float(np.median(numbers[buckets == one])) for one in np.unique(buckets)}
    low, high = min(medians.values(), default=0.0), max(medians.values(), default=0.0)
    if high == low:
        level = {one: len(blocks) // 2 for one in medians}
    else:
        level = {
            one: round((value - low) / (high - low) * (len(blocks) - 1))
            for one, value in medians.items()
        }
    return ''.join(blocks[level[one]] if one in level else gap for one in range(width))
