"""Two settings measured in turn: what is said of them at first, and in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from assay.comparing.failing import Failing, failing
from assay.comparing.pairs import decisions, said_of
from assay.comparing.sessions import Session, stored
from assay.comparing.suspects import Suspect
from assay.results.diff.difference import Difference, difference
from assay.results.history import History
from assay.results.statistics.comparison import MARGIN
from assay.running.setting import Settings


@dataclass(frozen=True, eq=False)
class Interleaved:
    """All that is said of two settings.

    :param settings: before, and after.
    :param difference: what was measured again with what the pairs say of it; without what failed.
    :param suspects: how many figures were to be measured again.
    :param pairs: how many pairs were measured.
    :param uneven: cases that fail with one of them, or far more often with it.
    :param failed: cases that fail with both alike.
    :param stopped: why it ended before all was decided; empty if it did not.
    """

    settings: Settings
    difference: Difference
    suspects: int
    pairs: int
    uneven: tuple[Failing, ...]
    failed: tuple[Failing, ...]
    stopped: str

    @property
    def is_worse(self) -> bool:
        return self.difference.is_worse or bool(self.uneven)

    @property
    def verdict(self) -> str:
        """In a word."""
        return 'worse' if self.is_worse else self.difference.verdict

    @property
    def exit_code(self) -> int:
        return 1 if self.is_worse else self.difference.exit_code


def compare_at_first(
    history: History,
    sessions: Sequence[Session],
    settings: Settings,
    margin: float = MARGIN,
) -> Difference:
    """What the first sessions say.

    :raises AssayError: if they have nothing in common, or are not stored.
    """
    before, after = stored(history, sessions)
    return difference(history, before, after, margin, settings)


def finish(
    history: History,
    found: Difference,
    wanted: Sequence[Suspect],
    first: Sequence[Session],
    pairs: Sequence[Session],
    settings: Settings,
    stopped: str = '',
) -> Interleaved:
    """What is said in the end.

    :param found: what :func:`compare_at_first` said of the sessions ``first``.
    :param stopped: why it ended, if that was before all was decided.
    """
    told = decisions(history, wanted, pairs, settings, found.margin)
    first_said = {one.figure: one for one in found.figures}
    again = {
        figure: said_of(first_said[figure], one, len(wanted), found.margin, stopped)
        for figure, one in told.items()
    }
    both = found.before, found.after
    in_the_end = difference(history, *both, found.margin, settings, again, found.earlier)
    uneven, failed = failing([*first, *pairs])
    return Interleaved(
        settings,
        # Failures of all sessions are reported, not of the first alone.
        replace(in_the_end, lost=(), at_times=()),
        len(wanted),
        len(pairs) // 4 * 2,
        uneven,
        failed,
        stopped if not wanted or not all(one.is_decided for one in told.values()) else '',
    )
