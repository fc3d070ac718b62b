"""Runs after an upgrade against stored runs before it: suspects are measured again.

The old state is gone, so only sessions of the new one can be added: rounds, each of all that is in
doubt and some controls in turn. The first comparison only chooses what is. A case that was measured
again counts by its rounds alone, once they are three: it was chosen because its first values looked
bad.

**Why the promise holds.** At most 1% of upgrades that change nothing are called worse. Each look
has a share of that rate, and all shares together are the rate: half for the first comparison, half
of what is left for each look at the rounds, however many follow (spending of alpha, after Lan and
DeMets, Biometrika 70, 1983, by Bonferroni). At every look all figures of the suite share the rate,
not the suspects alone: the runs before are the same as at first, so where they were good by chance
the rounds only repeat what they said. What would be called worse if every case was measured again
is no less than what is called so of those that were.
"""

from __future__ import annotations

import math
import re
import signal
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from assay import AssayError, say
from assay.results.diff.compared import Compared
from assay.results.diff.cores import tell_distances
from assay.results.diff.difference import Difference, difference
from assay.results.diff.endings import ends_of
from assay.results.diff.families import JITTER, family_of
from assay.results.diff.sides import ENOUGH_CALM
from assay.results.figure_series import FigureKey
from assay.results.history import History, StoredRun, load_history
from assay.results.run_selectors import choose_runs
from assay.results.runner import NoGoodError, Runner, StoppedError
from assay.results.statistics.comparison import MARGIN
from assay.results.statistics.multiplicity import SUITE_RATE
from assay.results.statistics.retest import SUSPICION
from assay.running.selection import Listed, leaving_out
from assay.running.supervise import note_signals
from assay.text import first_few, many

#: The purpose of rounds in the history: their cases were chosen for looking bad, and teach nothing.
PURPOSE = 'against'
#: Rounds before the first look at them; before each next one as many again as there are.
FIRST_LOOK = 3


@dataclass(frozen=True, eq=False)
class AgainstResult:
    """The result.

    :param difference: at the last look.
    :param rounds: how many rounds were measured.
    :param seconds: that measuring again took.
    :param stopped: why it ended before all was decided; empty if it did not.
    :param is_broken: whether that is because a round was no good as a whole.
    :param signal: by which it was stopped, if it was.
    :param doubted: what still looks worse by itself (:func:`in_doubt`) beside a verdict of not
        worse, as it ended before that was measured again.
    """

    difference: Difference
    rounds: int
    seconds: float
    stopped: str = ''
    is_broken: bool = False
    signal: signal.Signals | None = None
    doubted: tuple[Compared, ...] = ()


def rate_of(look: int) -> float:
    """The share of the suite's rate of a look: 0 is the first comparison."""
    return SUITE_RATE / 2.0 ** (look + 1)


def runs_before(history: History, words: str, system: str) -> list[StoredRun]:
    """The runs of a system that are compared with, oldest first.

    :raises AssayError: if the words choose none, or runs of another system.
    """
    try:
        return choose_runs(history, words, system)
    except AssayError:
        others: list[StoredRun] = []
        with suppress(AssayError):
            others = choose_runs(history, words)
        if not others:
            raise
    raise AssayError(
        f'--against {words}: these runs are of the system {others[0].summary.system}, not '
        f'{system}: systems are never compared.'
    )


def assert_cases_in_common(
    history: History, before: Sequence[StoredRun], words: str, selected: Collection[Listed]
) -> None:
    """:raises AssayError: if no selected case gave a figure in the runs before."""
    ends = ends_of(history.figures(before))
    then = {case for case, counts in ends.items() if None in counts}
    if not then:
        raise AssayError(f'--against {words}: none of these runs gave a figure.')
    if not then & {one.title for one in selected}:
        titles = first_few(sorted(one.title for one in selected))
        raise AssayError(
            f'--against {words}: these runs share no case with those selected now. They ran '
            f'{first_few(sorted(then))}; selected are {titles}.'
        )


