"""The outcome of a night, the memory of it, and whether it is news.

Cases that were left out for time count as neither good nor worse, and are not forgotten.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from assay import AssayError
from assay.report.console import as_change, as_multiple, is_tenfold
from assay.results.budget import Choice, advice
from assay.results.cases import Run
from assay.results.diff.compared import Compared, worst_first
from assay.results.diff.difference import Difference
from assay.results.failures import disturbed_cases, failures
from assay.results.statistics.series import ratio
from assay.results.verdict import Verdict
from assay.running import runs
from assay.text import many, plain

Word = Literal['PASSED', 'WORSE', 'FAILED', 'UNDECIDED', 'DISTURBED']

#: The culprit where no case is: whatever kept the run from measuring counts as the same.
RUN = 'the run itself'

#: Good nights that are remembered.
KEPT = 20

#: What is said of a case that a night has no more.
GONE = 'was run in good nights, and not now'

#: The culprit where a budget is too short for what it has to choose from.
BUDGET = 'the budget'

#: The words of nights that are reported to people, the worst first.
_BAD: tuple[Word, ...] = ('FAILED', 'WORSE')


@dataclass(frozen=True)
class NightOutcome:
    """The outcome of a night.

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


class KnownVerdict(BaseModel):
    """The verdict that people know.

    :param since: the night that it is of first.
    """

    model_config = ConfigDict(extra='forbid', frozen=True)

    word: Word = 'PASSED'
    culprits: tuple[str, ...] = ()
    since: AwareDatetime | None = None

    def is_of(self, outcome: NightOutcome) -> bool:
        """Whether people know as much of a night already."""
        return (self.word, {*self.culprits}) == (outcome.word, {*outcome.culprits})


class NightMemory(BaseModel):
    """The memory that a night has of those before.

    :param told: before the first night nobody has complained.
    :param good: identifiers of the runs of good nights, the newest last.
    :param put_off: since when nights have been put off; None if the last was not.
    """

    model_config = ConfigDict(extra='forbid', frozen=True)

    told: KnownVerdict = Field(default_factory=KnownVerdict)
    good: tuple[str, ...] = ()
    put_off: AwareDatetime | None = None

    def after(
        self, told: KnownVerdict, good: str | None = None, put_off: datetime | None = None
    ) -> NightMemory:
        """The memory for the next night.

        :param good: the identifier of this one's run, if it was good.
        """
        runs = (*self.good, good) if good else self.good
        return NightMemory(told=told, good=runs[-KEPT:], put_off=put_off)


def outcome_of_run(verdict: Verdict, run: Run | None) -> NightOutcome:
    """The outcome of a night by the verdict of its run."""
    if verdict.passed:
        return NightOutcome('PASSED')
    if not verdict.problems:
        told = disturbed_cases(run) if run else []
        return NightOutcome('DISTURBED', (), tuple(f'{one.case}: {one.reason}' for one in told))
    failed = failures(run) if run else []
    of_session = verdict.of_session if failed else verdict.problems
    culprits = sorted({one.case for one in failed} | ({RUN} if of_session else set()))
    sentences = [*of_session, *(f'{one.case}: {one.reason}' for one in failed)]
    return NightOutcome('FAILED', tuple(culprits), tuple(sentences))


def outcome_of_problem(problem: str) -> NightOutcome:
    """The outcome of a night that could not measure anything."""
    return NightOutcome('FAILED', (RUN,), tuple(problem.splitlines()))


