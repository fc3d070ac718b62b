"""The commands on stored runs: list, remove, compare, follow, explain, export and show them, and
learn references from them.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay import AssayError, paths
from assay.commands.options import (
    PERCENT,
    AllRowsOption,
    CasesOption,
    DryRunOption,
    FiguresOption,
    JsonOption,
    MarginOption,
    OutputOption,
    StoredSystemOption,
)
from assay.files import explain_errors, json_text, write_whole
from assay.text import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.results.cases import Facts
    from assay.results.history import History, StoredRun

RunsArgument = Annotated[
    str, typer.Argument(metavar='RUNS', help='Which runs; all by default.', show_default=False)
]


def _load(words: str, system: str | None) -> tuple[History, list[StoredRun]]:
    """The history, and of it the runs that words mean, or all; its notices are printed."""
    from assay.report.terminal import warn
    from assay.results.history import load_history
    from assay.results.run_selectors import choose_or_all

    stored = load_history()
    warn(stored.notices())
    return stored, choose_or_all(stored, words, system)


def history(
    words: Annotated[
        str, typer.Argument(metavar='RUNS', help='Which runs: see above.', show_default=False)
    ] = '',
    system: StoredSystemOption = None,
    last: Annotated[int, typer.Option(metavar='N', help='At most the newest N.', min=1)] = 20,
    as_json: JsonOption = False,
) -> None:
    """List the stored runs, newest last.

    RUNS is `last` or `last~3`, a date or two (2026-11-01..2026-11-20), a label, the first
    characters of an identifier, a ReFrame report, or a folder of perflogs (a path with a /). `assay
    forget` removes them.

    Examples:

    \b
      assay history
      assay history 2026-11-01..2026-11-20 --system generic
      assay history before-upgrade --json
    """
    from assay.report.history import history_json, show_history

    _, runs = _load(words, system)
    if as_json:
        print(history_json(runs[-last:]))
    else:
        show_history(runs, last)


def forget(
    words: Annotated[
        str,
        typer.Argument(
            metavar='[RUNS]', help='Which runs, as in `assay history`.', show_default=False
        ),
    ] = '',
    keep: Annotated[
        str | None,
        typer.Option(
            metavar='TIME',
            help='Instead of RUNS: all older runs, and older lines of perflogs. Keep 365d, or '
            'what began on a day or after it (2026-01-01).',
        ),
    ] = None,
    system: StoredSystemOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Remove stored runs from the history for good.

    Examples:

    \b
      assay forget 5d38a3d3
      assay forget before-upgrade --dry-run
      assay forget --keep 365d
    """
    from assay.report.history import show_removed
    from assay.results.history import load_history, remove_runs
    from assay.results.perflogs import remove_old_lines
    from assay.results.run_selectors import kept_since, old_runs, removable

    if bool(words) == (keep is not None):
        raise AssayError('name RUNS to remove, or how long to --keep runs: one of both.')
    stored = load_history()
    if keep is None:
        old = removable(stored, words, system)
        show_removed(old if dry_run else remove_runs(stored, old), {}, dry_run)
        return
    if system:
        raise AssayError(f"--keep {keep} is of all runs: leave out '--system'.")
    since = kept_since(keep)
    old = old_runs(stored, since)
    lines = remove_old_lines(stored.database.parent, since, dry_run)
    show_removed(old if dry_run else remove_runs(stored, old), lines, dry_run)


