"""Lists of numbers as Linux writes them, of CPUs and of ranks."""

from __future__ import annotations

import re
from functools import lru_cache

#: Numbers that a list may stand for: no machine has so many.
MOST = 1 << 20


@lru_cache(maxsize=4096)
def parse_cpus(text: str) -> frozenset[int]:
    """The numbers of a Linux list such as ``0-3,8``.

    :raises ValueError: if it is not one.
    """
    numbers: set[int] = set()
    listed = 0
    for part in text.split(',') if text else []:
        if not (match := re.fullmatch(r'(\d+)(?:-(\d+))?', part)):
            raise ValueError(f'not a list of numbers such as 0-3,8: {text!r}')
        first, last = int(match[1]), int(match[2] or match[1])
        listed += max(0, last - first + 1)
        if listed > MOST:
            raise ValueError(f'more than {MOST} numbers: {part}')
        numbers.update(range(first, last + 1))
    return frozenset(numbers)


def as_list(numbers: frozenset[int] | set[int] | list[int]) -> str:
    """Numbers as a Linux list: ``0-3,8``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ','.join('-'.join(map(str, run)) for run in runs)
