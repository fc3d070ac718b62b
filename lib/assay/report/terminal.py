"""The end of a run on the terminal: sentences, a line for each check, and the verdict."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.table import Table
from rich.text import Text

from assay import say
from assay.report.console import console, height, print_line
from assay.report.matrix import MOST_LINES as MOST_OF_MATRIX
from assay.report.matrix import labels, matrix
from assay.results.budget import BudgetEntry, Choice, advice
from assay.results.cases import Run
from assay.results.failures import (
    case_findings,
    cases_without_reference,
    disturbed_cases,
    failures,
    left_in_good_cases,
    retried_cases,
    skipped_cases,
)
from assay.results.rows import (
    BAD,
    Row,
    bounds_in_words,
    nearest,
    number,
    row_in_words,
    rows,
    rows_of,
    with_unit,
)
from assay.results.verdict import Counts, Verdict, counts
from assay.running import reframe_log
from assay.text import many, plain
from assay.witness.disturbance import FARTHER_APART, MOVED

#: Columns of a window from which on each figure has one line in the table of all.
WIDE = 120

#: Sentences of a kind before the rest is only counted, and lines of the window that are left to all
#: of them; but each kind has one.
MOST_SENTENCES, MOST_LINES = 8, 20

#: Lines of the window that show a run, and those of them that are always there: two blank ones, how
#: many figures nothing holds, and the verdict.
SCREEN, OTHERS = 40, 4

#: Of the checks that a budget leaves out, so many are named.
MOST_NAMED = 5

#: Figures that are named although they passed: those that came nearest to failing.
NEAREST = 3


def show_run(
    run: Run,
    log: Sequence[str],
    printed: Iterable[str] = (),
    everything: bool = False,
    below: Iterable[str] = (),
) -> None:
    """Print a run on one screen: sentences, and a line for each check.

    The sentences tell what was left in the environment of what passed, what was skipped, needed
    several attempts, was disturbed or failed; if nothing was, what came nearest to failing.

    :param log: the lines of ReFrame's log file.
    :param printed: the lines that ReFrame wrote to standard output and error.
    :param everything: whether each figure has a line, and no sentence is left out.
    :param below: further lines of this screen, on standard error.
    """
    out = console()
    figures = rows(run)
    if everything:
        out.print()
        out.print(figure_table(figures, narrow=out.width < WIDE))
    out.print()
    said = [kind for kind in _sentences(run, log, everything) if kind]
    lines = [one for kind in (said if everything else _shortened(said, out.width)) for one in kind]
    for one in lines:
        print_line(out, one)
    out.print()
    others = (*lines, *(f'assay: {one}' for one in below))
    left = SCREEN - OTHERS - sum(height(one, out.width) for one in others)
    for line in matrix(run.own_cases, out.width, MOST_OF_MATRIX if everything else left):
        out.print(line, soft_wrap=True)
    if measured := [row for row in figures if row.figure.value is not None]:
        unheld = sum(row.verdict == 'no bound' for row in measured)
        recorded = reframe_log.is_recorded([*log, *printed])
        where = 'see `assay report`, --all, perflogs' if recorded else 'not all could be recorded'
        print_line(out, f'{unheld} of {many(len(measured), "figure")} have no reference; {where}')


def _shortened(said: list[list[str]], width: int) -> list[list[str]]:
    """The sentences of each kind that there is room for; the last kinds matter most."""
    left = MOST_LINES
    found = []
    for sentences in reversed(said):
        kept: list[str] = []
        for one in sentences[:MOST_SENTENCES]:
            left -= height(one, width)
            if kept and left < 0:
                break
            kept.append(one)
        if left_out := len(sentences) - len(kept):
            kept.append(f'{kept[0].partition(":")[0]}: {left_out} more, of which --all tells')
        found.append(kept)
    return found[::-1]


def _sentences(run: Run, log: Sequence[str], everything: bool) -> Iterator[list[str]]:
    """Sentences about cases, those of a kind together."""
    if words := left_in_good_cases(run):
        yield [words]
    yield [
        f'no reference: {case.title}: {plain(case.implementation)} has right answers, its '
        f'figures were held to nothing'
        for case in cases_without_reference(run)
    ]
    yield [f'finding: {one}' for one, _ in case_findings(run)]
    by_reason: dict[str, list[str]] = {}
    for name, reason in skipped_cases(run, log):
        by_reason.setdefault(reason, []).append(name)
    yield [
        f'skipped: {name}: {reason}'
        for reason, names in by_reason.items()
        for name in (names if everything or len(names) == 1 else [many(len(names), 'case')])
    ]
    late = retried_cases(run)
    # These say nothing of the case, and a hypervisor that moves cores makes many.
    of_cores = Counter(one.reason for one in late if one.reason in (MOVED, FARTHER_APART))
    folded = {reason: count for reason, count in of_cores.items() if count > 1 and not everything}
    yield [
        f'passed at the {ordinal(one.attempts)} attempt: {one.case}: first: {one.reason}'
        for one in late
        if one.reason not in folded
    ]
    yield [
        f'passed at a later attempt: {many(count, "case")}: first: {reason}'
        for reason, count in folded.items()
    ]
    bad = {'disturbed': disturbed_cases(run), 'failed': failures(run)}
    for word, found in bad.items():
        yield [
            f'{word}: {one.case}: {one.reason}'
            + (f'\n    files: {plain(" ".join(one.files))}' if one.files else '')
            for one in found
        ]
    if not any(bad.values()):
        yield _nearest(run)


def _nearest(run: Run) -> list[str]:
    """The figures that came nearest to failing, of as many checks."""
    own = [case for case in run.own_cases if case.result != 'skip']
    of_checks: dict[str, list[Row]] = {}
    for case, label in zip(own, labels(own), strict=True):
        of_checks.setdefault(label, []).extend(rows_of(case))
    labelled = {row: label for label, some in of_checks.items() for row in nearest(some)}
    return [
        f'least margin: {labelled[row]} {plain(" ".join(row.case.columns[1:3]))}: '
        f'{row_in_words(row)}'
        for row in nearest(labelled, NEAREST)
    ]


def warn(sentences: Iterable[str]) -> None:
    """Print warnings, which are no fault of the run or of its options."""
    for sentence in sentences:
        print(f'assay: {plain(sentence)}', file=sys.stderr)


def ordinal(number: int) -> str:
    """``2nd``, ``3rd``, ``4th``, ``11th``."""
    ending = {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')
    return f'{number}{"th" if number % 100 in (11, 12, 13) else ending}'


def figure_table(rows: list[Row], narrow: bool) -> Table:
    """One line a figure; in a narrow window the case has a line of its own above its figures."""
    table = Table(box=None, pad_edge=False, header_style='bold')
    wide = ('check', 'environment', 'fabric', 'layout', 'figure')
    for heading in ('check and figure',) if narrow else wide:
        table.add_column(heading, overflow='fold')
    for heading in ('value', 'reference'):
        table.add_column(heading, justify='right', no_wrap=True)
    for heading in ('allowed', 'verdict'):
        table.add_column(heading, no_wrap=True)
    for name, figures in groupby(rows, lambda row: row.case.columns):
        if narrow:
            table.add_row(Text(plain(' '.join(name))))
        for row in figures:
            one = row.figure
            head = [f'  {plain(one.name)}'] if narrow else map(plain, [*name, one.name])
            style = 'red' if row.verdict in BAD else None
            cells = [
                with_unit(number(one.value), plain(one.unit)),
                number(one.reference),
                bounds_in_words(one.lower, one.upper) or '-',
                row.verdict,
            ]
            table.add_row(*map(Text, [*head, *cells]), style=style)
    return table


def why_not_good(verdict: Verdict) -> list[str]:
    """Why a run did not pass, a sentence each."""
    if verdict.word != 'DISTURBED':
        return [*verdict.problems]
    return [
        f'{verdict.disturbed} case(s) were disturbed by others, so nothing is known of them: run '
        'them again when the nodes are quiet'
    ]


def show_verdict(
    run: Run | None, verdict: Verdict, seconds: float, choice: Choice | None = None
) -> None:
    """The last line, with counts and wall time; before it why the run is not good.

    :param choice: what was chosen for a budget, if there was one.
    """
    warn(why_not_good(verdict))
    found = counts(run)
    chosen = budget_words(choice) if choice else ''
    late = sum(case.had_no_time for case in run.own_cases) if run else 0
    if late:
        all_of_them = many(sum(found) + late, 'case')
        chosen += f'; {late} of {all_of_them} did not run before the end of the job'
    print(f'{verdict.word}: {counted_words(found)} in {seconds:.0f} s{chosen}')


def counted_words(found: Counts) -> str:
    """How many cases went which way, as in ``2 passed, 0 failed, 0 skipped of 2 cases``."""
    words = [f'{count} {word}' for word, count in found._asdict().items()]
    if not found.disturbed:  # as it mostly is
        words.remove('0 disturbed')
    return f'{", ".join(words)} of {sum(found)} cases'


# What a budget chose ------------------------------------------------------------------------------


def show_budget(choice: Choice) -> None:
    """Say what is chosen, what is left out, and what to do."""
    of = choice.cases + choice.cases_left_out
    say(
        f'--budget: {choice.cases} of {many(of, "case")} chosen, expected to take '
        f'{choice.expected:.0f} s of {choice.budget:.0f} s, one after the other'
    )
    if choice.assumed:
        say(
            f'no time is known of {many(choice.assumed, "case")} of them: that of others is '
            'assumed, of the same check where there are any'
        )
    if choice.too_long:
        say(
            'never chosen, since each, with what is built for it, takes longer than the budget: '
            f'{many(len(choice.too_long), "check")}; '
            f'{advice(max(choice.too_long.values()), "each of them")}:'
        )
    for one, seconds in [*choice.too_long.items()][:MOST_NAMED]:
        assumed = ', as is assumed' if one.assumed else ''
        say(f'    {seconds:.0f} s{assumed}: {one.name} ({many(len(one.cases), "case")})')
    if waiting := [one for one in choice.left_out if one not in choice.too_long]:
        cases = sum(len(one.cases) for one in waiting)
        say(f'left out for now: {many(cases, "case")}; those longest not run:')
        for one in waiting[:MOST_NAMED]:
            say(f'    {_since(one)}: {one.name} ({many(len(one.cases), "case")})')
        say('the next runs with a budget begin with these; `assay run` without --budget takes all')


def budget_words(choice: Choice) -> str:
    """The words on the budget in the last line of a run."""
    of = choice.cases + choice.cases_left_out
    return (
        f' (budget {choice.budget:.0f} s); only {choice.cases} of the {of} selected cases were '
        'chosen'
        if choice.left_out
        else f' (budget {choice.budget:.0f} s); all selected cases were chosen'
    )


def _since(one: BudgetEntry) -> str:
    return 'never run' if one.last is None else f'{one.last.astimezone():%Y-%m-%d %H:%M}'
