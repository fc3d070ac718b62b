"""Cases that failed: with one of two settings, or with both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from assay.comparing.sessions import Session
from assay.results.statistics.multiplicity import SUITE_RATE


@dataclass(frozen=True)
class Failing:
    """A case that failed.

    :param case: its name and partition.
    :param failed: in how many sessions of each setting.
    :param ran: in how many sessions of each it was run.
    """

    case: str
    failed: tuple[int, int]
    ran: tuple[int, int]

    def is_uneven(self, rate: float) -> bool:
        """Whether it failed with one setting alone, or more often than by chance.

        Of both the shares of sessions in which it failed are compared by Fisher's exact test,
        two-sided (Statistical Methods for Research Workers, 5th edition, 1934).

        :param rate: of this case alone, at which it is called uneven although it is not.
        """
        if not all(self.failed):
            return True
        # Here, as it takes longer to be imported than all else of a comparison.
        from scipy.stats import fisher_exact

        passed = [ran - failed for ran, failed in zip(self.ran, self.failed, strict=True)]
        return bool(fisher_exact([self.failed, passed]).pvalue <= rate)


def failing(sessions: Sequence[Session]) -> tuple[tuple[Failing, ...], tuple[Failing, ...]]:
    """Cases that failed unevenly with the two settings, and those that failed alike.

    The cases share the rate of the suite.
    """
    ran, failed = (Counter[str](), Counter[str]()), (Counter[str](), Counter[str]())
    for one in sessions:
        ran[one.side].update(one.ran)
        failed[one.side].update(one.failed)
    rate = SUITE_RATE / max(1, len({*ran[0], *ran[1]}))
    found = [
        Failing(case, *((counts[0][case], counts[1][case]) for counts in (failed, ran)))
        for case in sorted({*failed[0], *failed[1]})
    ]
    uneven = tuple(one for one in found if one.is_uneven(rate))
    return uneven, tuple(one for one in found if one not in uneven)
