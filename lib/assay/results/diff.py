"""What is worse, better or the same in some runs than in others, what it shares, what else changed.

The figures of both are compared by :mod:`assay.results.statistics`, all of them at once, against
the spread that the runs before them show.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import cast

import polars as pl

from assay import AssayError
from assay.config.scales import SCALES
from assay.results.figure_series import Figure, Measured, Past, learn_past, measured
from assay.results.grouping import Attribute, Group, Member, grouped
from assay.results.history import History, StoredRun
from assay.results.machine_figures import CONDITIONS, is_of_the_network, is_of_the_node
from assay.results.read_twice import read_twice
from assay.results.statistics.comparison import (
    MARGIN,
    Better,
    Comparison,
    Verdict,
    Word,
    compare,
    judge,
)
from assay.results.statistics.controls import cleared, moved
from assay.results.statistics.multiplicity import SUITE_RATE
from assay.results.statistics.series import Series
from assay.results.time_spent import TimeSpent, folders, time_spent
from assay.results.two_states import TwoStates, two_states
from assay.spelling import many

#: Nodes of a job of which each is looked at as the cause: of more, none alone explains much.
FEW_NODES = 8
#: Sessions that a figure was the same in before it counts as exact: of counts that a check says to
#: be, some vary after all, with the time that a job has. Of one that varies in any share of runs,
#: at most 1.8% of comparisons come after so many equal ones.
EXACT_SINCE = 20
#: Likewise a reference that was met in so many sessions before and missed in all after: of one that
#: is missed in any share of sessions, this share of comparisons looks so at most.
BY_CHANCE = 20**20 / 21**21


#: The environment that the figures before were measured in, and that of the figures after.
Environments = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Compared:
    """A figure before and after.

    :param before: its values then.
    :param after: its values since; in another unit if the unit changed.
    :param verdict: what is said of it; None where it cannot be compared.
    :param why_not: why it cannot be compared, in words; empty if it can.
    :param is_of: ``network`` or ``node`` of a figure of the machine itself, which no software above
        the kernel touches; empty of others.
    :param misses: whether it is worse because it misses a reference that it met before.
    :param has_followed: whether it changed, and may only have followed the machine.
    """

    before: Measured
    after: Measured
    verdict: Verdict | None
    why_not: str = ''
    is_of: str = ''
    misses: bool = False
    has_followed: bool = False

    @property
    def figure(self) -> Figure:
        return self.after.figure

    @property
    def word(self) -> Word:
        return self.verdict.word if self.verdict else 'cannot tell'

    @property
    def reason(self) -> str:
        """Why it cannot be told; empty if it can."""
        return self.verdict.reason if self.verdict else self.why_not

    @property
    def change(self) -> float:
        """Of after over before the natural logarithm; 0 where there is no ratio."""
        change = self.verdict.comparison.change if self.verdict else 0.0
        return change if math.isfinite(change) else 0.0

    @property
    def is_exact(self) -> bool:
        return self.verdict is not None and self.verdict.comparison.better == 'exact'

    @cached_property
    def reach(self) -> str:
        """Whether its messages leave the node: ``between nodes``, ``within a node`` or unknown."""
        nodes = SCALES.get(self.after.scale)
        return '' if nodes is None else 'within a node' if nodes == 1 else 'between nodes'

    @cached_property
    def attributes(self) -> frozenset[Attribute]:
        """What it may share with others."""
        one = self.after
        found = {
            *(('partition', self.figure.partition), ('environment', self.figure.environment)),
            *(('fabric', one.fabric), ('layout', one.layout), ('scale', one.scale)),
            *(('reach', self.reach), ('check', one.check), ('figure', self.figure.figure)),
            ('quantity', _quantity(self.figure)),
        }
        for nodes in {nodes for nodes in one.nodes.unique().to_list() if nodes}:
            names = _names(nodes)
            if len(names) <= FEW_NODES:
                found |= {('node', name) for name in names}
            if len(names) > 1:
                found.add(('nodes', nodes))
        return frozenset((kind, value) for kind, value in found if value not in ('', '-'))


def _quantity(figure: Figure) -> str:
    """What bounds it, where its name or its unit tell: latency, or bandwidth; else empty."""
    for quantity, unit in (('bandwidth', 'B/s'), ('latency', 'us')):
        if quantity in figure.figure or figure.unit.endswith(unit):
            return quantity
    return ''


@dataclass(frozen=True)
class Failed:
    """A case that gave figures before, and did not always after although it was run.

    :param case: its name, partition and environment.
    :param ends: how it ended after, each with how often: ReFrame's word, or None where it gave
        figures.
    """

    case: str
    ends: Counter[str | None]


@dataclass(frozen=True)
class Gone:
    """A figure that has no usable value any more, although its case ran, and why."""

    figure: Figure
    reason: str


@dataclass(frozen=True, eq=False)
class Fact:
    """Something that differs between before and after, beside the figures.

    :param figures: positions of the figures that were measured with it.
    """

    name: str
    before: str
    after: str
    figures: frozenset[int]


@dataclass(frozen=True, eq=False)
class Cause:
    """Figures that changed in one direction, and share something that the others do not.

    :param figures: that changed, the one that changed most first.
    :param group: what they share; None of one that stands alone.
    :param facts: what changed for all of them, with the fewest other figures first.
    :param time: where the time went of the case that changed most, of those that still tell.
    """

    word: Word
    figures: tuple[Compared, ...]
    group: Group | None
    facts: tuple[Fact, ...]
    time: TimeSpent | None = None


@dataclass(frozen=True, eq=False)
class Difference:
    """All that is said of runs before and after.

    :param past_runs: how many runs before them the spread was learned from.
    :param figures: of both, as they are sorted.
    :param lost: cases that gave figures before, and only failed after.
    :param at_times: cases that never failed before, and after in some runs.
    :param gone: figures of cases that ran, without a usable value that they had before.
    :param only_before: figures of cases that were not run after.
    :param only_after: likewise.
    :param conditions: how many figures tell of a job's conditions alone, and are not judged.
    :param moved: figures of the machine itself that changed, the one that changed most first.
    :param states: of before and of after, where the runs of a side are of two states.
    :param followed: figures that may only have followed it, likewise.
    :param time: where the time went of a case that the machine may have slowed; None if it did not
        move, or no job of such a case still tells.
    :param causes: those of what is worse first.
    :param facts: what else differs, that of most figures first.
    :param disturbances: what disturbed jobs whose values do not count, each with how many values.
    """

    before: tuple[StoredRun, ...]
    after: tuple[StoredRun, ...]
    past_runs: int
    margin: float
    figures: tuple[Compared, ...]
    lost: tuple[Failed, ...]
    at_times: tuple[Failed, ...]
    gone: tuple[Gone, ...]
    only_before: tuple[Figure, ...]
    only_after: tuple[Figure, ...]
    conditions: int
    moved: tuple[Compared, ...]
    states: tuple[TwoStates | None, TwoStates | None]
    followed: tuple[Compared, ...]
    time: TimeSpent | None
    causes: tuple[Cause, ...]
    facts: tuple[Fact, ...]
    disturbances: tuple[tuple[str, int], ...]

    @property
    def is_worse(self) -> bool:
        missed = self.lost or self.at_times or self.gone
        return bool(missed) or any(one.word == 'worse' for one in self.figures)

    @property
    def verdict(self) -> str:
        """``worse``, ``not worse``, or ``cannot tell`` where that is so of most figures."""
        if self.is_worse:
            return 'worse'
        unknown = self.counts['cannot tell']
        return 'cannot tell' if 2 * unknown > len(self.figures) else 'not worse'

    @property
    def counts(self) -> Counter[Word]:
        return Counter(one.word for one in self.figures)


def difference(
    history: History,
    before: Sequence[StoredRun],
    after: Sequence[StoredRun],
    margin: float = MARGIN,
    environments: Environments | None = None,
    again: Mapping[Figure, Compared] | None = None,
) -> Difference:
    """What differs between runs.

    :param before: one or more, oldest first.
    :param after: likewise.
    :param margin: what is within it is called the same: 0.05 is 5%.
    :param environments: that of before and that of after, whose figures are compared.
    :param again: figures that were measured again, and what is said of them instead.
    :raises AssayError: if they share a run, are of several systems, have nothing to compare, or the
        margin is none.
    """
    assert_margin(margin)
    _assert_comparable(before, after)
    tables = tables_of(history, before, after, environments)
    if twice := read_twice(tables[1], tables[0]):
        raise AssayError(
            f'{_some([uuid[:8] for uuid in twice])} of AFTER ran jobs that are in BEFORE as well: '
            'they were read twice, from perflogs and from the database or a report.'
        )
    old, new = (measured(table) for table in tables)
    pairs, only_before, only_after = _paired(*map(_without_conditions, (old, new)))
    then, now = (_ends(table) for table in tables)
    both = sorted(then.keys() & now.keys())
    lost = [
        Failed(case, now[case]) for case in both if None in then[case] and None not in now[case]
    ]
    at_times = [Failed(case, now[case]) for case in both if {*then[case]} == {None} < {*now[case]}]
    if not pairs and not lost:
        raise AssayError(
            f'no figure is of runs before ({_some([*then])}) and after ({_some([*now])}) both: '
            'choose runs of the same selection; `assay history` lists them.'
        )
    past_runs, past = _past(history, before, after, tables)
    earlier = _of_their_kinds(past, pairs)
    learned = learn_past(earlier.values())
    compared = _compared(pairs, earlier, learned, margin, environments, again or {})
    gives = {case for case, ends in now.items() if None in ends}
    gone = [
        *(Gone(one, 'its case gives it no more') for one in only_before if one.test_case in gives),
        *_unusable(compared),
    ]
    facts = _facts(compared)
    causes = [*_causes('worse', compared, facts), *_causes('better', compared, facts)]
    moved, time = _moved(compared), None
    if causes or moved:
        kept = folders(history, before[-1]), folders(history, after[-1])
        if environments:
            ends = tuple(f'+{name}' for name in environments)
            renamed = ((one.removesuffix(ends[0]) + ends[1], at) for one, at in kept[0].items())
            kept = dict(renamed), kept[1]
        causes = [replace(one, time=time_spent(*kept, _cases_of(one.figures))) for one in causes]
        time = time_spent(*kept, _cases_of(_slowed(compared, moved)))
    return Difference(
        before=tuple(before),
        after=tuple(after),
        past_runs=len(past_runs),
        margin=margin,
        figures=tuple(compared),
        lost=tuple(lost),
        at_times=tuple(at_times),
        gone=tuple(gone),
        only_before=tuple(one for one in only_before if one.test_case not in now),
        only_after=only_after,
        conditions=sum(figure.figure in CONDITIONS for figure in new),
        moved=moved,
        followed=_worst_first(one for one in compared if one.has_followed),
        time=time,
        # Sessions of two environments are in turn: a step meets both, and pairs stand against it.
        states=(None, None)
        if environments
        else (
            two_states((before for before, _ in pairs), learned),
            two_states((after for _, after in pairs), learned),
        ),
        causes=tuple(causes),
        facts=tuple(sorted(facts, key=lambda fact: (-len(fact.figures), fact.name))),
        disturbances=_disturbances(pl.concat(tables)),
    )


def assert_margin(margin: float) -> None:
    """:raises AssayError: if it is none."""
    if not 0 < margin < 1:
        raise AssayError(f'a margin is a fraction between 0 and 1, such as 0.05, not {margin:g}')


def tables_of(
    history: History,
    before: Sequence[StoredRun],
    after: Sequence[StoredRun],
    environments: Environments | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables of figures of both.

    :param environments: as of :func:`difference`: then each table is of one of them, and that of
        before has the other's name for it, so that a figure of a case has one name in both.
    """
    tables = history.figures(before), history.figures(after)
    if environments is None:
        return tables
    old, new = (
        table.filter(pl.col('environment') == name)
        for table, name in zip(tables, environments, strict=True)
    )
    return old.with_columns(environment=pl.lit(environments[1], pl.Categorical())), new


