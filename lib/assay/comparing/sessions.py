"""Sessions of two settings, in the order A B B A: what came of each, and which cases failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from assay import AssayError
from assay.results.cases import Run
from assay.results.failures import is_bad
from assay.results.history import History, StoredRun
from assay.results.statistics.multiplicity import SUITE_RATE
from assay.running.setting import Settings

#: Sessions before anything is measured again: this many times four.
FIRST = 2


@dataclass(frozen=True)
class ComparedSession:
    """A session of a setting, with those that measured its disturbed cases again.

    :param side: 0 of the first setting, 1 of the second.
    :param uuids: of their runs, in order of time.
    :param ran: its cases that were run, without the parts of their names that the settings choose.
    :param failed: those that failed.
    :param disturbed: those that others disturbed each time.
    """

    side: int
    uuids: tuple[str, ...]
    ran: frozenset[str]
    failed: frozenset[str]
    disturbed: frozenset[str] = frozenset()

    def with_retry(self, again: ComparedSession) -> ComparedSession:
        """This session with a later one, which measured its disturbed cases again."""
        return replace(
            self,
            uuids=(*self.uuids, *again.uuids),
            failed=self.failed | again.failed,
            disturbed=self.disturbed & again.disturbed,
        )


def session(run: Run, side: int, settings: Settings) -> ComparedSession:
    """The result of a session of a side."""
    ran, failed, disturbed = set(), set(), set()
    for case in run.own_cases:
        if case.result == 'skip':
            continue
        name = settings[side].shared_title(case.title)
        ran.add(name)
        if is_bad(case):
            failed.add(name)
        elif case.taken_by_others:
            disturbed.add(name)
    return ComparedSession(side, (run.uuid,), *map(frozenset, (ran, failed, disturbed)))


def assert_something_in_common(sessions: Iterable[ComparedSession], settings: Settings) -> None:
    """:raises AssayError: if no case was run with both."""
    ran: tuple[set[str], set[str]] = (set(), set())
    for one in sessions:
        ran[one.side].update(one.ran)
    if not ran[0] & ran[1]:
        told = ' and '.join(
            f'{len(names)} with {one}' for names, one in zip(ran, settings, strict=True)
        )
        raise AssayError(
            f'no case is run with both {settings.before} and {settings.after}, without those that '
            f'are skipped: there are {told}.'
        )


def without_partition(case: str) -> str:
    """The name of a case as its session has it, without its partition."""
    return case.rpartition(' @')[0]


def stored_runs(
    history: History, sessions: Iterable[ComparedSession]
) -> tuple[list[StoredRun], list[StoredRun]]:
    """The runs of sessions in the history: of the one setting, and of the other.

    :raises AssayError: if one is not there, or cannot be read.
    """
    known = {run.uuid: run for run in history.runs}
    found: tuple[list[StoredRun], list[StoredRun]] = ([], [])
    for side, uuid in ((one.side, uuid) for one in sessions for uuid in one.uuids):
        run = known.get(uuid)
        if run is None:
            raise AssayError(f'{history.database}: the session {uuid} was not stored.')
        if run.summary.problem:
            raise AssayError(run.summary.problem)
        found[side].append(run)
    return found


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


def failing(sessions: Sequence[ComparedSession]) -> tuple[tuple[Failing, ...], tuple[Failing, ...]]:
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