def outcome_of_difference(found: Difference, gone: Collection[str]) -> NightOutcome:
    """The outcome of a night that did not fail, compared with good ones.

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
        return worse_night(told)
    if worse:
        words = 'worse than in good nights, and others disturbed it when it was measured again'
        return NightOutcome('DISTURBED', (), tuple(f'{one.figure}: {words}' for one in worse))
    if found.suspects:
        told = {str(one.figure): f'{_change(one)}, which may be chance' for one in found.suspects}
        return NightOutcome(
            'UNDECIDED', (), tuple(f'{name}: {words}' for name, words in told.items())
        )
    if found.lacks_values:
        left_out = [f'{why}: {many(values, "value")}' for why, values in found.disturbances]
        return NightOutcome('DISTURBED', (), tuple(left_out))
    return NightOutcome('PASSED')


def worse_night(told: Mapping[str, str]) -> NightOutcome:
    """A night with something that is worse.

    :param told: the culprits, and what is said of each.
    """
    sentences = tuple(f'{name}: {words}' for name, words in told.items())
    return NightOutcome('WORSE', tuple(sorted(told)), sentences)


def worse_figures(found: Difference) -> list[Compared]:
    return [one for one in found.figures if one.word == 'worse']


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
    if one.is_without_ratio:
        return f'{one.before.middle_text} in good nights, {one.after.middle_text} now'
    times = ratio(one.change)
    if is_tenfold(times):
        return f'{as_multiple(times)} as in good nights'
    return f'{as_change(times)} than in good nights'


def with_left_out(
    outcome: NightOutcome, before: KnownVerdict, choice: Choice | None, late: Collection[str] = ()
) -> NightOutcome:
    """Add the cases that were left out for lack of time to the outcome of a night.

    A fault that people know of stays although it was left out. A case that no night runs is
    reported.

    :param before: what people know.
    :param choice: what was run for a budget, if there was one.
    :param late: titles of cases that the job for all cases had no time left for.
    """
    known = before.culprits if before.word in _BAD else ()
    bad = [
        one
        for one in known
        if case_of_culprit(one) in late or (choice and _is_left_out(one, choice))
    ]
    told = dict.fromkeys(bad, 'was bad in an earlier night, and was left out of this one')
    if choice:
        told |= _never_run(choice)
    if not told:
        return outcome
    if not outcome.is_evidence:  # which alone would leave what people know as it is
        others = [one for one in known if one not in told]
        told |= dict.fromkeys(others, 'was bad in an earlier night, and others disturbed this one')
        bad += others
    bad_words = [one for one in (outcome.word, *([before.word] if bad else [])) if one in _BAD]
    more = worse_night(told)
    is_bad = outcome.word in _BAD
    return NightOutcome(
        min(bad_words, key=_BAD.index, default='WORSE'),
        tuple(sorted({*(outcome.culprits if is_bad else ()), *more.culprits})),
        (*(outcome.sentences if is_bad else ()), *more.sentences),
    )


def _never_run(choice: Choice) -> dict[str, str]:
    """The cases for which the budget is too short in any night, with a sentence for each."""
    told: dict[str, str] = {}
    enough = advice(choice.seconds_needed(KEPT), f'all of them in {KEPT} nights')
    for one in choice.too_long:
        takes = 'is assumed to take' if one.assumed else 'takes'
        told[one.name] = f'{takes} longer than the budget, so no night runs it; {enough}'
    if not choice.too_long and (choice.turns or KEPT + 1) > KEPT:
        told[BUDGET] = f'it is so short that some cases may have no turn in {KEPT} nights; {enough}'
    return told


def _is_left_out(culprit: str, choice: Choice) -> bool:
    """Whether a culprit is a case that was left out, or what is built for such cases alone."""
    if case_of_culprit(culprit) in choice.titles_left_out:
        return True
    some, others = (
        frozenset[str]().union(*(one.needs for one in entries))
        for entries in (choice.left_out, choice.chosen)
    )
    # `Build ~toy:node+mpich`, which as a case is `Build @toy:node+mpich`.
    built = [name.replace(' ~', ' @') for name in some - others]
    return any(culprit == one or culprit.startswith((f'{one}:', f'{one}+')) for one in built)


def known_bad_cases(told: KnownVerdict) -> set[str]:
    """The cases that people know to be bad."""
    return {case_of_culprit(one) for one in told.culprits if told.word in _BAD}


def no_longer_chosen(good: Iterable[str], choice: Choice) -> set[str]:
    """Cases that were run in good nights, and that no night can choose any more."""
    chosen = {case.title for one in choice.chosen for case in one.cases}
    return {*good} - chosen - choice.titles_left_out


def case_of_culprit(culprit: str) -> str:
    """The case that a culprit is, or whose figure it is."""
    return culprit.rpartition(' of ')[2]


# How people hear of it ----------------------------------------------------------------------------


#: Sentences of a message.
MOST_SENTENCES = 20

#: Seconds that the command which notifies people has.
PATIENCE = 120

#: Characters of its output that are passed on.
MOST_OUTPUT = 400


def subject(which: str, outcome: NightOutcome, before: KnownVerdict) -> str:
    """One line: what it is now, and what people took it for.

    :param which: system and mode.
    """
    was = f'was {before.word}' if before.word != outcome.word else 'not as before'
    return f'Assay: {which} {outcome.word}, {was}'


def message(headline: str, outcome: NightOutcome, before: KnownVerdict, run: str) -> str:
    """The message to people about a night.

    :param headline: its first line.
    :param before: what they know.
    :param run: its last line, where to look.
    """
    lines = [headline, *_list(outcome.sentences)]
    if gone := sorted({*before.culprits} - {*outcome.culprits}):
        lines += ['no longer:', *_list(gone)]
    return '\n'.join([*lines, run, ''])


def _list(words: tuple[str, ...] | list[str]) -> list[str]:
    more = [f'  and {len(words) - MOST_SENTENCES} more'] if len(words) > MOST_SENTENCES else []
    return [*(f'  {plain(one)}' for one in words[:MOST_SENTENCES]), *more]


def last_line(which: str, outcome: NightOutcome, told: KnownVerdict) -> str:
    """The last line of a night."""
    as_before = f', as since {as_minute(told.since)}' if told.since and told.is_of(outcome) else ''
    return f'NIGHT {outcome.word}: {which}{as_before}'


def as_minute(when: datetime) -> str:
    return f'{when.astimezone():%Y-%m-%d %H:%M}'


def notify(command: str, word: str, subject: str, message: str) -> None:
    """Run a command of the shell with a message on its standard input.

    It finds the verdict in ``ASSAY_VERDICT`` and the subject in ``ASSAY_SUBJECT``.

    :raises AssayError: if it fails, or takes too long: then nobody can be taken to know.
    """
    # It is no job of the run: what it leaves behind is not stopped with those.
    ours = {name: value for name, value in os.environ.items() if name != runs.VARIABLE}
    try:
        problem = _run(command, {**ours, 'ASSAY_VERDICT': word, 'ASSAY_SUBJECT': subject}, message)
    except OSError as error:
        problem = f'cannot be started: {error}'
    if problem:
        raise AssayError(f'nobody was told: --notify {command!r} {problem}')


def _run(command: str, environment: Mapping[str, str], message: str) -> str:
    """Why it is no good, in words; empty if it is."""
    # Files, not pipes: it need not read, and what it leaves behind may go on writing.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
        given.write(message.encode())
        given.seek(0)
        process = subprocess.Popen(
            ['sh', '-c', command],
            stdin=given,
            stdout=said,
            stderr=said,
            env=environment,
            start_new_session=True,
        )
        try:
            code = process.wait(PATIENCE)
            ended = f'ended with exit code {code}'
        except subprocess.TimeoutExpired:
            code, ended = 1, f'was stopped after {PATIENCE} s'
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        words = said.read(MOST_OUTPUT).decode(errors='replace').strip()
    return f'{ended}{": " * bool(words)}{words}' if code else ''
