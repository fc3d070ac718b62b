"""Which change made figures worse: sessions with some of the changes, until one is found.

Each measurement is a pair of neighbouring sessions, with some of the changes and with the remaining
ones; the order alternates, A B and then B A, so that drift meets both alike. Each pair is kept in a
journal in the folder of results, so that a search that was stopped goes on.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from pydantic import TypeAdapter
from scipy import special

from assay import AssayError, paths, say
from assay.comparing.factors import (
    Factor,
    Untried,
    differs_from,
    factors_of,
    one_by_one,
    state,
    steps_of,
    strange_facts,
    unpack,
)
from assay.comparing.interleaved import AGAIN
from assay.files import DAMAGED, append_line, json_text, whole_lines
from assay.results.diff.compared import Compared, worst_first
from assay.results.diff.difference import Difference, difference
from assay.results.failures import failures
from assay.results.figure_series import FigureKey, Measured, measured_figures
from assay.results.history import History, StoredRun, load_history
from assay.results.run_selectors import choose_figures
from assay.results.runner import NoGoodError, Runner, StoppedError
from assay.results.searches import CONCLUDED, CONCLUSION, Conclusion
from assay.results.statistics.culprits import SURE, Answer, Flags, Search, Split
from assay.results.statistics.series import Floats
from assay.running.application_builds import seconds_of_builds
from assay.running.setting import COMMIT, ENVIRONMENT, SOURCES, SPECS, Setting
from assay.running.supervise import note_signals
from assay.spack.builds import NoBuildError, install_for_checks, why_not_chosen
from assay.text import first_few, many, unknown_name

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

#: Of its sessions, in the history.
PURPOSE = 'culprit'
#: Pairs that a command measures at most, those in a row that may give no value, and those in a row
#: that may fail where all changes and none work: each tells what breaks.
MOST, NO_VALUES, FAILURES = 60, 3, 10
#: What a session is taken to vary by if that is not known, and at least: few runs may look alike.
UNKNOWN, LEAST_SPREAD = 0.05, 0.01
#: What is amiss with a pair that has values of disturbed jobs, or why it has none.
DISTURBED, ONE_DISTURBED = 'others disturbed it each time', 'others disturbed one session alone'
#: What all changes have of the change that was seen where they do the opposite of it.
OPPOSITE = -0.5
#: Seconds that a build is taken to need, and a session, before one was measured.
BUILD, SESSION = 90.0, 30.0


@dataclass(frozen=True)
class Question:
    """The figures that became worse, and the changes that may have done it.

    :param before: identifiers of the runs before.
    :param after: of those after.
    :param figures: what got worse, the one that changed most first.
    :param factors: the changes that can be switched.
    :param untried: the other differences.
    :param left: how many other figures got worse that are not looked at.
    :param mode: in which the runs were measured.
    :param undone: changes that can be switched too, and that no session has.
    :param in_order: whether no change is made without all before it, as commits and versions are.
    :param others_stay: whether others disturbed what was measured last each time.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    figures: tuple[Compared, ...]
    factors: tuple[Factor, ...]
    untried: tuple[Untried, ...]
    left: int = 0
    mode: str = ''
    undone: tuple[Factor, ...] = ()
    in_order: bool = False
    others_stay: bool = False

    @property
    def name(self) -> str:
        """The same question has the same name."""
        figures = (one.figure for one in self.figures)
        runs = [*self.before, '-', *self.after, '-']
        told = '\n'.join(map(str, [*runs, *figures, *self.factors, *self.undone]))
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    @property
    def noun(self) -> str:
        """For one of its changes."""
        if not self.in_order:
            return 'change'
        return 'commit' if self.factors[0].is_of_commits else 'version'

    @property
    def spread(self) -> float | None:
        """A guess at how much a pair varies, in units of the change; None without one."""
        found = [
            (math.sqrt(2) * single / abs(one.change), _certainty(one))
            for one in self.figures
            if (single := _error_of_a_session(one))
        ]
        return _weighted_median(found) if found else None

    @property
    def options(self) -> list[str]:
        """ReFrame's, that run the cases of the figures alone."""
        names = dict.fromkeys(one.figure.case.replace(' ', '') for one in self.figures)
        found = [word for name in names for word in ('-n', f'^{re.escape(name)}$')]
        if not self.has_environments:
            some = dict.fromkeys(re.escape(one.figure.environment) for one in self.figures)
            found += ['-p', f'^(?:{"|".join(some)})$']
        return found

    @property
    def place(self) -> list[str]:
        """The option that runs them on their partition alone."""
        figure = self.figures[0].figure
        return ['--system', f'{figure.system}:{figure.partition}']

    @property
    def switchable(self) -> tuple[Factor, ...]:
        """The changes that sessions choose among, and before them those that none has."""
        return *self.undone, *self.factors

    @property
    def has_environments(self) -> bool:
        """Whether the environment is one of the changes."""
        return any(ENVIRONMENT in one.needs[1] for one in self.switchable)