def _assert_comparable(before: Sequence[StoredRun], after: Sequence[StoredRun]) -> None:
    if shared := {run.uuid for run in before} & {run.uuid for run in after}:
        names = _some(sorted(uuid[:8] for uuid in shared))
        raise AssayError(f'BEFORE and AFTER share {names}: a run is compared with others only.')
    systems = sorted({run.summary.system for run in (*before, *after)})
    if len(systems) > 1:
        raise AssayError(
            f'the runs are of several systems, {_some(systems)}, which are never compared: '
            '--system chooses the runs of one.'
        )


def earlier_runs(
    history: History, before: Sequence[StoredRun], after: Sequence[StoredRun]
) -> list[StoredRun]:
    """The runs that show what this system does when nothing is compared."""
    chosen = {run.uuid for run in (*before, *after)}
    return [
        run
        for run in history.runs
        if run.summary.system == before[0].summary.system
        and run.begun < before[-1].begun
        and run.uuid not in chosen
        and not run.summary.problem
    ]


def _past(
    history: History,
    before: Sequence[StoredRun],
    after: Sequence[StoredRun],
    tables: Iterable[pl.DataFrame],
) -> tuple[list[StoredRun], pl.DataFrame]:
    """The earlier runs and their figures, without what was read twice.

    :param tables: of the runs that are compared.
    """
    runs = earlier_runs(history, before, after)
    table = history.figures(runs)
    if any(run.file for run in (*before, *after)):
        twice = read_twice(table, pl.concat(tables))
        runs = [run for run in runs if run.uuid not in twice]
        table = table.filter(~pl.col('run').cast(pl.String).is_in(twice))
    return runs, table


