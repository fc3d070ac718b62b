"""The contents of a run's page: from its report, the history, and the files of its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.report.html import charts, jobs
from assay.report.html.beside import Beside, JudgedRun, compare_systems
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
from assay.report.trend import change_text
from assay.results.cases import Case, Run
from assay.results.history import History, StoredRun
from assay.results.trend import find_trend
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


#: Changes of the table, which has those that are worse first.
MOST_CHANGES = 60

#: Of a figure that is not what it was: its name, the change, the first run of it, what became of
#: it, and what else changed there.
ChangeRow = tuple[str, str, str, str, str]


def change_rows(history: History | None, runs: Sequence[StoredRun]) -> list[ChangeRow]:
    """Steps and drifts in these runs; what is worse stands first.

    :param runs: oldest first.
    :raises AssayError: if the report of one can no longer be read.
    """
    if not history or len(runs) < 2:
        return []
    found = sorted(find_trend(history, runs).found, key=lambda one: not one.is_bad)
    return [
        (
            plain(one.figure),
            change_text(one),
            f'{one.first.name}, {one.first.begun:%Y-%m-%d}',
            one.state,
            '; '.join(plain(f'{name}: {change}') for name, change in one.facts),
        )
        for one in found[:MOST_CHANGES]
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

    :param shown: the run that the page is of.
    :param basis: what its verdict rests on, in a sentence.
    :param first: the figures that are held, and headlines.
    :param rest: those that no reference holds.
    :param before: the run whose values stand beside those of this one; empty if there is none.
    :param notes: what is missing, a sentence each.
    :param runs: the newest first.
    :param has_partitions: more than one.
    :param beside: the other system, if there is one.
    """

    shown: JudgedRun
    basis: str
    tiles: Sequence[Tile]
    sections: Sequence[Section]
    screened: Sequence[ScreeningSection]
    facts: Sequence[MeasuredWith]
    variables: Sequence[MeasuredWith]
    first: Sequence[FigureLine]
    rest: Sequence[FigureLine]
    before: str
    charts: Sequence[Chart | Grid]
    notes: Sequence[str]
    runs: Sequence[StoredRun]
    changes: Sequence[ChangeRow]
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
    found, judged = counts(run), _judged(run, subject.word, subject.problems)
    ran = judged.cases
    all_stored = history.runs if history else ()
    this = next((stored for stored in all_stored if stored.uuid == run.uuid), None)
    runs = _earlier(history, this)
    before = others[-1] if others else None
    known = past_values(history, [*runs, *(stored for stored in others if stored not in runs)])
    table = figure_lines(ran, known, runs, before)
    overlays: dict[str, Sequence[Case]] = {'': ran}
    beside: Beside | None = None
    if history:
        for stored in reversed(others[-MOST_OVER:]):
            overlays[stored.name] = _ran(history.run_of(stored))
    if subject.beside:
        stored, there = subject.beside
        other = _judged(there, stored.verdict, stored.problems)
        overlays[f'{stored.name} on {stored.summary.system}'] = other.cases
        beside = compare_systems(judged, other)
    facts, variables = facts_and_variables(ran)
    witnessed, not_shown = jobs.job_charts(ran)
    not_over = []
    if len(others) > MOST_OVER:
        not_over = [f'The newest {MOST_OVER} of {len(others)} other runs are laid over the curves.']
    return Contents(
        shown=judged,
        basis=sentence(table, found),
        tiles=tiles(table, found, run.left_out),
        sections=sections(run, subject.log, this.causes if this else ()),
        screened=subject.screened,
        facts=facts,
        variables=variables,
        first=[line for line in table if line.is_shown_first],
        rest=[line for line in table if not line.is_shown_first],
        before=before.name if before else '',
        charts=[*charts.curve_charts(overlays), *charts.figure_charts(ran), *witnessed],
        notes=[*charts.removal_notes(overlays), *not_over, *not_shown],
        runs=[*reversed([*(stored for stored in others if stored not in runs), *runs])],
        changes=change_rows(history, runs),
        has_partitions=len({line.row.case.partition for line in table}) > 1,
        beside=beside,
    )


def _judged(run: Run, word: str | None, problems: Sequence[str]) -> JudgedRun:
    """:param word: of its verdict; None where `assay run` did not judge it."""
    found = counts(run)
    counted, chosen = counted_words(found), sum(found)
    if run.left_out:
        counted += f'; only {chosen} of the {chosen + run.left_out} selected cases were chosen'
    # Nothing but a pass looks like one.
    kind = {'PASSED': 'good', 'DISTURBED': 'odd'}.get(word or '', 'bad')
    facts = [
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
    told = [*problems] if word else [_WHY]
    return JudgedRun(word or NO_VERDICT, kind, counted, told, facts, _ran(run))


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