class NothingWorseError(AssayError):
    """No figure is worse after, as far as values count."""


def question(
    history: History,
    before: Sequence[StoredRun],
    after: Sequence[StoredRun],
    site: _SiteConfig,
    cases: str = '',
    figures: str = '',
) -> Question:
    """The question that runs before and after leave.

    Where nothing is worse without the values of disturbed jobs, these count as well: the search
    measures anew whether there is a loss, and here it is only asked where to look.

    :param site: the configuration of the system, loaded, in which changes are switched.
    :param cases: only figures of cases in whose names this is found.
    :param figures: only those in whose names this is found.
    :raises NothingWorseError: if nothing got worse.
    :raises AssayError: if nothing can be switched.
    """
    found = difference(history, before, after)
    try:
        return _question(found, site, cases, figures)
    except NothingWorseError:
        if not found.disturbances:
            raise
    found = difference(history, before, after, disturbed=True)
    asked = _question(found, site, cases, figures)
    looked_at = asked.figures[0].figure
    say(f'nothing is worse in undisturbed jobs; with the disturbed ones {looked_at} is')
    return replace(asked, others_stay=True)


def _question(found: Difference, site: _SiteConfig, cases: str, figures: str) -> Question:
    chosen = choose_figures({one.figure: one.after for one in found.figures}, cases, figures)
    are_worse = [one for one in found.figures if one.word == 'worse' and one.change]
    # Of what was 0 there is no share that a change might have.
    able = are_worse or [one for one in found.suspects if one.change]
    worse = [one for one in able if one.figure in chosen]
    if not worse:
        raise NothingWorseError(_nothing(found, able))
    # The case that tells most: each more would take its time in every session.
    first = max(worse, key=_certainty).figure.test_case
    of_case = [one for one in worse if one.figure.test_case == first]
    positions = {number: one.figure for number, one in enumerate(found.figures) if one in of_case}
    told = [one.after.facts for one in of_case]
    # What Spack built it from may be told of some figures alone.
    facts = next((one for one in told if 'spec' in one), told[0])
    switched, untried = factors_of(found.facts, positions, site, facts)
    assert_something_to_switch(switched, untried)
    asked = Question(
        tuple(run.uuid for run in found.before),
        tuple(run.uuid for run in found.after),
        worst_first(of_case),
        tuple(switched),
        tuple(untried),
        len({*are_worse} - {*of_case}),
    )
    known = [str(one['name']) for one in site['environments']]
    environment = of_case[0].figure.environment
    if not asked.has_environments and environment not in known:
        raise AssayError(
            f'{first} cannot be run: {unknown_name(environment, "environment", known)}'
        )
    return asked


def _nothing(found: Difference, worse: Sequence[Compared]) -> str:
    """Why there is nothing to explain.

    :param worse: figures that are worse, or look so, and were not chosen.
    """
    if worse:
        others = first_few([str(one.figure) for one in worse])
        return f'no figure that -n and --figure choose is or looks worse after; others: {others}.'
    if missed := [one.case for one in (*found.lost, *found.at_times)]:
        return (
            f'{first_few(missed)} failed after: only what has figures is explained; `assay triage`.'
        )
    without = [one.figure for one in found.gone]
    without += [one.figure for one in found.figures if one.word == 'worse']
    without += [one.figure for one in found.suspects]
    if without:
        names = first_few([str(one) for one in without])
        return f'{names}: 0 on a side, or at times, so no change of which a part is to be found.'
    if found.lacks_values:
        return 'too few values before and after count: `assay compare-runs` says why. Run again.'
    return 'no figure is worse after: there is nothing to explain. `assay compare-runs` shows all.'


