"""What came of a night, and whether that is news."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from assay.report.console import as_change, as_multiple, is_tenfold
from assay.results.cases import Run
from assay.results.diff.compared import Compared, worst_first
from assay.results.diff.difference import Difference
from assay.results.failures import disturbed_cases, failures
from assay.results.statistics.series import ratio
from assay.results.verdict import Verdict

Word = Literal['PASSED', 'WORSE', 'FAILED', 'UNDECIDED', 'DISTURBED']

#: The culprit where no case is: whatever kept the run from measuring counts as the same.
RUN = 'the run itself'

#: What is said of a case that a night has no more.
GONE = 'was run in good nights, and not now'


@dataclass(frozen=True)
class Outcome:
    """What came of a night.

    :param word: ``WORSE``: all references were met, and something is worse than in good nights;
        ``UNDECIDED``: something looks so, also when it was measured again, and may be chance.
    :param culprits: cases that failed, or figures that are worse: the same words each night.
    :param sentences: what is said of them.
    """

    word: Word
    culprits: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        return 0 if self.word == 'PASSED' else 1 if self.is_evidence else 3

    @property
    def is_evidence(self) -> bool:
        """Whether it says anything of the machine: otherwise what people know stays."""
        return self.word not in ('UNDECIDED', 'DISTURBED')


def of_run(verdict: Verdict, run: Run | None) -> Outcome:
    """What the verdict of a run makes of its night."""
    if verdict.passed:
        return Outcome('PASSED')
    if not verdict.problems:
        told = disturbed_cases(run) if run else []
        return Outcome('DISTURBED', (), tuple(f'{one.case}: {one.reason}' for one in told))
    failed = failures(run) if run else []
    of_session = verdict.of_session if failed else verdict.problems
    culprits = sorted({one.case for one in failed} | ({RUN} if of_session else set()))
    sentences = [*of_session, *(f'{one.case}: {one.reason}' for one in failed)]
    return Outcome('FAILED', tuple(culprits), tuple(sentences))


def of_problem(problem: str) -> Outcome:
    """What kept a night from measuring anything."""
    return Outcome('FAILED', (RUN,), tuple(problem.splitlines()))


def of_difference(found: Difference, gone: Collection[str]) -> Outcome:
    """What a night is that did not fail, held against good ones.

    A figure that was measured once only, since others disturbed it when it was to be measured
    again, is worse by nobody's word.

    :param gone: cases that were run in good nights, and are none any more.
    """
    worse = worst_first(worse_figures(found))
    told = {str(one.figure): _change(one) for one in worse if len(one.after.values) > 1}
    told |= {str(one.figure): one.reason for one in found.gone}
    told |= dict.fromkeys(sorted(gone), GONE)
    told |= {one.case: 'gave figures in good nights, and none now' for one in found.lost}
    told |= {one.case: 'fails at times' for one in found.at_times}
    if told:
        return worse_by(told)
    if worse:
        words = 'worse than in good nights, and others disturbed it when it was measured again'
        return Outcome('DISTURBED', (), tuple(f'{one.figure}: {words}' for one in worse))
    if found.suspects:
        told = {str(one.figure): f'{_change(one)}, which may be chance' for one in found.suspects}
        return Outcome('UNDECIDED', (), tuple(f'{name}: {words}' for name, words in told.items()))
    return Outcome('PASSED')


def worse_by(told: Mapping[str, str]) -> Outcome:
    """A night with something that is worse.

    :param told: the culprits, and what is said of each.
    """
    sentences = tuple(f'{name}: {words}' for name, words in told.items())
    return Outcome('WORSE', tuple(sorted(told)), sentences)


def worse_figures(found: Difference) -> list[Compared]:
    return [one for one in found.figures if one.word == 'worse']


def not_run(found: Difference) -> list[str]:
    """Cases that were run in good nights, and not in this one."""
    return sorted({one.test_case for one in found.only_before})


def suspicious_cases(found: Difference) -> set[str]:
    """Cases with a figure that looks worse: name, partition and environment."""
    figures = [
        *(one.figure for one in worse_figures(found)),
        *(one.figure for one in found.suspects),
        *(one.figure for one in found.gone),
    ]
    failed = [one.case for one in (*found.lost, *found.at_times)]
    return {*(one.test_case for one in figures), *failed}


def _change(one: Compared) -> str:
    if one.misses:
        return 'misses a reference that it met before'
    times = ratio(one.change)
    if is_tenfold(times):
        return f'{as_multiple(times)} as in good nights'
    return f'{as_change(times)} than in good nights'
