"""The contents of a run's page: from its report, the history, and the files of its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.report.console import as_change
from assay.report.html import charts, jobs
from assay.report.html.beside import Beside, Other, compare_systems
from assay.report.html.chart import Chart, Grid
from assay.report.html.screened import ScreeningSection
from assay.report.html.sections import (
    RUNS,
    FigureLine,
    MeasuredWith,
    Section,
    facts_and_variables,
    figure_lines,
    past_values,
    sections,
)
from assay.report.terminal import counted_words
from assay.results.cases import Case, Run
from assay.results.history import History, StoredRun
from assay.results.verdict import Counts, counts, summary
from assay.text import many, plain


@dataclass(frozen=True)
class Tile:
    """A count, and what it is of.

    :param kind: ``good``, ``bad``, ``odd`` or ``none``.
    :param link: the part of the page that tells more of it.
    """

    count: int
    words: str
    kind: str
    link: str


def tiles(table: Sequence[FigureLine], found: Counts, left_out: int) -> list[Tile]:
    """Counts of what was held to references beside those of what was not.

    :param left_out: how many cases were left out for time.
    """
    held = sum(line.is_held for line in table)
    lost = sum(line.row.figure.name == '-' for line in table)
    free = len(table) - held - lost
    counted = [
        (held, 'held to references', 'figure', 'good', 'figures'),
        (free, 'without a reference', 'figure', 'none', 'figures'),
        (found.passed, 'passed', 'case', 'good', 'figures'),
        (found.failed, 'failed', 'case', 'bad', 'failed'),
        (found.disturbed, 'disturbed', 'case', 'odd', 'disturbed'),
        (lost, 'without any figure', 'case', 'bad', 'figures'),
        (found.skipped, 'skipped', 'case', 'odd', 'skipped'),
    ]
    if left_out:
        counted.append((left_out, 'left out for time', 'case', 'odd', 'about'))
    return [
        Tile(count, f'{what}{"s" * (count != 1)} {words}', kind if count else 'none', link)
        for count, words, what, kind, link in counted
    ]


def sentence(table: Sequence[FigureLine], found: Counts) -> str:
    """One sentence on how many figures and cases the verdict rests on."""
    held = sum(line.is_held for line in table)
    measured = sum(line.row.figure.name != '-' for line in table)
    if not held:
        return 'It rests on nothing: no figure was held to a reference.'
    return (
        f'It rests on {many(held, "figure")} of {measured} that were held to a reference, in '
        f'{many(sum(found) - found.skipped, "case")} that ran.'
    )


#: Changes that are told, of those that are worse first.
MOST_STEPS = 60


@dataclass(frozen=True)
class Step:
    """A figure that is not what it was.

    :param change: in words, such as ``-12.0%`` or ``-0.50% a week``.
    :param since: the first run of it, as most likely.
    :param state: ``worse``, ``better``, ``changed`` or ``worse, repaired``.
    :param facts: what else changed there, a line each.
    """

    figure: str
    change: str
    since: str
    state: str
    facts: Sequence[str]


def steps(history: History | None, runs: Sequence[StoredRun]) -> list[Step]:
    """Steps and drifts in these runs; what is worse stands first.

    :param runs: oldest first.
    :raises AssayError: if the report of one can no longer be read.
    """
    if not history or len(runs) < 2:
        return []
    from assay.results.trend import trend

    found = sorted(trend(history, runs).found, key=lambda one: not one.is_bad)
    return [
        Step(
            plain(one.figure),
            f'{one.per_week:+.2%} a week' if one.form == 'drift' else as_change(one.ratio),
            f'{one.first.name}, {one.first.begun:%Y-%m-%d}',
            'worse, repaired' if one.direction == 'worse' and one.is_repaired else one.direction,
            [plain(f'{name}: {change}') for name, change in one.facts],
        )
        for one in found[:MOST_STEPS]
    ]


#: Other runs that are laid over curves: nobody tells more of them apart.
MOST_OVER = 12

#: What the page says where `assay run` did not judge.
NO_VERDICT = 'NO VERDICT'
_WHY = (
    'A plain ReFrame measured this, or the run was not ended in order: what was left out is not '
    'known, so there is no verdict.'
)


@dataclass(frozen=True)
class Subject:
    """The run that is shown, and what is known of others.

    :param word: of its verdict; None where `assay run` did not judge it.
    :param problems: why it is no other.
    :param log: the lines of ReFrame's log; None to look for it where the run had it.
    :param others: the runs to compare it with, oldest first.
    :param history: None where the run is not stored.
    :param screened: what screenings of its partitions showed.
    :param beside: a stored run on another system to show beside it, as it was measured.
    """

    run: Run
    word: str | None
    problems: Sequence[str]
    log: Sequence[str] | None = None
    others: Sequence[StoredRun] = ()
    history: History | None = None
    screened: Sequence[ScreeningSection] = ()
    beside: tuple[StoredRun, Run] | None = None


@dataclass(frozen=True)
class Contents:
    """All that is on the page.

    :param kind: of the verdict: ``good``, ``bad`` or ``odd``.
    :param counts: how many cases went which way, in words.
    :param basis: what the verdict rests on, in a sentence.
    :param run: name and value of what is known of the run itself.
    :param first: the figures that are held, and headlines.
    :param rest: those that no reference holds.
    :param before: the run whose values stand beside those of this one; empty if there is none.
    :param notes: what is missing, a sentence each.
    :param runs: the newest first.
    :param has_partitions: more than one.
    :param beside: the other system, if there is one.
    """

    word: str
    kind: str
    counts: str
    problems: Sequence[str]
    basis: str
    tiles: Sequence[Tile]
    sections: Sequence[Section]
    run: Sequence[tuple[str, str]]
    screened: Sequence[ScreeningSection]
    facts: Sequence[MeasuredWith]
    variables: Sequence[MeasuredWith]
    first: Sequence[FigureLine]
    rest: Sequence[FigureLine]
    before: str
    charts: Sequence[Chart | Grid]
    notes: Sequence[str]
    runs: Sequence[StoredRun]
    steps: Sequence[Step]
    has_partitions: bool
    beside: Beside | None

    @property
    def drawn(self) -> list[Chart | Grid]:
        """The charts in the order in which they stand on the page."""
        return [*(chart for one in self.screened for chart in one.charts), *self.charts]


def page_contents(subject: Subject) -> Contents:
    """The contents of the page of a run.

    :raises AssayError: if a run that belongs to it cannot be read.
    """
    run, history, others = subject.run, subject.history, subject.others
    found, left_out = counts(run), run.left_out
    ran = _ran(run)
    all_stored = history.runs if history else ()
    this = next((stored for stored in all_stored if stored.uuid == run.uuid), None)
    runs = _earlier(history, this)
    before = others[-1] if others else None
    known = past_values(history, [*runs, *(stored for stored in others if stored not in runs)])
    table = figure_lines(ran, known, runs, before)
    shown = [charts.Overlay('', ran)]
    if history:
        over = reversed(others[-MOST_OVER:])
        shown += [charts.Overlay(stored.name, _ran(history.run_of(stored))) for stored in over]
    if subject.beside:
        stored, other = subject.beside
        shown.append(charts.Overlay(f'{stored.name} on {stored.summary.system}', _ran(other)))
    facts, variables = facts_and_variables(ran)
    witnessed, not_shown = jobs.job_charts(ran)
    return Contents(
        word=subject.word or NO_VERDICT,
        kind=_kind(subject.word),
        counts=counted_words(found) + _of_budget(sum(found), left_out),
        problems=[*subject.problems] if subject.word else [_WHY],
        basis=sentence(table, found),
        tiles=tiles(table, found, left_out),
        sections=sections(run, subject.log, this.causes if this else ()),
        run=_of_run(run),
        screened=subject.screened,
        facts=facts,
        variables=variables,
        first=[line for line in table if line.is_shown_first],
        rest=[line for line in table if not line.is_shown_first],
        before=before.name if before else '',
        charts=[*charts.curve_charts(shown), *charts.figure_charts(ran), *witnessed],
        notes=[*charts.removal_notes(shown), *_not_laid_over(others), *not_shown],
        runs=[*reversed([*(stored for stored in others if stored not in runs), *runs])],
        steps=steps(history, runs),
        has_partitions=len({line.row.case.partition for line in table}) > 1,
        beside=_beside(run, subject.beside) if subject.beside else None,
    )


def _not_laid_over(others: Sequence[StoredRun]) -> list[str]:
    if len(others) <= MOST_OVER:
        return []
    return [f'The newest {MOST_OVER} of {len(others)} other runs are laid over the curves.']


def _beside(run: Run, other: tuple[StoredRun, Run]) -> Beside:
    stored, its_report = other
    found = counts(its_report)
    told = Other(
        stored.verdict or NO_VERDICT,
        _kind(stored.verdict),
        counted_words(found) + _of_budget(sum(found), its_report.left_out),
        stored.problems if stored.verdict else [_WHY],
        _of_run(its_report),
        _ran(its_report),
    )
    return compare_systems(_of_run(run), _ran(run), told)


def _kind(word: str | None) -> str:
    """The kind of a verdict on the page: nothing but a pass looks like one."""
    return {'PASSED': 'good', 'DISTURBED': 'odd'}.get(word or '', 'bad')


def _of_budget(chosen: int, left_out: int) -> str:
    """How many selected cases a run left out for time, in words."""
    return f'; only {chosen} of the {chosen + left_out} selected cases were chosen' * bool(left_out)


def _ran(run: Run) -> list[Case]:
    """The checks' cases that were not skipped."""
    return [case for case in run.own_cases if case.result != 'skip']


def _earlier(history: History | None, this: StoredRun | None) -> list[StoredRun]:
    """The newest stored runs of the same system up to this one, oldest first.

    Those with a purpose of their own stand in no line of figures over time.
    """
    if history is None or this is None:
        return []
    alike = [
        run
        for run in history.runs
        if (run is this or (run.begun <= this.begun and not run.summary.purpose))
        and run.summary.system == this.summary.system
        and not run.summary.problem
    ]
    return alike[-RUNS:]


def _of_run(run: Run) -> list[tuple[str, str]]:
    return [
        ('system', summary(run).system or '-'),
        ('begun', f'{run.begun:%Y-%m-%d %H:%M} UTC'),
        ('took', f'{(run.ended - run.begun).total_seconds():.0f} s'),
        ('label', run.label or '-'),
        ('mode', run.mode or '-'),
        ('started on', run.hostname or '-'),
        ('by', run.user or '-'),
        ('run', run.uuid),
        ('ReFrame', run.version or '-'),
    ]