def in_doubt(found: Difference, doubted: Collection[FigureKey] | None = None) -> Sequence[Compared]:
    """The figures to measure again.

    These are the suspects. If there are none: what others disturbed after, of which too few
    sessions are left to tell. And unless most figures have nothing to compare: what lost more than
    the margin and looks so by itself (:data:`~assay.results.statistics.retest.SUSPICION`), for a
    loss that a busy machine hides is shown by more sessions alone.

    :param doubted: figures that were in doubt at each earlier look: of those that look so by
        themselves only they are once more, as chance picks others each time.
    """
    if found.suspects:
        return found.suspects

    def looks_so(one: Compared) -> bool:
        return (
            not found.lacks_values
            and not one.has_followed
            and _looks_worse(one, found.margin, SUSPICION)
            and (doubted is None or one.figure in doubted)
        )

    return [one for one in found.figures if _lacks_sessions(one, found.margin) or looks_so(one)]


def _looks_worse(one: Compared, margin: float, most_p: float = 1.0) -> bool:
    """Whether it lost more than the margin, by chance as often; how quiet it was is no loss."""
    if one.word != 'cannot tell' or not one.verdict or family_of(one) == JITTER:
        return False
    comparison = one.verdict.comparison
    return comparison.p_value <= most_p and comparison.slowdown > math.log1p(margin)


def _lacks_sessions(one: Compared, margin: float) -> bool:
    """Whether others disturbed all its sessions after, or it looks worse by the few that are left.

    These are not enough to tell a great loss from one by chance.
    """
    if not one.before.series or not one.after.disturbed:
        return False
    left = one.after.series
    return left is None or (left.size < ENOUGH_CALM and _looks_worse(one, margin))


def names_to_measure_again(
    found: Difference, wanted: Sequence[Compared]
) -> tuple[frozenset[str], frozenset[str]]:
    """Names of the cases to measure again, and their environments.

    These are the cases in doubt, and as controls the cases that measure the machine itself, and one
    more, if there is one of a check without a figure in doubt.

    :param wanted: the figures in doubt.
    """
    suspects = {one.figure.case for one in wanted}
    checks = {one.after.check for one in wanted}
    environments = frozenset(one.figure.environment for one in wanted)

    def is_other(one: Compared) -> bool:
        return one.figure.environment in environments and one.figure.case not in suspects

    machine = {one.figure.case for one in found.figures if one.is_of == 'node' and is_other(one)}
    others = sorted(
        (one.after.check in checks, one.figure.case)
        for one in found.figures
        if one.verdict and is_other(one) and one.figure.case not in machine
    )
    return frozenset({*suspects, *machine, *(case for _, case in others[:1])}), environments