def _ends(table: pl.DataFrame) -> dict[str, Counter[str | None]]:
    """How each case ended that was run, by its name, partition and environment: as ``Failed``."""
    rows = (
        table.group_by('case', 'system', 'partition', 'environment', 'run', 'repeat')
        .agg(pl.when((pl.col('figure') == '-').all()).then(pl.col('result').first()))
        .rows(named=True)
    )
    found: dict[str, Counter[str | None]] = {}
    for row in rows:
        name = '{case} @{system}:{partition}+{environment}'.format(**row)
        found.setdefault(name, Counter())[row['result']] += 1
    return found


def _cases_of(figures: Iterable[Compared]) -> list[str]:
    return list(dict.fromkeys(one.figure.test_case for one in figures))


def _slowed(compared: Iterable[Compared], moved: Sequence[Compared]) -> tuple[Compared, ...]:
    """The figures that the machine may have changed, whether or not it can be told of them."""
    network_alone = {one.is_of for one in moved} == {'network'}
    return _worst_first(
        one
        for one in compared
        if moved and not one.is_of and not (network_alone and one.reach == 'within a node')
    )


def _unusable(compared: Iterable[Compared]) -> Iterator[Gone]:
    """Values that are none any more: they are left out of what is compared."""
    for one in compared:
        before, after = one.before, one.after
        if after.unusable and not before.unusable:
            yield Gone(one.figure, f'{many(after.unusable, "value")} not a number, or negative')
        elif after.better == 'higher' and 0 in after.values and 0 not in before.values:
            yield Gone(one.figure, 'it is 0')


