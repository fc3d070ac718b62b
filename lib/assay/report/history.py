"""Stored runs, as tables and as JSON, the failures in them, and references learned from them."""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay import AssayError, paths
from assay.config.learned import Learned, Written, scalar
from assay.files import json_text
from assay.report.console import console, print_line, print_table
from assay.results.baseline import Refused
from assay.results.cases import bound
from assay.results.history import StoredRun
from assay.results.rows import is_beyond
from assay.results.store import TriageCause
from assay.results.triage import TriagedFailure
from assay.text import many, plain

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
        rows = [[*row, _behind(run.causes)] for row, run in zip(rows, shown, strict=True)]
    print_table(out, title, columns, rows, all_rows=True)


def show_removed(runs: Sequence[StoredRun], lines: Mapping[Path, int], dry_run: bool) -> None:
    """Print the runs and lines that were removed, or would be, and their number.

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
            'begun': run.begun,
            'ended': run.ended,
            'verdict': run.verdict,
            'problems': run.problems,
            'triage': run.causes,
            **vars(run.summary),
        }
        for run in runs
    ]
    return json_text(found, indent=2)


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
            'begun': one.run.begun,
            'failed': one.case,
            'class': one.cause.kind if one.cause else None,
            'note': one.cause.note if one.cause else None,
            'reason': one.reason,
        }
        for one in found
    ]
    return json_text(rows, indent=2)


def _behind(causes: Sequence[TriageCause]) -> str:
    """Such as ``network 2, unknown 1``; ``-`` for none."""
    kinds = Counter(cause.kind for cause in causes).most_common()
    return ', '.join(f'{kind} {count}' for kind, count in kinds) or '-'


def file_change(path: Path, old: str, new: str) -> str:
    """A unified diff, which `git apply` takes in the checkout; empty if nothing changes."""
    name = _shown(path)
    lines = difflib.unified_diff(
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        f'a/{name}' if old else '/dev/null',
        f'b/{name}',
    )
    ends = '\\ No newline at end of file\n'
    return ''.join(line if line.endswith('\n') else f'{line}\n{ends}' for line in lines)


def show_baseline(
    refused: Iterable[Refused],
    written: Written,
    path: Path,
    worst: float,
    dry_run: bool,
    future: int,
) -> None:
    """Print what was written and what was not; on standard error if the diff is on the other.

    :param worst: what is flagged as wide, as a fraction.
    :param future: how many runs were left out because they are of the future.
    :raises AssayError: if nothing could be written.
    """
    out = sys.stderr if dry_run else sys.stdout
    if future:
        print(f'left out: {many(future, "run")} of the future', file=out)
    for line in _lines(refused, written, worst):
        print(plain(line), file=out)
    if not written.added:
        raise AssayError(f'nothing could be written to {_shown(path)}.')
    count = len(written.added)
    done = 'would be' if dry_run else 'was' if count == 1 else 'were'
    print(f'{many(count, "reference")} {done} written to {_shown(path)}', file=out)


def _lines(refused: Iterable[Refused], written: Written, worst: float) -> Iterator[str]:
    for one, old in written.renewed:
        if change := _change(one, old):
            yield f'changed: {one.name}: {change}'
    for one in written.added:
        if wide := one.source.get('wide'):
            yield f'wide: {one.name}: its bound is {wide} from its value, more than {worst:.0%}'
    for one in written.kept:
        yield f'written by hand, left alone: {one.name}: it would have been {one.words}'
    for figure, reason in refused:
        yield f'refused: {figure}: {reason}'
    for one, reason in written.refused:
        yield f'refused: {one.name}: {reason}'


def _change(one: Learned, old: Sequence[Any]) -> str | None:
    """How a reference differs from the one that it replaces; None if that one allows its value."""
    now, *_, unit = one.given
    was, lower, upper, old_unit = old
    if unit != old_unit:
        return f'was {scalar(was)} {old_unit}, is {scalar(now)} {unit}'
    if not is_beyond(now, bound(was, lower), bound(was, upper)):
        return None
    told = f'was {scalar(was)}, is {scalar(now)}'
    if not was:
        return told
    share = now / was - 1
    if one.better == 'exact':
        return f'{told}: changed by {share:+.1%}'
    is_worse = (share > 0) == (one.better == 'lower')
    return f'{told}: {"worse" if is_worse else "better"} by {abs(share):.0%}'


def _shown(path: Path) -> Path:
    """From the top of the checkout, if it is in there."""
    return path.relative_to(paths.ROOT) if path.is_relative_to(paths.ROOT) else path
