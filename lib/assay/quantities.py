"""Times and percentages as every option and message writes them: ``20m``, ``5%``."""

from __future__ import annotations

import math
import re

from assay import AssayError

_TIME = re.compile(r'(?:([0-9]{1,5})d)?(?:([0-9]{1,4})h)?(?:([0-9]{1,5})m)?(?:([0-9]{1,6})s)?')
_PERCENTAGE = re.compile(r'([0-9]{1,4}(?:\.[0-9]{1,9})?)%')


def seconds_of(text: str) -> float:
    """The seconds of a time such as ``90s``, ``20m``, ``1h30m`` or ``365d``.

    :raises AssayError: if it is none, or 0.
    """
    match = _TIME.fullmatch(text)
    days, hours, minutes, seconds = (int(one or 0) for one in match.groups()) if match else [0] * 4
    total = 60 * (60 * (24 * days + hours) + minutes) + seconds
    if not total:
        raise AssayError(f'{text!r}: write a time such as 90s, 20m, 1h30m or 365d.')
    return float(total)


def duration_text(seconds: float) -> str:
    """A time as :func:`seconds_of` reads it, rounded up to a second."""
    left = max(1, math.ceil(seconds))
    words = []
    for unit, size in (('d', 24 * 3600), ('h', 3600), ('m', 60), ('s', 1)):
        count, left = divmod(left, size)
        words += [f'{count}{unit}'] * bool(count)
    return ''.join(words)


def clock_seconds(text: str) -> int | None:
    """The seconds of a time as schedulers write it.

    It is ``10`` or ``10:30`` (minutes), ``2:00:00``, ``1-2``, ``1-2:30`` or ``1-02:03:04`` (days):
    "Acceptable time formats" of sbatch(1).

    :returns: None if it is none, as ``UNLIMITED``.
    """
    match = re.fullmatch(r'(?:(\d+)-)?(\d+(?::\d+){0,2})', text)
    if not match:
        return None
    parts = [int(one) for one in match[2].split(':')]
    if match[1] is None and len(parts) < 3:
        parts.insert(0, 0)
    hours, minutes, seconds = [*parts, 0, 0][:3]
    return 60 * (60 * (24 * int(match[1] or 0) + hours) + minutes) + seconds


def fraction_of(text: str) -> float:
    """The fraction that a percentage such as ``5%`` or ``2.5%`` is.

    :raises AssayError: if it is none.
    """
    if not (match := _PERCENTAGE.fullmatch(text)):
        raise AssayError(f'{text!r}: write a percentage such as 5% or 2.5%.')
    return float(match[1]) / 100