def with_packages_apart(asked: Question, site: _SiteConfig, system: str) -> Question:
    """The question with changes of packages that Spack can make one by one: its solver is asked.

    :param site: the configuration of the system, loaded.
    :raises AssayError: if Spack cannot be asked, or nothing can be switched.
    """
    several = [one.name for one in asked.factors if SPECS in one.needs[1]]
    if not several:
        return asked
    say(
        f'Spack is asked which of {many(len(several), "package")} it can choose otherwise alone: '
        f'about a minute for each package of each choice, the first time'
    )
    environment = asked.figures[0].figure.environment

    def why_not(chosen: str) -> str:
        return why_not_chosen(site, system, environment, chosen)

    factors, gone = one_by_one(asked.factors, why_not)
    untried = (*asked.untried, *gone)
    assert_something_to_switch(factors, untried)
    return replace(asked, factors=tuple(factors), untried=untried)


def assert_something_to_switch(switched: Sequence[Factor], untried: Sequence[Untried]) -> None:
    """:raises AssayError: if no change can be switched."""
    if not switched:
        told = '; '.join(map(str, untried)) or 'jobs before and after tell no difference'
        raise AssayError(f'no change can be switched here: {told}.')


def _certainty(one: Compared) -> float:
    """How large its change is, in units of what a session varies."""
    return abs(one.change) / max(_error_of_a_session(one) or UNKNOWN, LEAST_SPREAD)


def _weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """The value that half of the weight is below; the middle of two if that is between them.

    :param values: each with its weight.
    """
    ranked, weights = np.array(sorted(values)).T
    below = np.cumsum(weights)
    halves = below[-1] * np.array([0.5 - 1e-9, 0.5 + 1e-9])  # sums of weights are not exact
    return float(ranked[np.searchsorted(below, halves)].mean())


def _error_of_a_session(one: Compared) -> float | None:
    """The standard deviation of its logarithm, as it is known; None if it is not."""
    comparison = one.verdict.comparison if one.verdict else None
    if comparison and comparison.is_seen and 0 < comparison.error < math.inf:
        return comparison.error / math.sqrt(sum(1 / size for size in comparison.sizes))
    return None