def compare_runs(
    before: Annotated[str, typer.Argument(metavar='BEFORE', help='Runs of the old state.')],
    after: Annotated[str, typer.Argument(metavar='AFTER', help='Runs of the new state.')],
    system: StoredSystemOption = None,
    margin: MarginOption = 0.05,
    everything: AllRowsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare stored runs: what is worse, and what else changed.

    BEFORE and AFTER are chosen as in `assay history`: `last`, `last~1`, a date or two, a label, an
    identifier, or a ReFrame report. The exit code is 1 if something is worse or a case no longer
    gives figures; 3 if something looks worse by more than the margin and is undecided; otherwise 0.

    Examples:

    \b
      assay compare-runs last~1 last
      assay compare-runs before-upgrade after-upgrade
      assay compare-runs 2026-11-01..2026-11-10 2026-11-12 --all
    """
    from assay.report.diff import show_diff
    from assay.report.diff_json import diff_json
    from assay.report.terminal import warn
    from assay.results.diff.difference import difference
    from assay.results.history import load_history
    from assay.results.run_selectors import choose_runs

    stored = load_history()
    old, new = (choose_runs(stored, words, system) for words in (before, after))
    warn(stored.notices())
    found = difference(stored, old, new, margin)
    if as_json:
        print(diff_json(found))
    else:
        show_diff(found, everything)
    raise typer.Exit(found.exit_code)


def trend(
    words: RunsArgument = '',
    system: StoredSystemOption = None,
    cases: CasesOption = '',
    figures: FiguresOption = '',
    as_json: JsonOption = False,
    show_all: Annotated[
        bool, typer.Option('--all', help='Show every figure, unchanged ones too.')
    ] = False,
) -> None:
    """Find steps and slow drifts in the stored figures.

    Prints the first bad run of each, and what changed there.

    RUNS is chosen as in `assay history`. Without RUNS, runs made by other commands than `run` and
    `nightly` are left out. The exit code is 1 if a figure is worse than before and no later run
    repaired it.

    Examples:

    \b
      assay trend
      assay trend 2026-08-01..2026-11-20 --system generic
      assay trend -n fabric=tcp --figure latency --all
    """
    from assay.report.trend import show_trend, trend_json
    from assay.results.trend import find_trend

    stored, runs = _load(words, system)
    if not words:  # nobody chose those with a purpose of their own
        runs = [run for run in runs if not run.summary.purpose]
    found = find_trend(stored, runs, cases, figures)
    if as_json:
        print(trend_json(found))
    else:
        show_trend(found, show_all)
    raise typer.Exit(1 if found.is_bad else 0)


def triage(
    words: RunsArgument = '',
    case: CasesOption = '',
    kind: Annotated[
        str,
        typer.Option(
            '--class',
            metavar='CLASS',
            help='hardware, network, mpi, scheduler, filesystem, suite or unknown.',
            show_default=False,
        ),
    ] = '',
    note: Annotated[
        str, typer.Option(metavar='TEXT', help='What was found.', show_default=False)
    ] = '',
    system: StoredSystemOption = None,
    as_json: JsonOption = False,
) -> None:
    """List failures of stored runs, or record the cause of one.

    RUNS is chosen as in `assay history`. With --class RUNS is one run, and -n selects one of its
    failures. Class and note are stored with the run, and appear in its report and in `assay
    history`. Later ones replace them.

    Examples:

    \b
      assay triage
      assay triage 2026-11-01..2026-11-20 --system generic
      assay triage last -n 'Ring %fabric=tcp' --class network --note 'switch 3, ticket 1234'
    """
    from assay.report.history import failures_json, show_failures
    from assay.results.run_selectors import of_cases
    from assay.results.triage import classify, triaged_failures

    stored, runs = _load(words, system)
    if kind:
        found = [classify(stored, runs, case, kind, note)]
    elif note:
        raise AssayError('--note is for a failure with --class.')
    else:
        is_chosen = of_cases(case)
        found = [one for one in triaged_failures(stored, runs) if is_chosen(one.case)]
    if as_json:
        print(failures_json(found))
    else:
        show_failures(found)


def export(
    output: OutputOption,
    words: RunsArgument = '',
    system: StoredSystemOption = None,
) -> None:
    """Write the stored figures as Parquet, CSV or metrics.

    FILE ends in .parquet, .csv or .prom; - prints CSV, and -.prom metrics. RUNS is chosen as in
    `assay history`. A file is written whole or not at all. Metrics come from the newest run of each
    case.

    Examples:

    \b
      assay export --output figures.parquet
      assay export 2026-11-01..2026-11-20 -o november.csv
      assay export --output /var/lib/node_exporter/textfile/assay.prom
    """
    import sys

    from assay.results.export import form

    make = form(str(output))
    stored, runs = _load(words, system)
    if not runs:
        raise AssayError(f'no run is stored in {stored.database}: `assay run` stores one.')
    content = make(stored.figures(run for run in runs if not run.summary.problem))
    if str(output) == '-' or str(output).startswith('-.'):
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        return
    with explain_errors(output, 'written'):
        write_whole(output, content)


def report(
    words: Annotated[
        str, typer.Argument(metavar='RUNS', help='Which runs; the last by default.')
    ] = 'last',
    output: OutputOption = Path('report.html'),
    system: StoredSystemOption = None,
) -> None:
    """Write a run as one page for a browser.

    The page has the verdict, figures, charts and history, needs no network, and prints well.

    RUNS is chosen as in `assay history`. The page shows the newest of several runs, with the others
    on its curves and the figures of the run before beside its own. For runs of two systems it shows
    the newest of each side by side.

    Examples:

    \b
      assay report
      assay report last~3 -o report.html
      assay report before-upgrade -o before.html
      assay report 2026-11-01..2026-11-20 --system generic -o november.html
    """
    from assay.report.html.page import write_stored
    from assay.report.terminal import warn
    from assay.results.history import load_history
    from assay.results.run_selectors import choose_runs

    stored = load_history()
    warn(stored.notices())
    runs = choose_runs(stored, words, system)
    write_stored(output, stored, runs)
    print(f'report: {output}')


def baseline(
    words: Annotated[
        str, typer.Argument(metavar='RUNS', help='Which runs: as in `assay history`.')
    ],
    system: StoredSystemOption = None,
    cases: CasesOption = '',
    figures: FiguresOption = '',
    worst: Annotated[
        float,
        typer.Option(
            metavar='PERCENT',
            parser=PERCENT,
            help='Mark bounds that are further from the value than this; 25% by default.',
            show_default=False,
        ),
    ] = 0.25,
    accept: Annotated[
        bool,
        typer.Option('--accept', help='Also take figures that missed their reference.'),
    ] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Write the references of a system from good runs.

    RUNS are at least 10 sessions, at several times. Each figure gets its usual value, and bounds
    that one unchanged run in a hundred misses with any figure. References written by hand stay as
    they are. A figure that has too few values, is not steady, or missed its reference in one of the
    runs is refused, and keeps its old reference. After a wanted change, such as a new MPI, --accept
    takes such figures too.

    Examples:

    \b
      assay baseline 2026-11-01..2026-11-20 --dry-run
      assay baseline accepted --system example-slurm -n 'Ring .*%fabric=shm'
    """
    from assay.config.learned import (
        assert_right,
        faultless,
        parse_learned,
        read_text,
        replace_text,
        rewrite,
    )
    from assay.config.reference_files import LEARNED
    from assay.report.history import file_change, show_baseline
    from assay.report.terminal import warn
    from assay.results.baseline import of_the_past, propose, system_of
    from assay.results.figure_series import measured_figures
    from assay.results.history import load_history
    from assay.results.run_selectors import choose_figures, choose_runs

    stored = load_history()
    warn(stored.notices())
    chosen = choose_runs(stored, words, system)
    runs = of_the_past(chosen)
    hand = paths.REFERENCES / f'{system_of(runs)}.yaml'
    path = hand.parent / LEARNED / hand.name
    text = read_text(path)
    before, by_hand = parse_learned(text, path), faultless(read_text(hand), hand)
    found = choose_figures(measured_figures(stored.figures(runs)), cases, figures)
    learned, refused = propose(found, before, worst, accept)
    result = rewrite(before, path, learned, by_hand)
    if result.added:
        assert_right(result.text, path)
        if dry_run:
            print(file_change(path, text, result.text), end='')
        elif result.text != text:
            replace_text(path, text, result.text)
    show_baseline(refused, result, path, worst, dry_run, len(chosen) - len(runs))


def provenance(
    words: Annotated[
        str, typer.Argument(metavar='[RUNS]', help='Which run, as in `assay history`.')
    ] = 'last',
    after: Annotated[
        str,
        typer.Argument(
            metavar='[AFTER]',
            help='A run that came after it: print only the differences.',
            show_default=False,
        ),
    ] = '',
    name: CasesOption = '',
    system: StoredSystemOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what each case was built from, and what it ran with.

    RUNS and AFTER are chosen as in `assay history`; the newest of several counts. The job and its
    nodes are printed beside the case, but not compared.

    Examples:

    \b
      assay provenance -n Ring
      assay provenance last~1 last
      assay provenance old-report.json last -n 'MiniFE.*mpich'
    """
    from assay.results.history import load_history
    from assay.results.provenance import changed_facts, facts_by_case, where_by_case
    from assay.results.run_selectors import choose_runs, of_cases

    stored, is_chosen = load_history(), of_cases(name)
    try:
        chosen = [choose_runs(stored, one, system)[-1] for one in (words, after) if one]
    except AssayError as error:
        if after or words == 'last':
            raise
        raise AssayError(f'{error} To choose cases by name: -n {shlex.quote(words)}') from None
    runs = [stored.run_of(one) for one in chosen]
    facts = [facts_by_case(run, is_chosen) for run in runs]
    now, where = facts[-1], where_by_case(runs[-1])
    if not now:
        raise AssayError(f'no case that ran matches -n {name!r} in {after or words}.')
    if not after:
        _show_facts(now, where, as_json)
        return
    then = facts[0]
    if not (both := [case for case in now if case in then]):
        raise AssayError(f'{words} has no case that matches -n {name!r} and ran in both.')
    changed = {case: changed_facts(then[case], now[case]) for case in both}
    _show_facts({case: lines for case, lines in changed.items() if lines}, where, as_json)
    if not as_json:
        print(
            f'{sum(map(bool, changed.values()))} of {len(both)} cases were built or ran otherwise'
        )


def _show_facts(facts: Mapping[str, Facts], where: Mapping[str, str], as_json: bool) -> None:
    """Print what cases were measured with; those that share it stand together, but for JSON.

    :param where: where each ran.
    """
    if as_json:
        rows = [
            {'case': case, 'where': where.get(case), 'facts': dict(lines)}
            for case, lines in facts.items()
        ]
        print(json_text(rows, indent=2))
        return
    cases: dict[Facts, list[str]] = {}
    for case, lines in facts.items():
        cases.setdefault(lines, []).append(f'{case}  {where.get(case, "")}'.rstrip())
    for lines, names in cases.items():
        print(*names, sep='\n')
        width = max((len(name) for name, _ in lines), default=0)
        for name, value in lines:
            print(f'    {name:{width}} {plain(value or "-")}')
