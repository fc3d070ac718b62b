"""Stored runs, as tables and as JSON, and the failures in them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from assay.report.console import console, print_line, print_table
from assay.results.history import StoredRun
from assay.results.store import TriageCause
from assay.results.triage import TriagedFailure
from assay.spelling import many
from assay.text import plain

_COLUMNS = '<run|<begun|<label|<mode|<system|~commit|<verdict|passed|failed|disturbed|skipped'


def show_history(runs: Sequence[StoredRun], most: int) -> None:
    """The newest runs, newest last, in the time of this machine's clock."""
    out = console()
    if not runs:
        print_line(out, 'no run is stored')
        return
    shown = runs[-most:]
    title = f'{len(shown)} of {len(runs)} runs'
    columns, rows = _COLUMNS, [_cells(run) for run in shown]
    if any(run.causes for run in shown):
        columns += '|<behind it'
        rows = [[*row, causes_in_words(run.causes)] for row, run in zip(rows, shown, strict=True)]
    print_table(out, title, columns, rows, all_rows=True)


def show_removed(runs: Sequence[StoredRun], lines: Mapping[Path, int], dry_run: bool) -> None:
    """What was removed, or what would be, and how much of it.

    :param lines: how many of each perflog.
    """
    word = 'would remove' if dry_run else 'removed'
    for run in runs:
        print(f'{word}: {run.uuid} of {run.begun.astimezone():%Y-%m-%d %H:%M}')
    for path, count in lines.items():
        print(f'{word}: {count} lines of {plain(str(path))}')
    print(f'{word} in all: runs: {len(runs)}, lines of perflogs: {sum(lines.values())}')


def _cells(run: StoredRun) -> list[object]:
    one = run.summary
    commit, dash, dirty = one.commit.partition('-')
    begun = f'{run.begun.astimezone():%Y-%m-%d %H:%M}'
    verdict = 'unreadable' if one.problem else run.verdict or '-'
    if one.left_out:
        verdict += f', {one.left_out} left out'
    return [
        *(run.name, begun, one.label or '-', one.mode or '-', one.system or '-'),
        *(f'{commit[:8]}{dash}{dirty}' or '-', verdict),
        *(one.passed, one.failed, one.disturbed, one.skipped),
    ]


def history_json(runs: Sequence[StoredRun]) -> str:
    """JSON: an object a run, with times in ISO 8601 (UTC)."""
    found = [
        {
            'run': run.uuid,
            'begun': run.begun.isoformat(),
            'ended': run.ended.isoformat(),
            'verdict': run.verdict,
            'problems': run.problems,
            'triage': [asdict(cause) for cause in run.causes],
            **asdict(run.summary),
        }
        for run in runs
    ]
    return json.dumps(found, indent=2)


# Failures -----------------------------------------------------------------------------------------


def show_failures(found: Sequence[TriagedFailure]) -> None:
    """Each failure with its class and note, the newest last."""
    out = console()
    if not found:
        print_line(out, 'nothing failed in these runs')
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
    print_table(out, title, '<run|<begun|<failed|<class|<note|~<reason', rows, all_rows=True)


def failures_json(found: Sequence[TriagedFailure]) -> str:
    """JSON: an object a failure, with the time of its run in ISO 8601 (UTC)."""
    rows = [
        {
            'run': one.run.uuid,
            'begun': one.run.begun.isoformat(),
            'failed': one.case,
            'class': one.cause.kind if one.cause else None,
            'note': one.cause.note if one.cause else None,
            'reason': one.reason,
        }
        for one in found
    ]
    return json.dumps(rows, indent=2)


def causes_in_words(causes: Sequence[TriageCause]) -> str:
    """Such as ``network 2, unknown 1``; ``-`` for none."""
    kinds = Counter(cause.kind for cause in causes).most_common()
    return ', '.join(f'{kind} {count}' for kind, count in kinds) or '-'
