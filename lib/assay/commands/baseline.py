"""The command ``baseline``: the references of a system, from what its runs measured."""

from __future__ import annotations

from typing import Annotated

import typer

from assay import paths
from assay.commands.options import (
    PERCENT,
    CasesOption,
    DryRunOption,
    FiguresOption,
    StoredSystemOption,
)


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
        known,
        read_text,
        replace_text,
        written,
    )
    from assay.config.reference_files import LEARNED
    from assay.report.baseline import file_change, show_baseline
    from assay.report.terminal import warn
    from assay.results.baseline import of_the_past, propose, system_of
    from assay.results.figure_series import measured
    from assay.results.history import load
    from assay.results.run_selectors import choose, choose_figures

    stored = load()
    warn(stored.notices())
    chosen = choose(stored, words, system)
    runs = of_the_past(chosen)
    hand = paths.REFERENCES / f'{system_of(runs)}.yaml'
    path = hand.parent / LEARNED / hand.name
    text = read_text(path)
    before, by_hand = known(text, path), faultless(read_text(hand), hand)
    found = choose_figures(measured(stored.figures(runs)), cases, figures)
    proposal = propose(found, before, worst, accept, paths.REFERENCES, paths.CHECKS)
    result = written(before, path, proposal.learned, by_hand)
    if result.added:
        assert_right(result.text, path)
        if dry_run:
            print(file_change(path, text, result.text), end='')
        elif result.text != text:
            replace_text(path, text, result.text)
    show_baseline(proposal, result, path, worst, dry_run, len(chosen) - len(runs))
