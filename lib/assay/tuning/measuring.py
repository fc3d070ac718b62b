"""A tuning under way: jobs of starts, until each candidate is decided or the time is over."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from assay import AssayError, say
from assay.files import write_whole
from assay.mpis import FAMILIES
from assay.mpis.algorithms import Algorithms, Rules
from assay.quantities import duration_text
from assay.results.cases import folder_left
from assay.results.runner import Runner, StoppedError
from assay.results.statistics.retest import BUDGET, FOURSOME, Decision
from assay.running.selection import Listed
from assay.running.supervise import note_signals
from assay.text import many
from assay.tuning.choosing import (
    FEWEST_ROUNDS,
    RuleCandidate,
    Trial,
    candidates,
    judge_candidates,
    proved_rules,
    ratios,
)
from assay.tuning.journal import Starts, open_journal
from assay.tuning.starts import LATEST, OUTCOMES, Outcome, Start, TuningJob, read_job, write_plan
from assay.tuning.trials import Excluded, excluded_algorithms, of_order, trials, with_defaults

#: Foursomes of a job of the proof, after which somebody looks.
FOURSOMES = 2
#: Jobs of the proof at most: of some a start may fail, whose pairs do not count.
MOST_PROOFS = BUDGET // (2 * FOURSOMES) + 2
#: The share of the time after which no further round chooses candidates.
TO_CHOOSE = 0.5
#: More rounds than these choose no better.
MOST_ROUNDS = 6
#: Where rounds are cut short more are needed, up to so many.
MOST_CUT_ROUNDS = 24


@dataclass(frozen=True)
class TuningResult:
    """All that is said of a tuning.

    :param wanted: the candidates, with what the pairs say of each.
    :param proved: those of them that are better for sure.
    :param offered: how many algorithms the MPI has, those that failed among them.
    :param rules: of what is proved; None if nothing is.
    :param stopped: why it ended before all was decided; empty if it did not.
    :param fault: why the rules could not be put in force; empty if they could.
    :param in_force: settings of algorithms that the default is measured with.
    """

    case: Listed
    job: TuningJob
    family: str
    wanted: tuple[tuple[RuleCandidate, Decision | None], ...]
    proved: tuple[tuple[RuleCandidate, Decision], ...]
    excluded: tuple[Excluded, ...]
    offered: int
    rounds: int
    pairs: int
    rules: Rules | None
    journal: Path
    stopped: str
    fault: str
    in_force: dict[str, str]

    @property
    def exit_code(self) -> int:
        """3 if candidates are left that nobody could decide."""
        return 3 if self.stopped or self.fault else 0


class Tuning:
    """A tuning under way.

    :param runner: of its jobs.
    :param options: of ReFrame, which select the case alone.
    :param family: key of the MPI's.
    :param seconds: after which no job begins that would end later; None for no such bound.
    """

    def __init__(
        self,
        runner: Runner,
        options: Sequence[str],
        case: Listed,
        family: str,
        seconds: float | None,
    ) -> None:
        self.runner, self.options, self.case = runner, [*options], case
        self.family, self.seconds = family, seconds
        self.began, self.took = time.monotonic(), 0.0

    @property
    def _words(self) -> Algorithms:
        if found := FAMILIES[self.family].algorithms:
            return found
        name = FAMILIES[self.family].name
        raise AssayError(f'how algorithms of {name} are chosen is not known here (docs/tune.md).')

    def run(self) -> TuningResult:
        """Measure until all candidates are decided, the time is over, or somebody stops it.

        :raises AssayError: if the default itself was not measured, or no rules can be written.
        :raises SystemExit: if it was told to stop before anything was measured.
        """
        words = self._words
        with note_signals() as self.runner.signals:
            try:
                self.job = self._first_job()
            except StoppedError as over:
                say(str(over))
                raise SystemExit(128 + self.runner.signals[0]) from None
            self.offered = words.offered(self.job.variables, self.job.answers)
            if not self.offered:
                raise AssayError(f'{self.job.version}: it offers no algorithm to choose.')
            self.journal = open_journal(self._subject())
            stopped = ''
            try:
                self._choose()
                self._prove()
            except StoppedError as over:
                stopped = str(over)
        return self._found(stopped)

    def _subject(self) -> dict[str, object]:
        """The facts that must be the same for a tuning to go on with a journal."""
        return {
            'partition': self.case.partition,
            'case': self.case.title,
            'version': self.job.version,
            'ranks': self.job.ranks,
            'hosts': len(self.job.hosts),
            # Between nodes times are longer than those of earlier journals.
            **({'timed': 'until all end'} if len(self.job.hosts) > 1 else {}),
            **({'in_force': self._in_force} if self._in_force else {}),
        }

    @property
    def _in_force(self) -> dict[str, str]:
        return self._words.in_force(self.job.variables, self.job.answers)

    def _first_job(self) -> TuningJob:
        """The default alone: what the MPI says of itself."""
        say(f'{self.case.title}: asking the MPI which algorithms it has')
        return self._job([self._start(0, Trial(), None, ())])

    def _choose(self) -> None:
        """Rounds of all algorithms, until there are enough.

        :raises StoppedError: if that cannot be.
        """
        rounds = self.journal.chosen_by
        while not self.journal.proofs:
            lacking = self._is_lacking()
            if len(rounds) >= MOST_ROUNDS and not lacking:
                return
            if len(rounds) >= MOST_CUT_ROUNDS:
                raise StoppedError('rounds were cut short, and not all algorithms were measured')
            wanted = with_defaults(trials(self.offered, rounds), len(rounds))
            wanted += of_order(self.offered, rounds)
            spent = time.monotonic() - self.began
            is_enough = self.seconds and spent + self.took > TO_CHOOSE * self.seconds
            if not wanted or (len(rounds) >= FEWEST_ROUNDS and is_enough and not lacking):
                return
            label = f'round {len(rounds) + 1}: {many(len(wanted) + 1, "start")}'
            self._round(label, wanted, None, is_proof=False)

    def _is_lacking(self) -> bool:
        """Whether some were begun too rarely: a round is cut short where its time is over."""
        rounds = self.journal.chosen_by
        begun = Counter(
            one.key
            for starts in rounds
            for trial, _ in starts
            if not trial.is_of_order
            for one in trial.algorithms
        )
        wanted = {one.key for one in self.offered}
        wanted -= {one.algorithm.key for one in self._excluded()}
        is_begun = all(begun[one] >= FEWEST_ROUNDS for one in wanted)
        return not is_begun or bool(of_order(self.offered, rounds))

    def _prove(self) -> None:
        """Pairs with the candidates' rules in force, until each is decided.

        :raises StoppedError: if that cannot be.
        """
        wanted = self._wanted()
        if not wanted:
            return
        rules = self._words.rules([one.rule for one in wanted if one.rule], *self._about)
        write_whole(self.journal.rules, rules.text)
        while self._is_open(wanted):
            pairs = 2 * len(self._foursomes())
            label = (
                f'{many(sum(bool(one.rule) for one in wanted), "rule")} in force, pairs '
                f'{pairs + 1} to {pairs + 2 * FOURSOMES} of at most {BUDGET}'
            )
            self._round(
                label,
                [Trial(is_rules=bool(side)) for side in FOURSOME * FOURSOMES],
                rules,
                is_proof=True,
            )

    def _wanted(self) -> list[RuleCandidate]:
        """The candidates, which the rounds of all algorithms decide once there are pairs."""
        rounds = self.journal.chosen_by
        gone = {one.algorithm.key for one in self._excluded()}
        gone |= {trial.algorithms[0].key for trial in of_order(self.offered, rounds)}
        able = [one for one in self.offered if one.key not in gone]
        found = {
            point: {name: logs for name, logs in by_name.items() if (point[0], name) not in gone}
            for point, by_name in ratios(rounds).items()
        }
        return candidates(found, able, replaces=bool(self._in_force))

    def _excluded(self) -> list[Excluded]:
        return excluded_algorithms(self.journal.chosen_by)

    @property
    def _about(self) -> tuple[int, str]:
        """The number of ranks, and the MPI's version and answers, on which its rules depend."""
        return self.job.ranks, f'{self.job.version}\n{self.job.answers}'

    def _foursomes(self) -> list[list[Outcome]]:
        """The foursomes whose starts were all good."""
        fours = []
        for starts in self.journal.proofs:
            for at in range(0, len(starts) - 3, 4):
                outcomes = [outcome for _, outcome in starts[at : at + 4]]
                if all(one.word == 'good' for one in outcomes):
                    fours.append(outcomes)
        return fours

    def _fault(self) -> str:
        """Why the rules could not be put in force; empty if they could."""
        proofs = (start for starts in self.journal.proofs for start in starts)
        of_rules = [outcome for trial, outcome in proofs if trial.is_rules]
        bad = [one for one in of_rules if one.word != 'good']
        # One may be late by itself: its foursome does not count.
        if bad and (len(bad) > 1 or bad[0].word != 'hangs'):
            return f'a start with the rules in force {bad[0].word}: {bad[0].why}'
        for one in of_rules:
            if one.ignored:
                return '; '.join(f'{name}: {told}' for name, told in one.ignored.items())
        return ''

    def _is_open(self, wanted: Sequence[RuleCandidate]) -> bool:
        """Whether more pairs would tell."""
        if self._fault():
            return False
        if len(self.journal.proofs) >= MOST_PROOFS:
            return False
        return any(told is None or told.more_pairs for told in self._said(wanted))

    def _said(self, wanted: Sequence[RuleCandidate]) -> list[Decision | None]:
        starts = (start for starts in self.journal.chosen_by for start in starts)
        defaults = [
            outcome for trial, outcome in starts if trial.is_default and outcome.word == 'good'
        ]
        return judge_candidates(wanted, self._foursomes(), defaults)

    def _round(
        self, label: str, wanted: Sequence[Trial], rules: Rules | None, is_proof: bool
    ) -> None:
        """One job, and its record.

        :param label: what it is, in words.
        :raises StoppedError: if somebody stopped it, or it would end too late.
        """
        left = math.inf if self.seconds is None else self.began + self.seconds - time.monotonic()
        if self.took > left:
            raise StoppedError(f'the time of {duration_text(self.seconds or 0)} is over')
        say(f'{label}, some {duration_text(self.took)}' if self.took else label)
        began = time.monotonic()
        operations = self._operations(is_proof)
        starts = [self._start(place, one, rules, operations) for place, one in enumerate(wanted)]
        latest = int(min(left, LATEST))
        starts = [replace(one, seconds=self.job.patience, latest=latest) for one in starts]
        job = self._job(starts)
        # The first is the job's own program, which is started last.
        outcomes = [*job.outcomes[1:], job.outcomes[0]]
        done: Starts = list(zip([*wanted, Trial()], outcomes, strict=True))
        done = [start for start in done if start[1].word != 'was not begun']
        self.journal.add_round(done[:-1] if is_proof else done, is_proof)
        self.took = time.monotonic() - began

    def _operations(self, is_proof: bool) -> tuple[str, ...]:
        """The operations that a start of the default measures."""
        measured = self._wanted() if is_proof else self.offered
        return tuple(sorted({one.operation for one in measured}))

    def _start(
        self, place: int, trial: Trial, rules: Rules | None, operations: tuple[str, ...]
    ) -> Start:
        env = {name: value for one in trial.algorithms for name, value in one.env.items()}
        if trial.is_rules and rules:
            env = rules.in_force(str(self.journal.rules))
        if trial.algorithms:
            operations = tuple(one.operation for one in trial.algorithms)
        return Start(f'start-{place}', env, operations, trial.is_of_order)

    def _job(self, starts: Sequence[Start]) -> TuningJob:
        """Run a job, and read what it left.

        :raises StoppedError: if somebody stopped it.
        :raises AssayError: if the default itself was not measured.
        """
        self.runner.assert_not_stopped()
        own = self.runner.begin()
        plan = own.folder / 'starts.json'
        write_plan(plan, starts)
        options = [*self.options, '-S', f'Tune.plan={plan}']
        ended = self.runner.run(own, f'tune {self.case.environment}', options)
        if ended.stopped:
            self.runner.assert_not_stopped()
        for case in ended.run.last_cases if ended.run else ():
            folder = folder_left(case)
            if case.check == 'Tune' and case.result == 'pass' and folder:
                job = read_job(folder / OUTCOMES)
                self.runner.release(own, True)
                return job
        raise AssayError('\n'.join(['the default itself was not measured:', *ended.reasons]))

    def _found(self, stopped: str) -> TuningResult:
        wanted = self._wanted()
        said = self._said(wanted)
        fault = self._fault()
        good = [] if fault else proved_rules(wanted, said)
        rules = None
        if good:
            rules = self._words.rules([one.rule for one, _ in good if one.rule], *self._about)
        if not stopped:
            self.journal.end()
        return TuningResult(
            self.case,
            self.job,
            self.family,
            tuple(zip(wanted, said, strict=True)),
            tuple(good),
            tuple(self._excluded()),
            len(self.offered),
            len(self.journal.chosen_by),
            2 * len(self._foursomes()),
            rules,
            self.journal.path,
            stopped,
            fault,
            self._in_force,
        )


def header(found: TuningResult) -> list[str]:
    """The header of a file of rules, a line each."""
    hosts = many(len(found.job.hosts), 'node')
    return [
        f'Rules for {found.job.version}',
        f'{found.job.ranks} ranks on {hosts}, {found.case.title}',
        *(f'the default is with {name}={value}' for name, value in found.in_force.items()),
        f'by assay tune, {datetime.now():%Y-%m-%d %H:%M}, proved by {found.pairs} pairs A B B A',
    ]


def write_rules(path: Path, found: TuningResult) -> None:
    """The rules that are proved, with a header if their format has comments.

    :raises AssayError: if they cannot be written.
    """
    assert found.rules
    comment = found.rules.comment
    lines = [comment.format(line) for line in header(found)] if comment else []
    write_whole(path, '\n'.join([*lines, found.rules.text]))
