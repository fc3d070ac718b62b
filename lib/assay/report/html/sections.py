"""Sections of the page of a run: cases that did not simply pass, why not, and what their jobs wrote
last; what was measured, once for all cases; and the table of figures, each with what it is held to,
its history, and a link that stays.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from assay.report.console import sparkline
from assay.report.html.charts import fraction_of_limit
from assay.report.terminal import ordinal
from assay.results.cases import Case, CaseFigure, Run, folder_left
from assay.results.failures import (
    Failure,
    case_findings,
    cases_without_reference,
    disturbed_cases,
    failures,
    retried_cases,
    skipped_cases,
)
from assay.results.history import History, StoredRun
from assay.results.provenance import nodes_of_case
from assay.results.rows import Row, is_number, number, rows_of, with_unit
from assay.results.searches import Conclusion, conclusions_of
from assay.results.store import TriageCause
from assay.text import plain, visible_lines

#: Sentences of one kind, and outputs, of a page; the rest is only counted.
MOST, MOST_OUTPUTS = 200, 40


@dataclass(frozen=True)
class Told:
    """A sentence about a case.

    :param files: where those of its job are; of a search its commands.
    :param cause: what somebody found to be behind it, in words; empty for nothing.
    :param outputs: the ends of its outputs, by the names of their files.
    """

    case: str
    reason: str
    files: str = ''
    cause: str = ''
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """Cases with the same result.

    :param kind: ``bad`` or ``odd``.
    :param more: how many further ones there are.
    """

    anchor: str
    title: str
    kind: str
    told: Sequence[Told]
    more: int


def sections(
    run: Run, log: Sequence[str] | None, causes: Sequence[TriageCause] = ()
) -> list[Section]:
    """The sections that have a case.

    :param log: the lines of ReFrame's log; None to look for it where the run had it.
    :param causes: what is behind failures, as far as somebody said so.
    """
    lines = log if log is not None else log_of(run) or []
    found: dict[tuple[str, str, str], Iterable[Told]] = {
        ('failed', 'Failed', 'bad'): _with_outputs(failures(run), causes),
        ('disturbed', 'Disturbed: neither pass nor fail', 'odd'): _with_outputs(
            disturbed_cases(run), ()
        ),
        ('findings', 'Found in cases that passed', 'odd'): (
            Told(title, finding) for finding, title in case_findings(run)
        ),
        ('searched', 'Searched: which change made it worse', 'odd'): map(
            _searched, conclusions_of(run.uuid)
        ),
        ('skipped', 'Skipped', 'odd'): (Told(*one) for one in skipped_cases(run, lines)),
        ('late', 'Passed, but not at once', 'odd'): (
            Told(one.case, f'passed at the {ordinal(one.attempts)} attempt; first: {one.reason}')
            for one in retried_cases(run)
        ),
        ('unheld', 'Held to nothing', 'odd'): (
            Told(one.title, f'{one.implementation} has right answers, held to no reference')
            for one in cases_without_reference(run)
        ),
    }
    return [
        Section(*head, every[:MOST], len(every[MOST:]))
        for head, told in found.items()
        if (every := [*told])
    ]


def _searched(one: Conclusion) -> Told:
    names = 'to reproduce, without it', 'with it'
    commands = (f'{name}: {command}' for name, command in zip(names, one.reproduce, strict=False))
    return Told(one.case, one.told, '; '.join([one.command, *commands]))


def _with_outputs(failed: Sequence[Failure], causes: Sequence[TriageCause]) -> list[Told]:
    known = {one.failed: ': '.join(filter(None, (one.kind, one.note))) for one in causes}
    return [
        Told(
            one.case,
            one.reason,
            ' '.join(one.files),
            known.get(one.case, ''),
            last_lines(one.ran) if number < MOST_OUTPUTS and one.ran else {},
        )
        for number, one in enumerate(failed)
    ]


# What jobs left, which may be anything, of any length ---------------------------------------------


#: What is shown of an output at most: lines, characters of one, and bytes that are read.
LINES, WIDTH, TAIL = 20, 240, 1 << 14


def log_of(run: Run) -> list[str] | None:
    """The lines of ReFrame's log; None where that is gone."""
    for name in run.logs:
        try:
            return Path(name).read_text(errors='replace').splitlines()
        except OSError:
            continue
    return None


