"""Failures of stored runs, and what is behind them, as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from assay.report.console import console
from assay.report.table import say, table
from assay.results.store import Cause
from assay.results.triage import TriagedFailure
from assay.spelling import many


def show(found: Sequence[TriagedFailure]) -> None:
    """Each failure with its class and note, the newest last."""
    out = console()
    if not found:
        say(out, 'nothing failed in these runs')
        return
    open_ones = sum(one.cause is None for one in found)
    title = f'{many(len(found), "failure")}, {open_ones} without a class'
    rows = (
        (
            one.run.name,
            f'{one.run.begun.astimezone():%Y-%m-%d}',
            one.case,
            one.cause.kind if one.cause else '-',
            (one.cause.note if one.cause else '') or '-',
            one.reason,
        )
        for one in found
    )
    table(out, title, '<run|<begun|<failed|<class|<note|~<reason', rows, all_rows=True)


def counted(causes: Sequence[Cause]) -> str:
    """Such as ``network 2, unknown 1``; ``-`` for none."""
    kinds = Counter(cause.kind for cause in causes).most_common()
    return ', '.join(f'{kind} {count}' for kind, count in kinds) or '-'
