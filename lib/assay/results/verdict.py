"""The verdict of a run, green only if something was measured and all of it passed; its summary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from assay.results.cases import GOOD, Case, Run, is_no_evidence
from assay.results.failures import failures, is_bad, is_good, missing_measurement
from assay.running import reframe_log
from assay.text import plain

#: Kinds of ReFrame's warnings that a verdict quotes.
MOST_WARNINGS = 8


@dataclass(frozen=True)
class Verdict:
    """Whether a run is good, and if not, every reason why.

    :param problems: what is wrong, a sentence each.
    :param disturbed: how many cases are neither good nor bad.
    :param of_cases: those of the problems that say no more than that cases failed.
    """

    problems: tuple[str, ...]
    disturbed: int = 0
    of_cases: tuple[str, ...] = ()

    @property
    def of_session(self) -> tuple[str, ...]:
        """The other problems: whichever cases failed, these are wrong with all of it."""
        return tuple(one for one in self.problems if one not in self.of_cases)

    @property
    def word(self) -> Literal['PASSED', 'FAILED', 'DISTURBED']:
        if self.problems:
            return 'FAILED'
        return 'DISTURBED' if self.disturbed else 'PASSED'

    @property
    def passed(self) -> bool:
        return self.word == 'PASSED'

    @property
    def exit_code(self) -> int:
        return {'PASSED': 0, 'FAILED': 1, 'DISTURBED': 3}[self.word]


def judge_run(
    run: Run | None,
    reframe_exit_code: int,
    log: Iterable[str] | None,
    printed: Iterable[str] = (),
) -> Verdict:
    """Green only if something was measured and all of it passed.

    ReFrame itself passes a run that selected nothing, skipped everything, lost its figures or found
    no reference for them; it goes on without what it cannot load, set or write; and it writes no
    report when nothing was selected.

    :param log: the lines of ReFrame's log file; None if there is none.
    :param printed: the lines that ReFrame wrote to standard output and error: only there is what it
        warns of before it has a log file, and what it could not write.
    """
    lines = reframe_log.without_colours(log or ())
    problems = []
    if log is None:
        problems.append("ReFrame's log is missing: what it left out is unknown")
    elif not reframe_log.has_end(lines):
        problems.append("ReFrame's log stops before its end: what was left out is unknown")
    all_cases = run.counted if run else []
    warned = reframe_log.complaints(
        [*lines, *reframe_log.without_colours(printed)],
        {case.check for case in all_cases if not case.is_fixture},
        {case.check for case in all_cases if case.is_fixture},
        run.command if run else '',
    )
    problems += warned[:MOST_WARNINGS]
    if len(warned) > MOST_WARNINGS:
        problems.append(
            f"{len(warned) - MOST_WARNINGS} more kinds of warnings are in ReFrame's log"
        )
    if run is None:
        if reframe_exit_code:
            problems.append(f'ReFrame ended with exit code {reframe_exit_code} and left no report')
        else:
            problems.append('no check was selected, so nothing was measured')
        return Verdict(tuple(problems))
    own = [case for case in all_cases if not case.is_fixture]
    done = [case for case in own if case.result != 'skip']
    if not own:
        problems.append('no check was selected, so nothing was measured')
    elif not done:
        problems.append(f'all {len(own)} selected cases were skipped, so nothing was measured')
    disturbed = sum(map(is_no_evidence, done))
    of_cases = []
    if bad := [case for case in done if is_bad(case)]:
        of_cases.append(f'{len(bad)} of {len(own)} cases failed')
    elif failed := failures(run):
        of_cases.append(f'{failed[0].case} failed')  # a fixture that no case waited for
    by_reason: dict[str, list[Case]] = {}
    for case in bad:
        if case.result in GOOD and (words := missing_measurement(case)):
            by_reason.setdefault(plain(words), []).append(case)
    for words, found in by_reason.items():
        others = f' and {len(found) - 1} more' if len(found) > 1 else ''
        of_cases.append(f'{found[0].title}{others} {words}')
    problems += of_cases
    if words := run.not_repeated:
        problems.append(words)
    if reframe_exit_code and not problems and not disturbed:
        problems.append(
            f'ReFrame ended with exit code {reframe_exit_code}: a case failed in an earlier run '
            'of this session, or the session was stopped; see above'
        )
    return Verdict(tuple(problems), disturbed, tuple(of_cases))


class Counts(NamedTuple):
    """How many cases went which way; fixtures, and what was left out for time, are none."""

    passed: int
    failed: int
    disturbed: int
    skipped: int


def counts(run: Run | None) -> Counts:
    """The numbers of cases that passed, failed, were disturbed, or were skipped."""
    own = [case for case in run.own_cases if not case.had_no_time] if run else []
    passed = sum(map(is_good, own))
    disturbed = sum(map(is_no_evidence, own))
    skips = sum(case.result == 'skip' for case in own)
    return Counts(passed, len(own) - passed - disturbed - skips, disturbed, skips)


@dataclass(frozen=True)
class Summary:
    """The fields of a session in a list of sessions.

    :param label: that it was given; None for none.
    :param mode: of ``assay run``; None of a plain ReFrame.
    :param purpose: of one that was not made to show how the machine is; None of all others.
    :param system: ReFrame's name of it.
    :param commit: of the suite, with ``-dirty`` where files were changed; empty if no case tells.
    :param passed: how many cases passed; fixtures are none.
    :param failed: how many failed.
    :param disturbed: how many did neither, because others disturbed them.
    :param skipped: how many were skipped.
    :param left_out: how many of those selected were left out for time.
    :param problem: why nothing of it can be read; None if it can.
    """

    label: str | None = None
    mode: str | None = None
    purpose: str | None = None
    system: str = ''
    commit: str = ''
    passed: int = 0
    failed: int = 0
    disturbed: int = 0
    skipped: int = 0
    left_out: int = 0
    problem: str | None = None


def summary(run: Run) -> Summary:
    """The summary of a run."""
    cases = run.cases
    return Summary(
        label=run.label,
        mode=run.mode,
        purpose=run.purpose,
        left_out=run.left_out,
        system=cases[0].system if cases else '',
        commit=next(filter(None, (case.fact('suite_commit') for case in cases)), ''),
        **counts(run)._asdict(),
    )
