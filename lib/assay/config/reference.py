"""A reference: a value with bounds, and whether it would let a wrong figure pass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.programs.figure import Figure


@dataclass(frozen=True)
class Reference:
    """What a figure is held to.

    :param lower: how far below the value the figure may be, as a fraction of the value (as it is
        where the value is 0); None if there is no bound.
    :param upper: the same above.
    :param excuse: why the figure is known to miss it, as the file announces; None if it is not.
    :param path: the file.
    """

    value: float
    lower: float | None
    upper: float | None
    unit: str
    excuse: str | None
    path: Path

    @classmethod
    def read(cls, given: list[Any], path: Path) -> Reference:
        """From a faultless one, as it stands in a file."""
        excuse = None
        if given[0] == '$xfail':
            _, excuse, given = given
        value, lower, upper, unit = given
        return cls(value, lower, upper, str(unit), excuse, path)

    @property
    def is_release(self) -> bool:
        """Whether it says that the figure is held to nothing."""
        return self.lower is None and self.upper is None

    @property
    def excludes_below(self) -> bool:
        """Whether a figure can be too low for it. None is negative: a bound of 0 excludes none."""
        return self.lower is not None and self.value * (1 + self.lower) > 0

    @property
    def excludes_above(self) -> bool:
        """Whether a figure can be too high for it."""
        return self.upper is not None

    @property
    def can_fail(self) -> bool:
        """Whether there is a figure, of any direction, that misses it."""
        return self.excludes_below or self.excludes_above

    def fault(self, name: str, figure: Figure) -> str | None:
        """Why it would pass a figure that is wrong, as a sentence; None if it would not."""
        if self.unit != figure.unit:
            return (
                f'the reference {self.value} of {name} is in {self.unit!r}, the figure in '
                f'{figure.unit!r}'
            )
        below, above = self.excludes_below, self.excludes_above
        exact = above and (below or self.value == 0)
        if self.is_release or {'higher': below, 'lower': above, 'exact': exact}[figure.better]:
            return None
        side = 'both sides' if figure.better == 'exact' else 'the other side'
        return (
            f'the reference {self.value} of {name} cannot fail: {figure.better} is better, and '
            f'there is no bound on {side}'
        )

    def as_reframe(self) -> Any:
        """As ReFrame takes it."""
        from reframe.core.builtins import xfail

        reference = (self.value, self.lower, self.upper, self.unit)
        return reference if self.excuse is None else xfail(self.excuse, reference)
