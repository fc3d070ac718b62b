"""The cases that say most in a given time: a choice by what is known of each, before any job.

ReFrame chooses checks by name, so what is chosen is a check with its parameters, on every partition
and with every environment that the options select: an entry.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from itertools import groupby
from statistics import median, median_low

from assay import AssayError
from assay.quantities import duration_text
from assay.results.case_history import TROUBLES, CaseHistory
from assay.results.cases import check_of, parameters_of
from assay.running.selection import Listed

#: Of each budget the share that goes by age alone, so that nothing starves whatever else fails.
BY_AGE = 0.75

#: Seconds that a case takes, and that a build takes, where nothing is known of any; and that it
#: takes to use again what an earlier run has built.
CASE, BUILD, BUILT = 20.0, 40.0, 5.0

#: The kinds of what an entry covers, the one that matters most first.
PARTS = ('check', 'environment', 'partition', 'fabric')

_BEGINNING = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class BudgetEntry:
    """A group of cases that is chosen or left out as a whole.

    :param seconds: that all its cases are expected to take, one after the other.
    :param last: when the case of it that was longest not run ran last; None if one never did.
    :param age: sorts entries, those that were longest not run first.
    :param trouble: the worst of its cases, one of :data:`assay.results.case_history.TROUBLES`.
    :param assumed: how many of its cases have no known time.
    """

    name: str
    cases: tuple[Listed, ...]
    seconds: float
    last: datetime | None
    age: tuple[int, datetime]
    trouble: str
    assumed: int

    @cached_property
    def parts(self) -> frozenset[tuple[str, str]]:
        """The parts of the suite and of the machine that it covers."""
        found = {('check', check_of(self.name))}
        if fabric := parameters_of(self.name).get('fabric'):
            found.add(('fabric', fabric))
        for case in self.cases:
            found |= {('environment', case.environment), ('partition', case.partition)}
        return frozenset(found)

    @cached_property
    def needs(self) -> frozenset[str]:
        """The builds that it needs first."""
        return frozenset().union(*(case.needs for case in self.cases))


@dataclass(frozen=True)
class Choice:
    """The cases that a budget is enough for, and those that are left out.

    :param budget: seconds.
    :param expected: seconds that the run is expected to take; at most the budget.
    :param chosen: as they were chosen.
    :param left_out: those that were longest not run first.
    :param too_long: those of them that would never fit, not even alone; each with the seconds of a
        budget that it would fit into.
    :param beside: seconds that the run takes beside cases, with all that is built for them.
    """

    budget: float
    expected: float
    chosen: tuple[BudgetEntry, ...]
    left_out: tuple[BudgetEntry, ...]
    too_long: Mapping[BudgetEntry, float]
    beside: float = 0.0

    @property
    def cases(self) -> int:
        """How many cases are run."""
        return sum(len(one.cases) for one in self.chosen)

    @property
    def listed(self) -> list[Listed]:
        """The cases that are run."""
        return [case for one in self.chosen for case in one.cases]

    @property
    def cases_left_out(self) -> int:
        return sum(len(one.cases) for one in self.left_out)

    @property
    def turns(self) -> int | None:
        """How many runs with this budget give each case its turn, whatever fails meanwhile.

        None if a case is too long for it, or there is no such bound.
        """
        if not self.left_out:
            return 1
        # Of the share that goes by age only what is shorter than the next in turn is left unused.
        used = BY_AGE * self.budget - self.beside - max(self._costs)
        return math.ceil(sum(self._costs) / used) if used > 0 and not self.too_long else None

    def seconds_needed(self, turns: int) -> float:
        """The seconds of a budget that gives each case its turn within so many runs."""
        return (sum(self._costs) / turns + self.beside + max(self._costs)) / BY_AGE

    @cached_property
    def _costs(self) -> list[float]:
        return [one.seconds for one in (*self.chosen, *self.left_out)]

    @property
    def assumed(self) -> int:
        """How many of the cases that are run have no known time."""
        return sum(one.assumed for one in self.chosen)

    @property
    def titles_left_out(self) -> frozenset[str]:
        """Name, partition and environment of each case that is left out."""
        return frozenset(case.title for one in self.left_out for case in one.cases)


def advice(seconds: float, what: str) -> str:
    """The budget that is enough for something: a minute more, as no two runs take the same time.

    :param seconds: that it needs.
    """
    minutes = math.ceil(seconds / 60) + 1
    return f'--budget {duration_text(60 * minutes)} is enough for {what}'


def fill_budget(
    cases: Iterable[Listed],
    known: Mapping[str, CaseHistory],
    budget: float,
    beside: float = 0.0,
    times: int = 1,
    suspects: Collection[str] = (),
    nodes: int = 1,
) -> Choice:
    """Choose those that say most.

    Three quarters of the budget go by age: to what was longest not run, what never ran first, and
    among the equally old to what covers a check, fabric, MPI or partition that nothing does yet.
    The rest goes to what failed, was disturbed or varies, then to parts that nothing covers yet,
    then by age again. Cases that do not fit are passed over.

    :param cases: what may be chosen.
    :param known: what the history tells, by title; of what is built, by name.
    :param budget: seconds.
    :param beside: seconds that the run takes beside cases and builds.
    :param times: how often each case is run.
    :param suspects: titles of cases that are worth as much as those that failed.
    :param nodes: on which cases run side by side; a case that needs half of them costs half of its
        time.
    :raises AssayError: if there is nothing to choose from, or nothing fits.
    """
    cases = [*cases]
    by_age = _by_age(entries_of(cases, known, times, suspects, nodes))
    if not by_age:
        raise AssayError('no case is selected, so there is nothing to choose from.')
    needed = {name for case in cases for name in case.needs}
    builds = {name: _build(known.get(name, CaseHistory())) for name in needed}
    filling = _Filling(builds, beside)
    able = [one for one in by_age if filling.fits(one, budget)]
    if not able:
        least = beside + min(filling.cost(one) for one in by_age)
        raise AssayError(
            f'--budget: nothing would run in {budget:.0f} s: of the {len(cases)} selected cases '
            f'none is expected to take less than {least:.0f} s, with what is built for it. Give '
            'more time.'
        )
    for one in able:
        # The oldest has its turn even if it takes more than the share.
        filling.take(one, budget * (1.0 if one is able[0] else BY_AGE))
    for one in sorted(able, key=lambda one: TROUBLES.index(one.trouble)):
        if one.trouble:
            filling.take(one, budget)
    for kind in PARTS:
        for one in able:
            if any(part[0] == kind for part in one.parts - filling.covered):
                filling.take(one, budget)
    for one in able:
        filling.take(one, budget)
    left_out = tuple(one for one in by_age if one.name not in filling.chosen)
    in_time = {one.name for one in _in_time(by_age, known, builds, beside, budget)}
    too_long = {
        one: beside + _Filling(builds, 0.0).cost(one) for one in left_out if one.name not in in_time
    }
    beside += sum(builds[name] for name in sorted(builds))
    chosen = tuple(filling.chosen.values())
    return Choice(budget, filling.seconds, chosen, left_out, too_long, beside)


def _in_time(
    entries: Sequence[BudgetEntry],
    known: Mapping[str, CaseHistory],
    builds: Mapping[str, float],
    beside: float,
    budget: float,
) -> list[BudgetEntry]:
    """The entries that will fit into the budget: alone, with what earlier runs have built.

    The first entry that fits together with a missing build makes it. If none does, it is never
    made, and all entries that need it would wait for ever.
    """
    expected, found = {**builds}, 0
    while True:
        filling = _Filling(expected, beside)
        fitting = [one for one in entries if filling.fits(one, budget)]
        if len(fitting) == found:
            return fitting
        found = len(fitting)
        needed = {name for one in fitting for name in one.needs}
        unknown = {name for name in needed if not known.get(name, CaseHistory()).seconds}
        expected |= dict.fromkeys(unknown, BUILT)


def _build(known: CaseHistory) -> float:
    """Seconds that a build takes; if only one run had it, that run made it."""
    if not known.seconds:
        return BUILD
    return median_low(known.seconds) if len(known.seconds) > 1 else min(known.seconds[0], BUILT)


class _Filling:
    """A budget that is being spent.

    :param builds: seconds of what is built, by name; once for all that need it.
    :param seconds: that are spent.
    """

    def __init__(self, builds: Mapping[str, float], seconds: float) -> None:
        self.builds, self.seconds = builds, seconds
        self.chosen: dict[str, BudgetEntry] = {}
        self.built: set[str] = set()
        self.covered: set[tuple[str, str]] = set()

    def cost(self, entry: BudgetEntry) -> float:
        return entry.seconds + sum(self.builds[name] for name in sorted(entry.needs - self.built))

    def fits(self, entry: BudgetEntry, up_to: float) -> bool:
        return self.seconds + self.cost(entry) <= up_to

    def take(self, entry: BudgetEntry, up_to: float) -> None:
        """Choose an entry, if it is not yet and fits."""
        if entry.name in self.chosen or not self.fits(entry, up_to):
            return
        self.chosen[entry.name] = entry
        self.seconds += self.cost(entry)
        self.built |= entry.needs
        self.covered |= entry.parts


def entries_of(
    cases: Sequence[Listed],
    known: Mapping[str, CaseHistory],
    times: int,
    suspects: Collection[str],
    nodes: int,
) -> list[BudgetEntry]:
    """The cases by their names, with what is expected of each."""
    of_check: dict[str, list[float]] = {}
    typical: dict[str, float] = {}
    for case in cases:
        if case.title in known and known[case.title].seconds:
            typical[case.title] = median(known[case.title].seconds)
            of_check.setdefault(check_of(case.name), []).append(typical[case.title])
    of_all = median(typical.values()) if typical else CASE
    by_name: dict[str, list[Listed]] = {}
    for case in cases:
        by_name.setdefault(case.name, []).append(case)
    found = []
    for name, own in by_name.items():
        of_name = median(of_check.get(check_of(name), [of_all]))
        pasts = [known.get(case.title, CaseHistory()) for case in own]
        ages = [_age(one) for one in pasts]
        troubles = [one.trouble for one in pasts]
        if any(case.title in suspects for case in own):
            troubles.append(TROUBLES[0])
        found.append(
            BudgetEntry(
                name,
                tuple(own),
                times
                * sum(
                    # By the part of the nodes that the case needs.
                    typical.get(one.title, of_name) * min(1.0, (one.nodes or nodes) / nodes)
                    for one in own
                ),
                None if any(one.last is None for one in pasts) else min(ages)[1],
                min(ages),
                min(troubles, key=TROUBLES.index),
                sum(case.title not in typical for case in own),
            )
        )
    return found


def _age(one: CaseHistory) -> tuple[int, datetime]:
    """The key to sort by: never ran, then ran by a wrong clock only, then ran longest ago.

    A day in the future would else keep a case from its turn until that day.
    """
    if one.last is not None:
        return 2, one.last
    return (0, _BEGINNING) if one.in_future is None else (1, one.in_future)


def _by_age(entries: Iterable[BudgetEntry]) -> list[BudgetEntry]:
    """Longest not run first; of equally old entries a new check, then the one that covers most.

    The name decides where nothing else does: the same history gives the same choice.
    """
    found: list[BudgetEntry] = []
    covered: set[tuple[str, str]] = set()

    def gain(one: BudgetEntry) -> tuple[bool, int]:
        new = one.parts - covered
        return any(kind == 'check' for kind, _ in new), len(new)

    oldest_first = sorted(entries, key=lambda one: (one.age, one.name))
    for _, group in groupby(oldest_first, key=lambda one: one.age):
        equal = [*group]
        while equal:
            best = max(equal, key=gain)
            if best.parts <= covered:
                break
            equal.remove(best)
            found.append(best)
            covered |= best.parts
        found += equal
    return found
