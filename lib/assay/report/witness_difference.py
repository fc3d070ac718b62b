"""The reports of two jobs side by side: what changed, calls, figures and placement, as tables.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.report.table import percent, say, seconds, table
from assay.report.witness_job import show_ended
from assay.text import plain

if TYPE_CHECKING:
    from rich.console import Console

    from assay.witness.report import Process, Report

# Figures that are fractions, by the words for them.
SHARES = {
    'time in MPI': 'comm_share',
    'waiting': 'imbalance_share',
    'transfer': 'transfer_share',
    'load balance': 'load_balance',
    'an infinitely fast network saves': 'network_bound',
}


def show(one: Report, other: Report, out: Console) -> None:
    """What changed, then calls, figures and placement side by side."""
    from assay.witness.changes import program_changes, setting_changes

    changes = program_changes(one, other) + setting_changes(one, other)
    for report, name in ((one, 'first'), (other, 'second')):
        if not report.complete:
            show_ended(report, out, f' {name} report')
    for change in changes or ['program, MPI and settings: the same']:
        say(out, plain(change))
    if one.has_profile and other.has_profile:
        compare_figures(one, other, out)
        compare_calls(one, other, out)
    compare_placement(one, other, out)


def compare_figures(one: Report, other: Report, out: Console) -> None:
    from assay.witness.profile import figures

    before, after = figures(one), figures(other)
    rows = [('wall s', seconds(before.wall), seconds(after.wall), change(before.wall, after.wall))]
    for key in ('messages', 'bytes'):
        old, new = getattr(before, key), getattr(after, key)
        rows.append((key, str(old), str(new), change(old, new)))
    for name, key in SHARES.items():
        old, new = getattr(before, key), getattr(after, key)
        rows.append((name, percent(old), percent(new), f'{100 * (new - old):+.1f} points'))
    table(out, 'Figures', '<figure|first|second|change', rows)


def compare_calls(one: Report, other: Report, out: Console) -> None:
    from assay.witness.profile import summarise_calls
    from assay.witness.traffic import size

    calls = {call.name: call for call in summarise_calls(one)}
    others = {call.name: call for call in summarise_calls(other)}
    rows = []
    for name in {**calls, **others}:
        old, new = calls.get(name), others.get(name)
        times = [call.time if call else 0.0 for call in (old, new)]
        rows.append(
            (
                abs(times[1] - times[0]),
                name,
                *(call.count if call else 0 for call in (old, new)),
                *map(seconds, times),
                change(*times),
                *(size(call.bytes if call else 0) for call in (old, new)),
            )
        )
    rows.sort(reverse=True)
    table(
        out,
        'Calls (those whose time changed most first)',
        '<call|count|-> count|time s|-> time s|change|bytes|-> bytes',
        (row[1:] for row in rows),
    )


def change(before: float, after: float) -> str:
    """How much more or less, of the first."""
    if before == after:
        return '='
    return f'{after / before - 1:+.1%}' if before else 'new'


def compare_placement(one: Report, other: Report, out: Console) -> None:
    from assay.cpus import as_list

    def seat(process: Process) -> tuple[object, ...]:
        return process.host, as_list(process.cores), as_list(process.numa)

    rows = [
        (before.rank, *seat(before), '->', *seat(after))
        for before, after in zip(one.processes, other.processes, strict=False)
        if seat(before) != seat(after)
    ]
    if rows:
        columns = 'rank|<host|<cores|<NUMA|<|<host|<cores|<NUMA'
        table(out, f'Placement (ranks that sat elsewhere: {len(rows)})', columns, rows)
    else:
        say(out, '\nPlacement: the same')