@dataclass(frozen=True)
class Pair:
    """A pair that was measured, a line of the journal.

    :param first: names of the changes of its first session, whichever came first.
    :param second: likewise.
    :param figures: the values in both, by the names of the figures; empty if there are none.
    :param runs: identifiers.
    :param seconds: that it took.
    :param why: why it has no value, or what is amiss with it: others disturbed it each time.
    :param failed: names of the changes of a session whose job failed; None if none did.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    figures: Mapping[str, tuple[float, float]]
    runs: tuple[str, ...]
    seconds: float
    why: str = ''
    failed: tuple[str, ...] | None = None

    @property
    def is_disturbed(self) -> bool:
        """Whether others disturbed a session of it each time."""
        return self.why in (DISTURBED, ONE_DISTURBED)

    def value(self, figures: Iterable[Compared]) -> float | None:
        """The change from its second session to the first: 1 is that which was seen.

        The median of the figures, each of which has the weight of how far its change stands out;
        None if there are none.
        """
        values = [
            (math.log(both[0] / both[1]) / one.change, _certainty(one))
            for one in figures
            if (both := self.figures.get(str(one.figure)))
        ]
        return _weighted_median(values) if values else None


@dataclass(frozen=True)
class Effect:
    """The effect of a change, in units of the change that was seen.

    :param share: 1 is all of it.
    :param low: of its 95% interval.
    :param high: likewise.
    :param pairs: that tell it.
    """

    share: float
    low: float
    high: float
    pairs: int


@dataclass(frozen=True, eq=False)
class Culprits:
    """The result of a search.

    :param question: with the changes that could be switched.
    :param answers: the possible causes, the most likely first.
    :param guilt: shape (changes,), how likely each has a part in it.
    :param effect: of the most likely answer; of all changes where that is no change. None before
        two pairs tell it.
    :param left: of all other changes, where the answer is a change. None before three pairs, some
        of which have others in one session, tell it.
    :param pairs: all that were measured.
    :param strange: what sessions of this search had otherwise than runs before and after: by name,
        what these had, and what it is here.
    :param stopped: why it ended before it was sure; empty if it did not.
    :param signal: by which it was stopped; 0 for none.
    :param steps: what was found among the commits of the sources, or the versions of the MPI, where
        these did it.
    :param no_steps: why they were not searched.
    """

    question: Question
    answers: tuple[Answer, ...]
    guilt: Floats
    effect: Effect | None
    left: Effect | None
    pairs: tuple[Pair, ...]
    strange: Mapping[str, tuple[str, str]]
    stopped: str = ''
    signal: int = 0
    steps: Culprits | None = None
    no_steps: str = ''

    @property
    def answer(self) -> Answer:
        return self.answers[0]

    @property
    def is_sure(self) -> bool:
        return self.answer.probability >= SURE and not self.is_opposite

    @property
    def is_opposite(self) -> bool:
        """Whether none of the changes would be sure, and all of them make each pair better.

        Sessions here are not as the runs were then, and tell nothing of these.
        """
        if self.answer.kind != 'none' or self.answer.probability < SURE:
            return False
        every = {one.name for one in self.question.factors}
        values = [
            value
            for pair in self.pairs
            if every <= {*pair.first} and not pair.second
            if (value := pair.value(self.question.figures)) is not None
        ]
        return max(values, default=0.0) < OPPOSITE

    @property
    def is_answered(self) -> bool:
        """Whether it is sure of a cause, and of the commit or version where that is searched.

        Sources of which no commit did it are no answer: the one contradicts the other.
        """
        among = self.steps
        return self.is_sure and (among is None or (among.is_sure and among.answer.kind != 'none'))

    @property
    def share_here(self) -> float | None:
        """How much of the change sessions of this search have, whichever changes are made.

        0 is as before, 1 as after. The median; None without a value.
        """
        found = [
            math.log(value / one.before.middle) / one.change
            for one in self.question.figures
            for pair in self.pairs
            for value in pair.figures.get(str(one.figure), ())
            if one.before.middle
        ]
        return statistics.median(found) if found else None

    @property
    def changes(self) -> list[Factor]:
        """The changes of the most likely answer."""
        return [self.question.factors[one] for one in self.answer.changes]


class CulpritSearch:
    """A search under way.

    :param runner: of its sessions.
    :param options: of ReFrame, for all sessions.
    :param seconds: after which no pair begins that would end later, unless a session of it is
        measured again; None for no such bound.
    :param began: when these seconds began; None for now.
    """

    def __init__(
        self,
        runner: Runner,
        asked: Question,
        options: Sequence[str],
        seconds: float | None,
        began: float | None = None,
    ) -> None:
        self.runner, self.asked, self.options, self.seconds = runner, asked, options, seconds
        self.journal = Journal(asked.name)
        self.pairs = self.journal.pairs
        self.others_stay = asked.others_stay or any(pair.is_disturbed for pair in self.pairs[-1:])
        self.earlier = len(self.pairs)
        self.began = time.monotonic() if began is None else began
        #: What sessions here had in place of what runs before and after had: by name, both values.
        self.strange: dict[str, tuple[str, str]] = {}
        self._begin()

    def _begin(self) -> None:
        """A search among the changes that can be switched, with all pairs so far."""
        self.factors = self._kept()
        self.names = [one.name for one in self.factors]
        assert_something_to_switch(self.factors, self._question().untried)
        weights = [one.weight for one in self.factors]
        self.search = Search(weights, self.asked.spread, self.asked.in_order)
        builds = seconds_of_builds({one.application for one in self.factors if one.application})
        self.build = statistics.median(builds) if builds else BUILD
        for pair in self.pairs:
            self._learn(pair)

    def _learn(self, pair: Pair) -> None:
        value = pair.value(self.asked.figures)
        if value is not None:
            self.search.record(*self._sets(pair), value)
        elif pair.failed is not None:
            self.search.skip(*self._sets(pair))

    def _sets(self, pair: Pair) -> tuple[Flags, Flags]:
        return self._set(pair.first), self._set(pair.second)

    def _set(self, names: Iterable[str]) -> Flags:
        return np.isin(self.names, [*names])

    def run(self) -> Culprits:
        """Measure until a cause is sure, or the time is over, or somebody stops it.

        Then likewise among the commits, if the sources or an application's commit did it, or the
        versions, if the MPI did.
        """
        found = self._run()
        alone = [[*one.needs[1]] for one in found.changes]
        is_one = alone in ([[SOURCES]], [[ENVIRONMENT]], [[COMMIT]])
        if found.signal or not found.is_sure or not is_one:
            return found
        try:
            search = self._among_steps(*found.changes)
        except AssayError as error:
            return replace(found, no_steps=str(error))
        steps = search._run()
        return replace(found, steps=steps, signal=found.signal or steps.signal)

    def _among_steps(self, change: Factor) -> CulpritSearch:
        """The search for the step, which knows the pairs of all of them against none: those are
        measured where no other change can be switched.

        :raises AssayError: if there is nothing to search.
        """
        steps = steps_of(change)
        asked = replace(
            self.asked,
            factors=tuple(steps),
            untried=(),
            left=0,
            undone=tuple(one for one in self.factors if one != change),
            in_order=True,
            others_stay=self.others_stay,
        )
        say(f'{change.name} did it: which of {many(len(steps), asked.noun)}?')
        journal = Journal(asked.name)
        every = tuple(one.name for one in steps)
        for pair in [] if journal.pairs else self.pairs:
            if (pair.first, pair.second) == ((change.name,), ()):
                journal.keep(replace(pair, first=every))
        return CulpritSearch(self.runner, asked, self.options, self.seconds, self.began)

    def _run(self) -> Culprits:
        if self.pairs:
            say(f'goes on after {many(len(self.pairs), "pair")}: {self.journal.path}')
        stopped = ''
        with note_signals() as self.runner.signals:
            try:
                while (split := self._next()) is not None:
                    self._assert_pairs_are_left()
                    # Without what was measured again, before which it looks at the time as well.
                    took = (
                        2 * one.seconds / max(2, len(one.runs)) for one in self.pairs if one.figures
                    )
                    self._assert_time_is_left(max(took, default=0.0))
                    self._measure(split)
            except StoppedError as error:
                stopped = str(error)
            signals = self.runner.signals
        found = self.search.answers()
        if not stopped and found[0].probability < SURE:
            stopped = 'sessions that would tell these apart fail'
        answered = Culprits(
            self._question(),
            tuple(found),
            self.search.guilt(),
            *effects_of(found[0], self.factors, self.pairs, self.asked.figures),
            tuple(self.pairs),
            self.strange,
            stopped,
            signals[0] if signals else 0,
        )
        # For the commands that are told; without them the answer is right all the same.
        with suppress(AssayError):
            for switched in ((), [one.name for one in answered.changes]):
                unpack(state(answered.changes, switched).setting)
        return answered

    def _question(self) -> Question:
        """Without the changes that turned out not to be switched."""
        gone = self.journal.untried
        asked = self.asked
        more = [
            Untried(one.name, one.before, one.after, gone[one.name])
            for one in asked.factors
            if one.name in gone
        ]
        return replace(asked, factors=tuple(self.factors), untried=(*asked.untried, *more))

    def _kept(self) -> list[Factor]:
        """The changes that can be switched; of steps each begins where the one before it ends."""
        kept: list[Factor] = []
        skipped: list[Factor] = []
        for one in self.asked.factors:
            if one.name in self.journal.untried:
                skipped.append(one)
                continue
            if self.asked.in_order and skipped:
                names = tuple(step.name for step in skipped)
                needs = skipped[0].needs[0], one.needs[1]
                one = replace(one, before=skipped[0].before, needs=needs, left_out=names)
            kept.append(one)
            skipped.clear()
        return kept

    def _next(self) -> Split | None:
        """Choose what to measure, and say it; None if the answer is known or nothing tells more."""
        split = self.search.step(self._cost)
        if split is None:
            return None
        top = self.search.answers()[0]
        if not self.search.measured:
            say(f'first: does it come back with {self._told(split.first)}?')
            return split
        if split.is_proof:
            alone = self._told(split.first & ~split.second)
            say(f'{self._name(top)}: {top.probability:.0%}; to confirm it, {alone}')
            return split
        guilt, others = self.search.guilt(), int(split.second.sum())
        against = f'the other {others}' if others else 'none'
        if (split.first & split.second).any():
            against = f'the first {others}' if self.asked.in_order else f'{others} of these'
        say(
            f'pair {len(self.pairs) + 1}: {self._told(split.first)}, with '
            f'{guilt @ (split.first & ~split.second) / guilt.sum():.0%} of the suspicion, against '
            f'{against}: it tells '
            f'{split.bits:.1f} bits; likeliest by now is {self._name(top)} ({top.probability:.0%})'
        )
        return split

    def _told(self, those: Flags) -> str:
        names = [name for name, is_in in zip(self.names, those, strict=True) if is_in]
        return ' and '.join(names) if len(names) < 3 else f'{len(names)} of {len(those)} changes'

    def _name(self, answer: Answer) -> str:
        names = ' and '.join(self.names[one] for one in answer.changes)
        return names or {'none': 'none of these'}.get(answer.kind, 'several small ones')

    def _cost(self, first: Flags, second: Flags) -> Floats:
        """Seconds that a pair with a value takes; endless for one that fails."""
        build = [number for number, one in enumerate(self.factors) if one.is_built]
        sets = [one for pair in self.pairs if pair.figures for one in self._sets(pair)]
        there = {tuple(one[build]) for one in sets}
        took = [pair.seconds for pair in self.pairs if pair.figures]
        session = min(took) if took else 2 * SESSION
        both = zip(first, second, strict=True)
        builds = [len({tuple(side[build]) for side in sides} - there) for sides in both]
        failed = [self._set(pair.failed) for pair in self.pairs if pair.failed is not None]
        fails = [chance_of_failure(some, failed, sets) for some in (first, second)]
        works = np.prod(1 - np.array(fails), axis=0)
        with np.errstate(divide='ignore'):
            found: Floats = (session + self.build * np.array(builds)) / works
        return found

    def _assert_pairs_are_left(self) -> None:
        """:raises StoppedError: if there were too many, or too many without a value."""
        own = self.pairs[self.earlier :]
        if len(own) >= MOST:
            raise StoppedError(f'{MOST} pairs were not enough')
        last = [*takewhile(lambda pair: not pair.figures, reversed(own))]
        teach = all(pair.failed and len(pair.failed) < len(self.names) for pair in last)
        if len(last) >= (FAILURES if teach else NO_VALUES):
            raise StoppedError(f'{len(last)} pairs had no value: {last[0].why}')

    def _assert_time_is_left(self, took: float) -> None:
        """:raises StoppedError: if what takes so many seconds would end too late."""
        if self.seconds is None:
            return
        left = self.seconds - (time.monotonic() - self.began)
        if left < 0:
            raise StoppedError(f'the time of {self.seconds / 60:.3g} min was over')
        if left < took:
            raise StoppedError(
                f'another pair, of {took / 60:.1f} min, would end after {self.seconds / 60:.3g} min'
            )

    def _measure(self, split: Split) -> None:
        """Measure a pair, and keep it.

        :raises StoppedError: if somebody stops it, or a session is no good as a whole.
        """
        began = time.monotonic()
        for those in (split.first, split.second):
            assert not self.asked.in_order or those[: those.sum()].all(), 'it cannot be made'
        sides = [
            [name for name, is_in in zip(self.names, those, strict=True) if is_in]
            for those in (split.first, split.second)
        ]
        values: list[dict[str, float]] = [{}, {}]
        runs: list[str] = []
        whys = ['', '']
        failed: tuple[str, ...] | None = None
        order = (0, 1) if len(self.pairs) % 2 == 0 else (1, 0)
        others_stayed = self.others_stay
        for side in order:
            values[side], whys[side], is_failure = self._session(sides[side], runs)
            if is_failure and self.asked.in_order:
                say('a session failed: measured again')
                self._assert_time_is_left(0.0)
                values[side], whys[side], is_failure = self._session(sides[side], runs)
                if is_failure:
                    self._leave_out(sides[side], whys[side])
                    return
            if not values[side]:
                failed = tuple(sides[side]) if is_failure else None
                whys = [whys[side]] * 2  # not what is amiss with the session that has values
                break
        both = {name: (values[0][name], values[1][name]) for name in values[0].keys() & values[1]}
        why = whys[0] or whys[1]
        if not both:
            why = why or 'no figure is in both of its sessions'
        elif whys[0] != whys[1]:
            # Where others have stayed, which sessions they disturb noticeably is chance.
            both, why = both if others_stayed else {}, ONE_DISTURBED
        seconds = time.monotonic() - began
        pair = Pair(tuple(sides[0]), tuple(sides[1]), both, tuple(runs), seconds, why, failed)
        self.others_stay = pair.is_disturbed
        self.journal.keep(pair)
        self._learn(pair)
        value = pair.value(self.asked.figures)
        amiss = f'; {why}' if why else ''
        say(f'no value: {why}' if value is None else f'{value:+.0%} of the change{amiss}')

    def _leave_out(self, made: Sequence[str], why: str) -> None:
        """Have the step after one whose sessions fail begin before it.

        :param made: the steps that are made, of which it is the last.
        :raises StoppedError: if it is the first or the last state: nothing stands for these.
        """
        if len(made) in (0, len(self.names)):
            side = 'after' if made else 'before'
            raise StoppedError(f'sessions of the state {side} fail: {why}')
        say(f'it failed again: {made[-1]} is left out')
        self.journal.give_up(made[-1], why)
        self._begin()

    def _session(self, switched: list[str], runs: list[str]) -> tuple[dict[str, float], str, bool]:
        """The values of a session with some of the changes; what is amiss; whether a job failed.

        What others disturbed is measured again. If they never leave, its values count if the other
        session of its pair is disturbed too, or the pair before was: how far they are off is
        learned from all pairs.

        :param runs: gets their identifiers.
        """
        asked = state([*self.asked.undone, *self.factors], switched)
        if why := self._why_not_ready(asked.setting):
            return {}, why, True
        label = f'culprit {self.asked.name}: {len(switched)} of {len(self.factors)} changes'
        options = [*asked.options, *self.asked.place, *self.options]
        tries: list[dict[str, float]] = []
        if self.others_stay:
            options += ['-S', 'wait_for_quiet=0']
        for number in range(1 if self.others_stay else 1 + AGAIN):
            if number:  # whose jobs have waited for others to leave, and wait again
                say('others disturbed it: measured again')
                self._assert_time_is_left(0.0)
            self.runner.assert_not_stopped()
            own = self.runner.begin()
            ended = self.runner.complete(own, label, options, asked.exports)
            assert ended.run
            self.runner.release(own, not ended.verdict.problems)
            runs.append(ended.run.uuid)
            history = load_history()
            table = history.figures([run for run in history.runs if run.uuid == ended.run.uuid])
            undisturbed = table.with_columns(pl.lit(None, pl.String).alias('disturbances'))
            everything = self._figures(undisturbed)
            self._look_at(everything, switched, asked.setting)
            if values := _middles(self._figures(table)):
                return values, '', False
            ended.tell_failures()
            if ended.verdict.problems:
                failed = [one.reason for one in failures(ended.run)]
                return {}, '; '.join(failed[:1] or ended.verdict.problems), True
            tries.append(_middles(everything))
        self.others_stay = True
        names = {name for one in tries for name in one}
        return (
            {name: statistics.median(one[name] for one in tries if name in one) for name in names},
            DISTURBED,
            False,
        )

    def _why_not_ready(self, setting: Setting) -> str:
        """Why what a session needs does not build before it; empty if it is there.

        :raises StoppedError: if it is not known whether it builds.
        """
        unpack(setting)
        if SPECS in setting.values:
            suite = self.runner.suite
            name = setting.environment or self.asked.figures[0].figure.environment
            some = [f'^{re.escape(name)}$']
            try:
                install_for_checks(suite.load(), suite.system, some, setting.values[SPECS])
            except NoBuildError as error:
                say(str(error))
                return str(error)
            except AssayError as error:  # such as a full disk, which tells nothing of the changes
                raise StoppedError(str(error)) from error
        return ''

    def _figures(self, table: pl.DataFrame) -> dict[str, Measured]:
        """The figures in question of a session, by their names in the question.

        :param table: of :meth:`assay.results.history.History.figures`.
        """
        found = {self._key(figure): one for figure, one in measured_figures(table).items()}
        wanted = {str(one.figure): self._key(one.figure) for one in self.asked.figures}
        return {name: found[key] for name, key in wanted.items() if key in found}

    def _key(self, figure: FigureKey) -> tuple[str, ...]:
        environment = '' if self.asked.has_environments else figure.environment
        return figure.partition, environment, figure.case, figure.figure, figure.unit

    def _look_at(
        self, figures: Mapping[str, Measured], switched: Iterable[str], setting: Setting
    ) -> None:
        """See that jobs had what was asked for; a change that they had not is tried no more.

        :raises AssayError: if none is left.
        :raises NoGoodError: if a program was built otherwise than in the other sessions.
        """
        wrong = {}
        spec = self.asked.figures[0].after.facts.get('spec')
        for one in figures.values():
            if COMMIT in setting.values and one.facts.get('spec') != spec:
                raise NoGoodError(f'a job built its program by {one.facts.get("spec")}, not {spec}')
            for factor in self.factors:
                is_made = factor.name in switched
                if (found := differs_from(factor, one.facts, is_made)) is not None:
                    wanted = factor.after if is_made else factor.before
                    wrong[factor.name] = f'jobs had {found} in place of {wanted}'
        for compared in self.asked.figures:
            here = figures.get(str(compared.figure))
            if here and not here.values.is_empty():
                self.strange |= strange_facts(compared, here.facts, self.asked.switchable)
        for name, why in wrong.items():
            say(f'{name} is not switched: {why}')
            self.journal.give_up(name, why)
        if wrong:
            self._begin()


def _middles(figures: Mapping[str, Measured]) -> dict[str, float]:
    """The middle value of each figure that has one."""
    middles = {name: one.middle for name, one in figures.items()}
    return {name: value for name, value in middles.items() if value is not None and value > 0}


_PAIR = TypeAdapter(Pair)


class Journal:
    """The pairs of a search, in the folder of results.

    :param name: of the question.
    """

    def __init__(self, name: str) -> None:
        self.path = paths.CULPRITS / f'{name}.jsonl'
        #: What was measured, and the changes that could not be switched, with the reason.
        self.pairs: list[Pair] = []
        self.untried: dict[str, str] = {}
        #: What others were told last: it follows from the pairs.
        self.concluded: Conclusion | None = None
        for line in whole_lines(self.path):
            self._read(line)

    def _read(self, line: str) -> None:
        try:
            told = json.loads(line)
            if CONCLUDED in told:
                self.concluded = CONCLUSION.validate_python(told[CONCLUDED])
            elif 'untried' in told:
                self.untried |= told['untried']
            else:
                self.pairs.append(_PAIR.validate_python(told))
        except DAMAGED:
            raise AssayError(f'{self.path} is damaged: remove it to begin anew.') from None

    def keep(self, pair: Pair) -> None:
        self.pairs.append(pair)
        append_line(self.path, json_text(pair))

    def give_up(self, name: str, why: str) -> None:
        self.untried[name] = why
        append_line(self.path, json_text({'untried': {name: why}}))

    def conclude(
        self, asked: Question, told: str, command: str, reproduce: Sequence[str] = ()
    ) -> None:
        """Keep what pages and comparisons of the same runs tell, unless it is kept already.

        :param told: the answer, in a line.
        :param command: that was given.
        :param reproduce: commands that show it.
        :raises AssayError: if it cannot be written.
        """
        sides = frozenset(asked.before), frozenset(asked.after)
        case = asked.figures[0].figure.test_case
        conclusion = Conclusion(sides[0], sides[1], case, told, command, tuple(reproduce))
        if conclusion != self.concluded:
            append_line(self.path, json_text({CONCLUDED: conclusion}))
            self.concluded = conclusion


def chance_of_failure(splits: Flags, failed: Sequence[Flags], worked: Sequence[Flags]) -> Floats:
    """How likely sessions fail, shape (m,): all changes and none of them had figures, so that one
    change fails without another, or beside what is not made of another.

    :param splits: shape (m, n), the changes of each session.
    :param failed: shape (n,), those of each that failed.
    :param worked: likewise.
    """
    harmless = np.zeros((splits.shape[1],) * 2, dtype=bool)
    for one in worked:
        harmless |= np.outer(one, ~one)
    found = np.zeros(len(splits))
    for one in failed:
        suspects = np.outer(one, ~one) & ~harmless
        within = np.einsum('ij,jk,ik->i', splits, suspects.astype(float), ~splits)
        found = 1 - (1 - found) * (1 - within / max(1, suspects.sum()))
    return found


def effects_of(
    answer: Answer, factors: Sequence[Factor], pairs: Iterable[Pair], figures: Iterable[Compared]
) -> tuple[Effect | None, Effect | None]:
    """The effect of the changes of an answer, of all of them where it has none, and of the others.

    By pairs that have all of these changes in one session, or none in either: least squares, as if
    the others had the same part each. Two pairs are too few for that: the part of the others is
    taken as none then, and what they have of it widens the interval.
    """
    every = {one.name for one in factors}
    names = {factors[one].name for one in answer.changes} or every
    figures = [*figures]
    xs, ys = [], []
    for pair in pairs:
        first, second = (
            np.array([len(some & {*side}) / max(1, len(some)) for some in (names, every - names)])
            for side in (pair.first, pair.second)
        )
        value = pair.value(figures)
        if value is not None and {first[0], second[0]} <= {0.0, 1.0}:
            xs.append(first - second)
            ys.append(value)
    x, y = np.array(xs).reshape(-1, 2), np.array(ys)
    rank = np.linalg.matrix_rank(x)
    if not x[:, 1].any() or (len(x) == rank == 2):
        x = x[:, :1]
    freedom = len(x) - x.shape[1]
    if freedom < 1 or rank < x.shape[1]:
        return None, None
    shares, *_ = np.linalg.lstsq(x, y)
    errors = np.sqrt(((y - x @ shares) ** 2).sum() / freedom * np.diag(np.linalg.inv(x.T @ x)))
    reach = special.stdtrit(freedom, 0.975) * errors
    ends = zip(shares.tolist(), (shares - reach).tolist(), (shares + reach).tolist(), strict=True)
    found = [Effect(*one, len(x)) for one in ends]
    return found[0], found[1] if len(found) > 1 else None