def last_lines(case: Case) -> dict[str, str]:
    """The end of each output of a case, by the name of its file; of what is empty or gone, none."""
    if not (where := folder_left(case)):
        return {}
    return {name: text for name in case.output_names if (text := _end(where / name))}


def _end(path: Path) -> str:
    try:
        if not path.is_file():  # a pipe would wait for somebody who writes
            return ''
        with path.open('rb') as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            text = visible_lines(file.read(TAIL).decode(errors='replace'))
    except OSError:
        return ''
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return '\n'.join(
        line if len(line) <= WIDTH else f'{line[:WIDTH]} ...' for line in lines[-LINES:]
    )


# What was measured -------------------------------------------------------------------------------

#: Facts in words; a fact that is not listed keeps its name.
NAMES = {
    'by': 'built by',
    'spec': 'Spack spec',
    'hash': 'hash of the build',
    'mpi': 'MPI, built with',
    'flags': 'compiler flags',
    'target': 'built for',
    'commit': 'commit of the program',
    'suite_commit': 'commit of the suite',
    'ran_mpi': 'MPI, as it ran',
}

#: Values of one fact that are shown.
MOST_VALUES = 12


@dataclass(frozen=True)
class MeasuredWith:
    """The values that one fact, such as the compiler, had in the cases that ran.

    :param values: each value, and in how many cases.
    :param more: how many further values there are.
    """

    name: str
    values: Sequence[tuple[str, int]]
    more: int = 0


def facts_and_variables(cases: Sequence[Case]) -> tuple[list[MeasuredWith], list[MeasuredWith]]:
    """Facts of some cases, and the environment variables that their jobs had."""
    told: dict[str, Counter[str]] = {}
    variables: dict[str, Counter[str]] = {}
    for case in cases:
        where = (
            ('system', case.system),
            ('partition', case.partition),
            ('environment', case.environment),
            ('fabric', case.fabric),
            ('nodes', nodes_of_case(case)),
        )
        for name, value in (*where, *case.facts):
            kind = variables if re.fullmatch(r'[A-Z].*', name) else told
            kind.setdefault(name, Counter())[value] += 1
    return _as_facts(told), _as_facts(variables)


def _as_facts(told: dict[str, Counter[str]]) -> list[MeasuredWith]:
    found = []
    for name, counts in told.items():
        values = [(plain(value), count) for value, count in counts.most_common() if value]
        if values:
            words = NAMES.get(name, name.removeprefix('ran_on_').removeprefix('ran_'))
            label = plain(words if name.isupper() else words.replace('_', ' '))
            found.append(MeasuredWith(label, values[:MOST_VALUES], len(values[MOST_VALUES:])))
    return found


# The table of figures ----------------------------------------------------------------------------

#: Runs in the history of a figure, and the characters that it takes.
RUNS, CHARACTERS = 60, 12

#: What a verdict is to the page: a symbol and a colour. Any other is ``bad``.
KINDS = {'pass': 'good', 'xfail': 'good', 'disturbed': 'odd', 'no bound': 'none'}

#: Values of a figure by run: its partition, environment, case, name and unit.
Key = tuple[str, str, str, str, str]
Past = Mapping[Key, Mapping[str, float]]