class Against:
    """A comparison under way.

    :param runner: of its rounds.
    :param options: of ReFrame, of the run.
    :param label: of the runs after, which the rounds get as well.
    :param before: runs of the old state.
    :param after: identifiers of runs of the new one.
    :param selected: names of all cases that the options select.
    """

    def __init__(
        self,
        runner: Runner,
        options: Sequence[str],
        label: str | None,
        before: Sequence[StoredRun],
        after: Sequence[str],
        selected: Collection[str],
    ) -> None:
        self.runner, self.options, self.label = runner, options, label
        self.before, self.after, self.selected = before, after, selected
        #: Identifiers of the rounds so far, and how long the last one took.
        self.rounds: list[str] = []
        self.took = self._run_took = 0.0
        self._looks, self._looked_at = 0, 0

    def decide(self, budget: float | None) -> AgainstResult:
        """Compare, and measure again what looks worse until it is decided.

        :param budget: seconds after which no round begins, nor one that would end later; None to
            measure nothing again.
        :raises AssayError: if there is nothing to compare.
        """
        began, stopped = time.monotonic(), ''
        is_broken = False
        with note_signals() as self.runner.signals:
            found = self._look()
            doubted = in_doubt(found)
            while budget is not None and not stopped and not found.is_worse and doubted:
                try:
                    self._until_next_look(found, doubted, began, budget)
                except StoppedError as error:
                    stopped = str(error)
                    is_broken = isinstance(error, NoGoodError) and not self.runner.signals
                if len(self.rounds) > self._looked_at:
                    found = self._look()
                    doubted = in_doubt(found, {one.figure for one in doubted})
        signals = self.runner.signals
        decided = found.verdict != 'undecided'
        return AgainstResult(
            found,
            len(self.rounds),
            time.monotonic() - began,
            '' if decided and not is_broken and not signals else stopped,
            is_broken,
            signals[0] if signals else None,
            tuple(doubted) if found.verdict == 'not worse' else (),
        )

    def _look(self) -> Difference:
        """Compare all that was measured so far, at the rate of this look."""
        self._history = history = load_history()
        by_uuid = {run.uuid: run for run in history.runs if not run.summary.problem}
        if lacking := [one for one in (*self.after, *self.rounds) if one not in by_uuid]:
            raise AssayError(f'the run {lacking[0]} was not stored: nothing can be compared.')
        rounds = [by_uuid[one] for one in self.rounds]
        first = by_uuid[self.after[-1]]
        self._run_took = (first.ended - first.begun).total_seconds()
        after = [*(by_uuid[one] for one in self.after), *rounds]
        rate = rate_of(self._looks)
        self._looks += 1
        self._looked_at = len(rounds)
        return difference(history, self.before, after, MARGIN, rate=rate, remeasured=rounds)

    def _until_next_look(
        self, found: Difference, doubted: Sequence[Compared], began: float, budget: float
    ) -> None:
        """Rounds until there is something to look at.

        :param doubted: the figures that are measured again.
        :raises StoppedError: if it ended before that, as a round was no good for example.
        """
        cases, environments = names_to_measure_again(found, doubted)
        until = max(FIRST_LOOK, 2 * len(self.rounds))
        doubtful = many(len(doubted), 'figure')
        is_disturbed = not found.suspects and all(
            _lacks_sessions(one, found.margin) for one in doubted
        )
        why = f'others disturbed {doubtful}' if is_disturbed else f'{doubtful} may be worse'
        # Of the first round as much as of the run, case for case.
        took = self.took or self._run_took * len(cases) / max(1, len(self.selected))
        while len(self.rounds) < until:
            left = budget - (time.monotonic() - began)
            self.runner.assert_not_stopped()
            if left < took:
                raise StoppedError('the time for measuring again is over')
            if len(self.rounds) == self._looked_at:
                say(
                    f'{why}: measured again with controls, {many(len(cases), "case")} a round, '
                    f'up to round {until}'
                )
            self._round(cases, environments, left)
            took = self.took

    def _round(self, cases: Collection[str], environments: Collection[str], left: float) -> None:
        """One round, judged and stored.

        :param left: seconds of the budget.
        :raises StoppedError: if it was stopped, or is no good.
        """
        began, own = time.monotonic(), self.runner.begin()
        # Nor is it waited longer than that for those who disturb it.
        own.patience.write_text(f'{left:.1f}')
        tell_distances(own, self._history, self.before)
        options = [*self.options, *leaving_out({*self.selected} - {*cases})]
        if '--prgenv' not in self.runner.given.names_of_options:
            options += ['-p', f'^({"|".join(map(re.escape, sorted(environments)))})$']
        say(f'round {len(self.rounds) + 1}')
        ended = self.runner.complete(own, self.label, options, what='a round')
        ended.tell_failures()
        assert ended.run
        self.rounds.append(ended.run.uuid)
        self.took = time.monotonic() - began
        self.runner.release(own, not ended.verdict.problems)
