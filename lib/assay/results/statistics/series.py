"""One figure over runs: checked, in order of time, and each session reduced to one location."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay import AssayError

Floats = NDArray[np.float64]

#: How much of each end a location leaves out: of five values the least and the greatest.
TRIM = 0.2
DAY = 86400.0
#: Values with as many digits behind the point are not taken to be rounded.
DIGITS = 4
#: By so much of itself a number of few digits may be off, as it is stored.
ROUNDING = 1e-12
#: No figure is greater: of numbers that are nearly the greatest there is no mean.
GREATEST = 1e300
#: No time is later, or as much before 1970: 10000-01-01, in seconds.
LATEST = 253402300800.0


@dataclass(frozen=True, eq=False)
class Series:
    """The values of one figure, one a run, in order of time.

    :param values: shape (n,), in the unit of the figure.
    :param times: shape (n,), seconds; when each run began.
    :param sessions: shape (n,), which runs were repeats within one session. Repeats share what
        happened to the machine then, so all of a session count as one observation.
    """

    values: Floats
    times: Floats
    sessions: NDArray[np.int64]

    @property
    def size(self) -> int:
        """The number of sessions."""
        return len(self._groups)

    @cached_property
    def has_logarithms(self) -> bool:
        """Whether all values are above 0, so that ratios mean something."""
        return bool(self.values.min() > 0)

    @property
    def has_order(self) -> bool:
        """Whether its sessions have more than one time: otherwise their order is unknown."""
        return bool(np.ptp(self.session_times) > 0)

    @cached_property
    def locations(self) -> Floats:
        """The location of each session in order of time: of the logarithms, natural."""
        logs = np.log(self.values)
        if self.size == len(logs):
            return logs
        return np.array([trimmed_mean(logs[runs]) for runs in self._groups])

    @cached_property
    def step(self) -> float:
        """The step between values that were rounded when they were printed, over their median.

        Of values such as 0.02, 0.02 and 0.03 it is a half. It is the coarsest of 1, 0.1, 0.01 and
        so on that all values are multiples of, and 0 if they have more digits.
        """
        middle = float(np.median(self.values))
        for digits in range(DIGITS if middle > 0 else 0):
            scaled = self.values * 10**digits
            if (np.abs(np.round(scaled) - scaled) <= ROUNDING * scaled).all():
                return float(10.0**-digits / middle)
        return 0.0

    @property
    def session_times(self) -> Floats:
        """When each session began, seconds, in the order of ``locations``."""
        return np.array([self.times[runs[0]] for runs in self._groups])

    @property
    def repeats(self) -> float:
        """Runs a session, as the harmonic mean, which is what a mean's variance goes by."""
        if self.size == len(self.values):
            return 1.0
        return self.size / sum(1 / len(runs) for runs in self._groups)

    @property
    def within(self) -> tuple[float, int]:
        """Variance of the logarithms within sessions, and its degrees of freedom (0 if unknown)."""
        freedom = len(self.values) - self.size
        if not freedom:
            return 0.0, 0
        groups = [np.log(self.values[runs]) for runs in self._groups]
        return sum(float(((one - one.mean()) ** 2).sum()) for one in groups) / freedom, freedom

    def newest(self, sessions: int) -> Series:
        """Its newest sessions."""
        if self.size <= sessions:
            return self
        # Not by time: repeats of sessions that overlap stand among each other.
        kept = np.isin(self.sessions, [self.sessions[runs[0]] for runs in self._groups[-sessions:]])
        return Series(self.values[kept], self.times[kept], self.sessions[kept])

    @cached_property
    def _groups(self) -> list[list[int]]:
        """The runs of each session; sessions by when they began."""
        found: dict[int, list[int]] = {}
        for run, session in enumerate(self.sessions.tolist()):
            found.setdefault(session, []).append(run)
        return list(found.values())


def series(
    values: ArrayLike, times: ArrayLike | None = None, sessions: ArrayLike | None = None
) -> Series:
    """The values of one figure over runs, sorted by time.

    :param values: one a run; not negative.
    :param times: seconds; without them the runs are taken to be in order, a day apart.
    :param sessions: numbers or names, the same for repeats of one session; without them each run is
        a session of its own.
    :raises AssayError: if there is no value, a value or time is not a finite number, or beyond all
        that are measured (``GREATEST``, ``LATEST``), a value is negative, or the lengths differ.
    """
    try:
        numbers: Floats = np.asarray(values, dtype=np.float64)
        days = np.arange(numbers.size, dtype=np.float64) * DAY
        when: Floats = days if times is None else np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise AssayError(f'values and times of a figure must be numbers: {error}') from error
    names = np.arange(numbers.size)
    if sessions is not None:
        names = np.unique(np.asarray(sessions), return_inverse=True)[1]
    if numbers.ndim != 1 or when.shape != numbers.shape or names.shape != numbers.shape:
        raise AssayError(
            f'a figure needs one time and one session for each of its values: there are '
            f'{numbers.size} values, {when.size} times, {names.size} sessions'
        )
    if not numbers.size:
        raise AssayError('a figure without any value cannot be judged')
    for what, some, most in (('value', numbers, GREATEST), ('time', when, LATEST)):
        if bad := np.count_nonzero(~np.isfinite(some)):
            raise AssayError(f'{bad} of {some.size} {what}s are not finite numbers')
        if bad := np.count_nonzero(np.abs(some) > most):
            raise AssayError(f'{bad} of {some.size} {what}s are beyond {most:.4g}')
    if bad := np.count_nonzero(numbers < 0):
        raise AssayError(f'{bad} of {numbers.size} values are negative: a ratio means nothing')
    order = np.argsort(when, kind='stable')
    return Series(numbers[order], when[order], names[order])


def ratio(change: float) -> float:
    """The ratio that a difference of logarithms is; infinite beyond all numbers."""
    try:
        return math.exp(change)
    except OverflowError:
        return math.inf


def trimmed_mean(values: Floats) -> Floats:
    """Trimmed mean along the last axis: a fifth of the values is left out at each end.

    Of three values it is the median, of one or two the mean. It costs 13% in variance where five
    values are normal; of five with tails as heavy as Student's t with 3 degrees of freedom its
    variance is 0.60 of the mean's and 0.90 of the median's (measured). Source: Tukey and
    McLaughlin, Sankhya A 25 (1963).

    :param values: shape (..., n).
    :returns: shape (...).
    """
    n = values.shape[-1]
    cut = max(int(TRIM * n), int(n > 2))
    inner: Floats = np.sort(values, axis=-1)[..., cut : n - cut].mean(axis=-1)
    return inner