def _without_conditions(found: Mapping[Figure, Measured]) -> dict[Figure, Measured]:
    return {figure: one for figure, one in found.items() if figure.figure not in CONDITIONS}


_Pair = tuple[Measured, Measured]


def _paired(
    old: Mapping[Figure, Measured], new: Mapping[Figure, Measured]
) -> tuple[list[_Pair], tuple[Figure, ...], tuple[Figure, ...]]:
    """The figures of both, whatever their units; then those of only one of them."""
    rest = {figure: replace(figure, unit='') for figure in old if figure not in new}
    pairs, only_after = [], []
    for figure, one in new.items():
        alike = (was for was, name in rest.items() if name == replace(figure, unit=''))
        was = figure if figure in old else next(alike, None)
        if was is None:
            only_after.append(figure)
        else:
            pairs.append((old[was], one))
            rest.pop(was, None)
    return pairs, tuple(rest), tuple(only_after)


def _of_their_kinds(past: pl.DataFrame, pairs: Iterable[_Pair]) -> dict[Figure, Measured]:
    """The figures of the past, and others of their kinds."""
    kinds = {after.kind for _, after in pairs}
    return {figure: one for figure, one in measured(past).items() if one.kind in kinds}


def _compared(
    pairs: Sequence[_Pair],
    earlier: Mapping[Figure, Measured],
    past: Past,
    margin: float,
    environments: Environments | None,
    again: Mapping[Figure, Compared],
) -> list[Compared]:
    """Every figure with its verdict: all of them are one suite, whose error rate is promised.

    :param earlier: what the runs before show, in which nothing is judged.
    :param past: what they teach.
    """
    found = [
        Compared(*pair, None, _why_not(*pair, past, environments), _is_of(*pair)) for pair in pairs
    ]
    told = [number for number, one in enumerate(found) if not one.why_not]
    comparisons = []
    for number in told:
        before, after = found[number].before, found[number].after
        assert before.series and after.series
        unchanged, kind = past_of(after.figure, past, environments), past.kinds.get(after.kind)
        better = cast(Better, after.better or before.better)
        comparisons.append(compare(before.series, after.series, better, unchanged, kind))
    for number, verdict in zip(told, judge(comparisons, margin=margin), strict=True):
        one = found[number]
        if verdict.word != 'worse' and _misses_now(one, earlier.get(one.figure)):
            verdict = replace(verdict, word='worse', reason='')
            one = replace(one, misses=True)
        found[number] = replace(one, verdict=verdict)
    return _not_blamed_on_software([again.get(one.figure, one) for one in found])


