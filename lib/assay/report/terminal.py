"""What a run ends with on the terminal: the table of figures, a sentence for each case, a verdict.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from assay import paths
from assay.report.console import console
from assay.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.table import Table

    from assay.results.budget import Choice
    from assay.results.cases import Report
    from assay.results.rows import Row
    from assay.results.verdict import Counts, Verdict


def show(report: Report, log: Sequence[str], printed: Iterable[str] = ()) -> None:
    """Print the table of figures, then what was left in the environment of what passed, what was
    skipped, what needed several attempts, what failed.

    :param log: the lines of ReFrame's log file.
    :param printed: the lines that ReFrame wrote to standard output and error.
    """
    from assay.results.cases import title
    from assay.results.failures import (
        disturbed_cases,
        failures,
        left_in_good_cases,
        retried,
        skipped,
        unheld,
    )
    from assay.results.rows import rows
    from assay.running import reframe_log

    out = console()

    def say(text: str) -> None:
        out.print(text, markup=False, soft_wrap=True)

    figures = rows(report)
    shown = [row for row in figures if row.verdict != 'no bound' or row.headline]
    out.print()
    out.print(figure_table(shown, narrow=out.width < 120))
    if unshown := len(figures) - len(shown):
        recorded = reframe_log.is_recorded([*log, *printed])
        where = f'they are in {paths.PERFLOGS}' if recorded else 'not all could be recorded'
        say(f'{unshown} more figures have no reference; {where}')

    if words := left_in_good_cases(report):
        say(words)
    for case in unheld(report):
        what = f'{case["implementation"]} has right answers, its figures were held to nothing'
        say(f'no reference: {title(case)}: {plain(what)}')
    for name, reason in skipped(report, log):
        say(f'skipped: {name}: {reason}')
    for late in retried(report):
        say(f'passed at the {ordinal(late.attempts)} attempt: {late.case}: first: {late.reason}')
    for word, found in (('disturbed', disturbed_cases(report)), ('failed', failures(report))):
        for one in found:
            say(f'{word}: {one.case}: {one.reason}')
            if one.files:
                say(f'    files: {plain(" ".join(one.files))}')


def warn(sentences: Iterable[str]) -> None:
    """Say what is no fault of what was run or asked for, but somebody should know."""
    for sentence in sentences:
        print(f'assay: {plain(sentence)}', file=sys.stderr)


def ordinal(number: int) -> str:
    """``2nd``, ``3rd``, ``4th``, ``11th``."""
    ending = {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')
    return f'{number}{"th" if number % 100 in (11, 12, 13) else ending}'


def figure_table(rows: list[Row], narrow: bool) -> Table:
    """One line a figure; in a narrow window the case has a line of its own above its figures."""
    from itertools import groupby

    from rich.table import Table
    from rich.text import Text

    from assay.results.rows import BAD

    def case(row: Row) -> tuple[str, ...]:
        return row.check, row.environment, row.fabric, row.layout

    table = Table(box=None, pad_edge=False, header_style='bold')
    headings = ['check and figure'] if narrow else [*CASE, 'figure']
    for heading in headings:
        table.add_column(heading, overflow='fold')
    for heading in ('value', 'reference'):
        table.add_column(heading, justify='right', no_wrap=True)
    for heading in ('allowed', 'verdict'):
        table.add_column(heading, no_wrap=True)
    for name, figures in groupby(rows, case):
        if narrow:
            table.add_row(Text(plain(' '.join(name))))
        for row in figures:
            head = [f'  {plain(row.figure)}'] if narrow else map(plain, [*name, row.figure])
            style = 'red' if row.verdict in BAD else None
            table.add_row(*map(Text, [*head, *cells(row)]), style=style)
    return table


CASE = ('check', 'environment', 'fabric', 'layout')


def cells(row: Row) -> list[str]:
    """Value, reference, bounds and verdict, as text."""
    from assay.results.rows import allowed, number, of_unit

    return [
        of_unit(number(row.value), plain(row.unit)),
        number(row.reference),
        allowed(row.lower, row.upper) or '-',
        row.verdict,
    ]


def conclude(
    report: Report | None, verdict: Verdict, seconds: float, choice: Choice | None = None
) -> None:
    """The last line, with counts and wall time; before it why the run is not good.

    :param choice: what was chosen for a budget, if there was one.
    """
    from assay.report.budget import told
    from assay.results.verdict import counts

    for problem in verdict.problems:
        print(f'assay: {problem}', file=sys.stderr)
    if verdict.word == 'DISTURBED':
        print(
            f'assay: {verdict.disturbed} case(s) were disturbed by others, so nothing is known of '
            'them: run them again when the nodes are quiet',
            file=sys.stderr,
        )
    found = counts(report)
    chosen = told(choice) if choice else ''
    print(f'{verdict.word}: {counted_words(found)} in {seconds:.0f} s{chosen}')


def counted_words(found: Counts) -> str:
    """How many cases went which way, as in ``2 passed, 0 failed, 0 skipped of 2 cases``."""
    words = [f'{count} {word}' for word, count in found._asdict().items()]
    if not found.disturbed:  # as it mostly is
        words.remove('0 disturbed')
    return f'{", ".join(words)} of {sum(found)} cases'
