"""Changes of a system's references: in words, and as a diff of their file."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from assay import AssayError, paths
from assay.config.learned import Learned, Written, scalar
from assay.results.baseline import Proposal
from assay.results.cases import bound
from assay.results.rows import is_beyond
from assay.spelling import many
from assay.text import plain


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
    proposal: Proposal, written: Written, path: Path, worst: float, dry_run: bool, future: int
) -> None:
    """Print what was written and what was not; on standard error if the diff is on the other.

    :param worst: what is flagged as wide, as a fraction.
    :param future: how many runs were left out because they are of the future.
    :raises AssayError: if nothing could be written.
    """
    out = sys.stderr if dry_run else sys.stdout
    if future:
        print(f'left out: {many(future, "run")} of the future', file=out)
    for line in _lines(proposal, written, worst):
        print(plain(line), file=out)
    if not written.added:
        raise AssayError(f'nothing could be written to {_shown(path)}.')
    count = len(written.added)
    done = 'would be' if dry_run else 'was' if count == 1 else 'were'
    print(f'{many(count, "reference")} {done} written to {_shown(path)}', file=out)


def _lines(proposal: Proposal, written: Written, worst: float) -> Iterator[str]:
    for one, old in written.renewed:
        if change := _change(one, old):
            yield f'changed: {one.name}: {change}'
    for one in written.added:
        if wide := one.source.get('wide'):
            yield f'wide: {one.name}: its bound is {wide} from its value, more than {worst:.0%}'
    for one in written.kept:
        yield f'written by hand, left alone: {one.name}: it would have been {one.words}'
    for figure, reason in proposal.refused:
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