def past_of(figure: Figure, past: Past, environments: Environments | None = None) -> Series | None:
    """The history of a figure; of two environments that one which varies more.

    :param figure: as it is called in the environment after.
    """
    names = environments or (figure.environment,)
    found = (past.unchanged.get(replace(figure, environment=name)) for name in names)
    usable = [one for one in found if one]
    return max(usable, key=_variation) if usable else None


def _variation(one: Series) -> float:
    return float(one.locations.var()) if one.has_logarithms else 0.0


def _misses_now(one: Compared, earlier: Measured | None) -> bool:
    """Whether all sessions after miss a reference that all before would meet, and not by chance.

    The spread may be too wide to tell more, or the change within the margin, but who sees the case
    fail is right. Before they may have been held to another reference: who tightens it makes
    nothing worse.
    """
    met, missed = [one.before, *([earlier] if earlier else [])], one.after
    if {*missed.verdicts} != {'fail'}:
        return False
    better = missed.better or one.before.better
    lower = missed.lowers.max() if better != 'lower' else None
    upper = missed.uppers.min() if better != 'higher' else None

    def beyond(side: Measured) -> pl.Series:
        is_low = side.values < (-math.inf if lower is None else lower)
        return is_low | (side.values > (math.inf if upper is None else upper))

    if not beyond(missed).all() or any(beyond(side).any() for side in met):
        return False
    n, k = (sum(side.runs.n_unique() for side in sides) for sides in (met, [missed]))
    return (n / (n + k)) ** n * (k / (n + k)) ** k <= BY_CHANCE


def _why_not(
    before: Measured, after: Measured, past: Past, environments: Environments | None = None
) -> str:
    """Why two sides of a figure cannot be compared; empty if they can."""
    old, new = before.figure.unit or 'none', after.figure.unit or 'none'
    if old != new:
        return f'its unit was {old} and is {new}'
    if before.better and after.better and before.better != after.better:
        return f'it got better {before.better}, and now gets better {after.better}'
    better = after.better or before.better
    if better is None:
        return 'the direction in which it gets better was not stored yet'
    if better not in ('higher', 'lower', 'exact'):
        return f'the direction in which it gets better is stored as {better!r}'
    for side, when in ((before, 'before'), (after, 'after')):
        if side.series is None:
            return f'no value {when} is left: {_left_out(side)}'
    environment = environments[0] if environments else after.figure.environment
    past_name = replace(after.figure, environment=environment)
    return _why_not_exact(before, after, past.unchanged.get(past_name)) if better == 'exact' else ''


def _why_not_exact(before: Measured, after: Measured, known: Series | None) -> str:
    """Why a count that changed may be no exact one; empty if it is, or did not change."""
    assert before.series
    earlier, sessions = {*before.values}, before.series.size
    if not {*after.values} - earlier and len(earlier) == 1:
        return ''
    if known:
        earlier, sessions = earlier | {*known.values.tolist()}, sessions + known.size
    if len(earlier) > 1:
        return 'it is said to be exact, and varied before as well'
    if sessions < EXACT_SINCE:
        return f'it is said to be exact, which takes {EXACT_SINCE} equal runs before to show'
    return ''


def _left_out(one: Measured) -> str:
    counts = {'disturbed by others': one.disturbed, 'not a number, or negative': one.unusable}
    return ', '.join(f'{count} {what}' for what, count in counts.items() if count)