@dataclass(frozen=True)
class FigureLine:
    """A figure of the table.

    :param anchor: what a link to it ends with; the same in the page of every run.
    :param value: with its unit.
    :param reference: what it is held to.
    :param off_by: how far it is from that, and ``room`` how far from failing, in words.
    :param allowed: what it is held to, in words; ``-`` if nothing holds it.
    :param of_limit: how much of the machine's limit was reached, in words.
    :param history: a sparkline, or nothing if it is of one run only.
    :param before: its value in the run to compare with, and how it changed since.
    :param kind: of its verdict: ``good``, ``bad``, ``odd`` or ``none``.
    """

    row: Row
    anchor: str
    value: str
    reference: str
    allowed: str
    off_by: str
    room: str
    of_limit: str
    history: str
    before: tuple[str, str]
    kind: str

    @property
    def is_held(self) -> bool:
        """Whether it can fail by a reference."""
        return self.row.figure.has_bound

    @property
    def is_shown_first(self) -> bool:
        """Whether people ask for it before others: it is held, or a headline."""
        return self.row.verdict != 'no bound' or self.row.figure.is_headline


def figure_lines(
    cases: Sequence[Case], past: Past, runs: Sequence[StoredRun], before: StoredRun | None
) -> list[FigureLine]:
    """All figures of some cases, and a line for each case that has none.

    :param past: their values in these runs.
    :param before: the run whose values stand beside them.
    """
    seen: dict[str, int] = {}
    found = []
    for case in cases:
        where = (case.partition, case.environment, case.name)
        name = case.full_name
        for row in rows_of(case):
            one = row.figure
            values = past.get((*where, one.name, one.unit), {})
            part = fraction_of_limit(one.name, one.value)
            text = f'{name} {one.name}'
            seen[text] = seen.get(text, 0) + 1
            anchor = f'f{hashlib.sha1(text.encode(errors="replace")).hexdigest()[:10]}'
            found.append(
                FigureLine(
                    row,
                    anchor if seen[text] == 1 else f'{anchor}-{seen[text]}',
                    with_unit(number(one.value), one.unit),
                    number(one.reference),
                    _allowed(one),
                    _change(one.value, one.reference),
                    '-' if row.room is None else _percent(row.room, '+'),
                    '-' if part is None else _percent(part),
                    _history(values, runs),
                    _before(one, values.get(before.uuid) if before else None),
                    KINDS.get(row.verdict, 'bad'),
                )
            )
    return found


def past_values(history: History | None, runs: Sequence[StoredRun]) -> Past:
    """The values of all figures in some runs; of several in one run their median.

    :raises AssayError: if the report of one can no longer be read.
    """
    if not history or not runs:
        return {}
    columns = ('partition', 'environment', 'case', 'figure', 'unit')
    table = (
        history.figures(runs)
        .lazy()
        .filter(pl.col('value').is_finite())
        .group_by(*columns, 'run')
        .agg(pl.col('value').median())
        .with_columns(pl.col(*columns, 'run').cast(pl.String))
        .group_by(columns)
        .agg('run', 'value')
        .collect()
    )
    return {
        (partition, environment, case, figure, unit or ''): dict(zip(of_runs, values, strict=True))
        for partition, environment, case, figure, unit, of_runs, values in table.iter_rows()
    }


def _allowed(one: CaseFigure) -> str:
    words = [
        f'{sign} {number(bound)}'
        for sign, bound in (('≥', one.lower), ('≤', one.upper))
        if bound is not None
    ]
    return ', '.join(words) or '-'


def _change(value: float | None, since: float | None) -> str:
    """How far a value is from another, in percent of that."""
    if not since or not is_number(value):
        return '-'
    return _percent((value - since) / abs(since), '+')


def _percent(part: float, sign: str = '') -> str:
    if not is_number(100 * part):
        return '-'
    return f'{part:{sign}.1%}' if abs(part) < 1e6 else f'{100 * part:{sign}.1e}%'


def _history(values: Mapping[str, float], runs: Sequence[StoredRun]) -> str:
    places = [number for number, run in enumerate(runs) if run.uuid in values]
    if len(places) < 2:
        return ''
    numbers = [values[runs[place].uuid] for place in places]
    return sparkline(places, numbers, len(runs), CHARACTERS)


def _before(one: CaseFigure, value: float | None) -> tuple[str, str]:
    if value is None:
        return '-', '-'
    return number(value), _change(one.value, value)
