"""The difference between runs: what is worse, better or the same, why, and what else changed.

The figures of both are compared by :mod:`assay.results.statistics`, all of them at once, against
the spread that the runs before them show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from assay import AssayError
from assay.results.diff.causes import Cause, Fact, causes_of, facts_that_differ
from assay.results.diff.compared import Compared, worst_first
from assay.results.diff.cores import on_alike_cores
from assay.results.diff.endings import (
    Failed,
    Gone,
    ends_of,
    fails_at_times,
    is_lost_case,
    unusable_values,
)
from assay.results.diff.families import (
    Finding,
    family_findings,
    has_lost_beside_zeros,
    suspect_figures,
)
from assay.results.diff.judging import (
    Earlier,
    assert_margin,
    judge_figures,
    learn_earlier,
    rises_from_zero,
)
from assay.results.diff.sides import (
    Tables,
    TwoStates,
    alike_disturbed,
    all_disturbed,
    assert_comparable,
    beside_controls,
    pair_figures,
    tables_of,
    two_states,
    without_conditions,
    without_first_values,
)
from assay.results.figure_series import CONDITIONS, FigureKey, measured_figures
from assay.results.figures import duplicate_runs
from assay.results.history import History, StoredRun
from assay.results.statistics.comparison import MARGIN, Comparison, Word
from assay.results.statistics.controls import doubt_if_machine_moved, may_follow, moved_controls
from assay.results.statistics.families import FALSE_SHARE, FigureFamily
from assay.results.statistics.multiplicity import SUITE_RATE
from assay.results.time_spent import TimeSpent, folders, time_spent
from assay.running.setting import Settings
from assay.text import first_few

# What moved of the machine, and what may only have followed it ------------------------------------


def figures_that_moved(found: Iterable[Compared]) -> tuple[Compared, ...]:
    """The figures of the machine itself that changed, the one that changed most first."""
    controls = {id(one.verdict.comparison): one for one in found if one.is_of and one.verdict}
    comparisons = [one.verdict.comparison for one in controls.values() if one.verdict]
    return tuple(controls[id(one)] for one in moved_controls(comparisons))


def _can_have_followed(one: Compared, control: Compared) -> bool:
    """Whether a figure can have followed a control: not the network if it stays within a node."""
    return control.is_of != 'network' or one.reach != 'within a node'


def not_blamed_on_software(
    found: Sequence[Compared], controls: Sequence[Compared], families: Sequence[FigureFamily]
) -> list[Compared]:
    """Without verdicts on software that may only have followed the machine.

    :param controls: the figures of the machine that moved.
    :param families: of the figures, with positions in ``found``.
    """
    family_of = {number: one for one in families for number in one.tested.members}
    alone = SUITE_RATE / max(1, len(families))

    def bearing_on(one: Compared) -> list[Comparison]:
        return [
            control.verdict.comparison
            for control in controls
            if control.verdict and _can_have_followed(one, control)
        ]

    def beside(number: int, one: Compared) -> Compared:
        # What made a case fail is worse, whatever the reason.
        if one.is_of or one.misses or not one.verdict:
            return one
        family, bearing = family_of.get(number), bearing_on(one)
        # If the family got worse by more than the machine, a figure of it needs less to be sure.
        is_beyond = family is not None and not any(
            may_follow(family.tested.index, control, alone, False) for control in bearing
        )
        rate = FALSE_SHARE if is_beyond else SUITE_RATE / len(found)
        verdict = doubt_if_machine_moved(one.verdict, bearing, rate, one.figure.unit == '1')
        if one.is_missing and verdict.word != 'worse':
            return one.worse_by_missing()
        return replace(one, verdict=verdict, has_followed=verdict.word != one.verdict.word)

    if not controls:
        return list(found)
    return [beside(number, one) for number, one in enumerate(found)]


def figures_that_may_have_followed(
    compared: Iterable[Compared], moved: Sequence[Compared]
) -> tuple[Compared, ...]:
    """The figures that may only have followed the machine, decided or not."""
    return worst_first(
        one
        for one in compared
        if not one.is_of and any(_can_have_followed(one, control) for control in moved)
    )


@dataclass(frozen=True, eq=False)
class Difference:
    """All that is said of runs before and after.

    :param earlier: what the runs before them show, which the spread was learned from.
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
    :param families: of the figures, what is worse first, and of these what lost most in all.
    :param suspects: what looks worse by more than the margin and is not decided, worst first.
    :param facts: what else differs, that of most figures first, and last what only follows from it.
    :param disturbances: what disturbed jobs whose values do not count, each with how many values.
    :param alike_disturbed: how many values of disturbed jobs count, as others took as much before.
    """

    before: tuple[StoredRun, ...]
    after: tuple[StoredRun, ...]
    earlier: Earlier
    margin: float
    figures: tuple[Compared, ...]
    lost: tuple[Failed, ...]
    at_times: tuple[Failed, ...]
    gone: tuple[Gone, ...]
    only_before: tuple[FigureKey, ...]
    only_after: tuple[FigureKey, ...]
    conditions: int
    moved: tuple[Compared, ...]
    states: tuple[TwoStates | None, TwoStates | None]
    followed: tuple[Compared, ...]
    time: TimeSpent | None
    causes: tuple[Cause, ...]
    families: tuple[Finding, ...]
    suspects: tuple[Compared, ...]
    facts: tuple[Fact, ...]
    disturbances: tuple[tuple[str, int], ...]
    alike_disturbed: int

    @property
    def is_worse(self) -> bool:
        missed = self.lost or self.at_times or self.gone
        return bool(missed) or any(one.word == 'worse' for one in self.figures)

    @property
    def is_undecided(self) -> bool:
        """Whether nothing is worse for sure, and something looks so."""
        return not self.is_worse and bool(self.suspects)

    @property
    def verdict(self) -> str:
        """``worse``; ``undecided`` if something looks worse, or most cannot be compared at all.

        Otherwise ``not worse``.
        """
        if self.is_worse:
            return 'worse'
        return 'undecided' if self.is_undecided or self.lacks_values else 'not worse'

    @property
    def lacks_values(self) -> bool:
        """Whether most figures have no values before and after that can be compared."""
        return 2 * sum(one.verdict is None for one in self.figures) > len(self.figures)

    @property
    def exit_code(self) -> int:
        """The exit code of a command that compares."""
        return {'worse': 1, 'undecided': 3, 'not worse': 0}[self.verdict]

    @property
    def counts(self) -> Counter[Word]:
        return Counter(one.word for one in self.figures)


def difference(
    history: History,
    before: Sequence[StoredRun],
    after: Sequence[StoredRun],
    margin: float = MARGIN,
    settings: Settings | None = None,
    again: Mapping[FigureKey, Compared] | None = None,
    earlier: Earlier | None = None,
    rate: float = SUITE_RATE,
    remeasured: Sequence[StoredRun] = (),
    disturbed: bool = False,
) -> Difference:
    """Compare runs before with runs after.

    :param before: one or more, oldest first.
    :param after: likewise.
    :param margin: what is within it is called the same: 0.05 is 5%.
    :param settings: that of before and that of after, if both were measured in turn.
    :param again: figures that were measured again, and what is said of them instead.
    :param earlier: what was learned of the runs before, if these runs were compared already.
    :param rate: of suites in which nothing changed, at most so many have anything that is called
        worse, and so many anything that is called better.
    :param remeasured: those of the runs after in which a part was measured again: of a case that
        gave figures in enough of them the other runs after do not count.
    :param disturbed: whether values of all disturbed jobs count: of who asks what to measure.
    :raises AssayError: if they share a run, are of several systems, have nothing to compare, or the
        margin is none.
    """
    assert_margin(margin)
    assert_comparable(before, after)
    tables = tables_of(history, before, after, settings)
    # A job has one setting.
    if settings is None and (twice := duplicate_runs(tables[1], tables[0])):
        raise AssayError(
            f'{first_few([uuid[:8] for uuid in twice])} of AFTER ran jobs that are in BEFORE as '
            'well: they were read twice, from perflogs and from the database or a report.'
        )
    # Sessions of two settings are in turn: they meet the same cores.
    by_cores = on_alike_cores if settings is None else (lambda both: both)
    latest = tables
    if remeasured:
        without_first = without_first_values(tables[1], remeasured, by_cores(tables)[1])
        latest = tables[0], without_first
    latest = beside_controls(latest)
    undisturbed = (all_disturbed if disturbed else alike_disturbed)(latest)
    counting = by_cores(undisturbed)
    old, new = map(measured_figures, counting)
    pairs, only_before, only_after = pair_figures(*map(without_conditions, (old, new)))
    then, now = (ends_of(table) for table in tables)
    both = sorted(then.keys() & now.keys())
    lost = [Failed(case, now[case]) for case in both if is_lost_case(then[case], now[case])]
    at_times = [Failed(case, now[case]) for case in both if fails_at_times(then[case], now[case])]
    if not both:
        raise AssayError(
            f'no figure is of runs before ({first_few([*then])}) and after '
            f'({first_few([*now])}) both: choose runs of the same selection; `assay history` '
            'lists them.'
        )
    if not any(None in ends for case in both for ends in (then[case], now[case])):
        raise AssayError(
            f'no case that was run before and after both ({first_few(both)}) ever gave a figure: '
            'nothing is to be compared.'
        )
    earlier = earlier or learn_earlier(history, before, after, tables, pairs)
    judged, families = judge_figures(pairs, earlier, margin, settings, again or {}, rate)
    controls = figures_that_moved(judged)
    compared = not_blamed_on_software(judged, controls, families)
    gives = {case for case, ends in now.items() if None in ends}
    gone = [
        *(Gone(one, 'its case gives it no more') for one in only_before if one.test_case in gives),
        *unusable_values(compared),
    ]
    in_doubt = suspect_figures(families, compared, margin)
    in_doubt += tuple(one for one in compared if _may_be_worse_beside_zeros(one))
    facts = facts_that_differ(compared)
    causes = [*causes_of('worse', compared, facts), *causes_of('better', compared, facts)]
    time = None
    if causes or controls:
        kept = folders(history, before), folders(history, after)
        if settings:
            kept = {settings.as_after(one): at for one, at in kept[0].items()}, kept[1]
        causes = [replace(one, time=time_spent(*kept, _cases_of(one.figures))) for one in causes]
        time = time_spent(*kept, _cases_of(figures_that_may_have_followed(compared, controls)))
    return Difference(
        before=tuple(before),
        after=tuple(after),
        earlier=earlier,
        margin=margin,
        figures=tuple(compared),
        lost=tuple(lost),
        at_times=tuple(at_times),
        gone=tuple(gone),
        only_before=tuple(one for one in only_before if one.test_case not in now),
        only_after=only_after,
        conditions=sum(figure.figure in CONDITIONS for figure in new),
        moved=controls,
        followed=worst_first(one for one in compared if one.has_followed),
        time=time,
        # Sessions of two settings are in turn: a step meets both, and pairs stand against it.
        states=(None, None)
        if settings
        else (
            two_states((before for before, _ in pairs), earlier.past),
            two_states((after for _, after in pairs), earlier.past),
        ),
        causes=tuple(causes),
        families=family_findings(families, compared, facts),
        suspects=in_doubt,
        facts=tuple(sorted(facts, key=lambda one: (one.follows, -len(one.figures), one.name))),
        disturbances=_disturbances(counting),
        alike_disturbed=_total(_disturbances(latest)) - _total(_disturbances(undisturbed)),
    )


def _may_be_worse_beside_zeros(one: Compared) -> bool:
    """Whether a figure with a value of 0 looks worse, in too few runs to be sure.

    It is to be low, was 0 and is not any more; or all of it lost much.
    """
    better = one.after.better or one.before.better
    rises = better == 'lower' and rises_from_zero(one.before, one.after)
    return one.word == 'cannot tell' and (rises or has_lost_beside_zeros(one))


def _total(disturbances: Iterable[tuple[str, int]]) -> int:
    return sum(values for _, values in disturbances)


def _disturbances(tables: Tables) -> tuple[tuple[str, int], ...]:
    said = pl.concat(tables, how='vertical_relaxed').filter(
        pl.col('disturbances').is_not_null()
        & (pl.col('figure') != '-')
        & ~pl.col('figure').cast(pl.String).is_in([*CONDITIONS])
    )
    return tuple(Counter(said['disturbances'].cast(pl.String).to_list()).most_common())


def _cases_of(figures: Iterable[Compared]) -> list[str]:
    return list(dict.fromkeys(one.figure.test_case for one in figures))