def _is_of(before: Measured, after: Measured) -> str:
    if is_of_the_network(after):
        return 'network'
    return 'node' if is_of_the_node(before, after) else ''


def _not_blamed_on_software(found: Sequence[Compared]) -> list[Compared]:
    """Without verdicts on software that may only have followed the machine.

    What stays within a node cannot have followed the network.
    """
    controls = _moved(found)
    alone = SUITE_RATE / max(1, sum(bool(one.verdict) and not one.is_of for one in found))

    def bearing_on(one: Compared) -> Iterator[Comparison]:
        for control in controls:
            if control.verdict and (one.reach, control.is_of) != ('within a node', 'network'):
                yield control.verdict.comparison

    def beside(one: Compared) -> Compared:
        # What made a case fail is worse, whatever the reason.
        if one.is_of or one.misses or not one.verdict:
            return one
        verdict = cleared(one.verdict, bearing_on(one), alone, one.figure.unit == '1')
        return replace(one, verdict=verdict, has_followed=verdict.word != one.verdict.word)

    return [beside(one) for one in found]


def _moved(found: Iterable[Compared]) -> tuple[Compared, ...]:
    """The figures of the machine itself that changed, the one that changed most first."""
    controls = {id(one.verdict.comparison): one for one in found if one.is_of and one.verdict}
    comparisons = [one.verdict.comparison for one in controls.values() if one.verdict]
    return tuple(controls[id(one)] for one in moved(comparisons))


def _causes(word: Word, compared: Sequence[Compared], facts: Sequence[Fact]) -> Iterable[Cause]:
    """What got worse, or better: in groups, and then what stands alone."""
    if not any(one.word == word for one in compared):
        return
    members = [
        Member(number, one.attributes, one.word == word, one.word != 'cannot tell')
        for number, one in enumerate(compared)
        # What cannot change for the same cause says nothing against it.
        if one.word == word or not (one.why_not or one.is_exact or one.is_of)
    ]
    groups, alone = grouped(members)
    for group in groups:
        of_it = {*group.changed, *group.others}
        changed = [fact for fact in facts if fact.figures >= {*group.changed}]
        changed.sort(key=lambda fact: (len(fact.figures - of_it), fact.name))
        figures = _worst_first(compared[key] for key in group.changed)
        yield Cause(word, figures, group, tuple(changed))
    if alone:
        yield Cause(word, _worst_first(compared[key] for key in alone), None, ())


def _worst_first(figures: Iterable[Compared]) -> tuple[Compared, ...]:
    return tuple(sorted(figures, key=lambda one: -abs(one.change)))


def _facts(compared: Sequence[Compared]) -> list[Fact]:
    """What figures were measured with that differs; not where one side told nothing."""
    found: dict[tuple[str, str, str], set[int]] = {}
    for number, one in enumerate(compared):
        old, new = one.before.facts, one.after.facts
        both_told = len(old.keys() - {'nodes'}) and len(new.keys() - {'nodes'})
        names = old.keys() | new.keys() if both_told else {'nodes'} & old.keys() & new.keys()
        for name in names:
            then, now = old.get(name) or '-', new.get(name) or '-'
            if then != now:
                found.setdefault((name, then, now), set()).add(number)
    return [Fact(*change, frozenset(figures)) for change, figures in found.items()]


def _disturbances(table: pl.DataFrame) -> tuple[tuple[str, int], ...]:
    said = table.filter(
        pl.col('disturbances').is_not_null()
        & (pl.col('figure') != '-')
        & ~pl.col('figure').cast(pl.String).is_in([*CONDITIONS])
    )
    return tuple(Counter(said['disturbances'].cast(pl.String).to_list()).most_common())


@lru_cache(maxsize=1024)
def _names(nodes: str) -> list[str]:
    """The nodes of a list such as ``n[1-4]``; the text itself where it is none."""
    from reframe.utility import nodelist_expand

    try:
        return list(nodelist_expand(nodes))
    except ValueError:
        return [nodes]


def _some(names: Sequence[str], most: int = 4) -> str:
    """The first few of some names."""
    return ', '.join([*names[:most], *(['...'] if len(names) > most else [])]) or 'nothing'
