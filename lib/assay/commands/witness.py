"""The command ``witness``: a report as tables, as a picture, and against another one.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from assay.witness.profile import Split
    from assay.witness.report import Process, Report

# Rows of a table before the rest is only counted, and columns of a window that shows all of it.
MOST_ROWS, WIDE = 16, 100

# Calls that a program repeats until something has happened: their number says nothing of it.
POLLING = {
    f'MPI_{name}'
    for name in (
        *('Test', 'Testall', 'Testany', 'Testsome', 'Waitsome'),
        *('Iprobe', 'Improbe', 'Win_test'),
    )
}

# Figures that are fractions, by the words for them.
SHARES = {
    'time in MPI': 'comm_share',
    'waiting': 'imbalance_share',
    'transfer': 'transfer_share',
    'load balance': 'load_balance',
    'a network of no cost wins': 'network_bound',
}


def witness(
    report: Annotated[Path, typer.Argument(metavar='REPORT.json', show_default=False)],
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar='FILE.png|FILE.svg', help='Draw the matrix and the split of the time as well.'
        ),
    ] = None,
    diff: Annotated[
        Path | None,
        typer.Option(metavar='OTHER.json', help='Show what is different in another report.'),
    ] = None,
) -> None:
    """Show what the witness saw of a job: placement, fabric, profile, waits and messages.

    The witness is preloaded into every program of a run; its report, witness.json, is among the
    job's files.

    Examples:

    \b
      assay witness witness.json
      assay witness witness.json --picture job.svg
      assay witness before.json --diff after.json
    """
    from assay.report import pictures
    from assay.report.console import console
    from assay.witness.report import read

    first = read(report)
    second = read(diff) if diff else None
    if picture:
        pictures.draw(first, picture)
    out = console()
    if second:
        show_difference(first, second, out)
    else:
        show(first, out)
    if picture:
        say(out, f'\npicture: {picture}')


def say(out: Console, text: str) -> None:
    """A line of text as it is, wrapped by nobody."""
    out.print(text, markup=False, soft_wrap=True)


def table(
    out: Console, title: str, columns: str, rows: Iterable[Iterable[object]], all_rows: bool = False
) -> None:
    """A table under a title: the first rows, and how many more there are.

    :param columns: headings, divided by ``|``. One that starts with ``<`` is of text, and one that
        starts with ``~`` is left out of a narrow window.
    """
    from rich.table import Table
    from rich.text import Text

    headings = columns.split('|')
    kept = [n for n, heading in enumerate(headings) if out.width >= WIDE or heading[:1] != '~']
    rows = list(rows)
    first = rows if all_rows else rows[:MOST_ROWS]
    shown = Table(box=None, pad_edge=False, header_style='bold')
    for heading in (headings[n].removeprefix('~') for n in kept):
        if heading.startswith('<'):
            shown.add_column(heading[1:], overflow='fold', max_width=40)
        else:
            shown.add_column(heading, justify='right', no_wrap=True)
    for row in first:
        cells = list(row)
        shown.add_row(*(Text(plain(cells[n])) for n in kept))
    # A table that is too wide all the same is wrapped by the window, not cut here.
    shown.width = out.measure(shown, options=out.options.update(max_width=1000)).maximum
    out.print()
    say(out, f'{title}:')
    out.print(shown, crop=False, no_wrap=True, overflow='ignore')
    if len(rows) > len(first):
        say(out, f'... and {len(rows) - len(first)} more')


def percent(fraction: float) -> str:
    return f'{fraction:.1%}'


def seconds(time: float) -> str:
    """To the microsecond, so that a column can be compared at a glance."""
    return f'{time:.6f}'


# One report -----------------------------------------------------------------------------------


def show(report: Report, out: Console) -> None:
    """All that a report holds."""
    say(out, plain(' '.join(report.command)))
    if not report.complete:
        show_ended(report, out)
    say(out, summary(report))
    show_placement(report, out)
    if report.complete:
        show_disturbance(report, out)
        show_traffic(report, out)
    if report.has_profile:
        show_profile(report, out)
        show_waits(report, out)
    if report.has_matrix:
        show_matrix(report, out)


def summary(report: Report) -> str:
    """Ranks, hosts, start and MPI in one line."""
    words = f'ranks: {report.ranks}, hosts: {len(report.hosts)}, started {plain(report.started)}'
    if report.complete:
        words += f', wall {max(process.wall for process in report.processes):.3f} s'
    library = report.mpi.library.strip().partition('\n')[0]
    mpi = f'{library} ({report.mpi.path}), thread level {report.mpi.thread_level}'
    return f'{words}\n{plain(mpi)}'


def show_ended(report: Report, out: Console, which: str = '') -> None:
    """That the report is incomplete, and where each rank was."""
    say(out, f'INCOMPLETE{which}: the job did not get to MPI_Finalize; its placement is known.')
    for one in report.ended[:MOST_ROWS]:
        say(out, f'  {plain(one.words)}')
    if len(report.ended) > MOST_ROWS:
        say(out, f'  ... and {len(report.ended) - MOST_ROWS} more')
    if not report.ended:
        say(out, '  No rank left word of its end.')


def show_placement(report: Report, out: Console) -> None:
    """Where each rank sat, and what its host has."""
    from assay.witness.report import as_list

    rows = [placement_row(process) for process in report.processes]
    table(
        out,
        'Placement',
        'rank|<host|~pid|<cores|<CPUs|<NUMA|~<package|~last CPU|busy threads|~<memory|CPU limit',
        rows,
    )
    by_host = report.by_host()
    hosts = (
        (
            host.name,
            len(by_host[host.name]),
            as_list(host.cpus),
            as_list(host.allowed),
            as_list(host.cores),
            '; '.join(f'{domain.id}: {as_list(domain.cpus)}' for domain in host.numa),
        )
        for host in report.hosts
    )
    table(
        out,
        'Hosts',
        '<host|ranks|<CPUs|<CPUs of the job|<cores of the job|<CPUs of NUMA domains',
        hosts,
    )


def placement_row(process: Process) -> list[object]:
    from assay.witness.placement import is_busy
    from assay.witness.report import as_list

    memory = process.memory.policy
    if process.memory.nodes:
        memory += f' {as_list(process.memory.nodes)}'
    return [
        process.rank,
        process.host,
        process.pid,
        as_list(process.cores),
        as_list(process.cpus),
        as_list(process.numa),
        as_list(process.packages),
        process.last_cpu,
        sum(is_busy(process, thread) for thread in process.threads),
        memory,
        '-' if process.cpu_limit is None else f'{process.cpu_limit:g}',
    ]


def show_disturbance(report: Report, out: Console) -> None:
    """What else took time of the CPUs of the job."""
    from assay.witness.disturbance import disturbed

    for words in disturbed([report]):
        out.print()
        say(out, f'{words[0].upper()}{plain(words[1:])}.')


def show_traffic(report: Report, out: Console) -> None:
    """What ranks sent, what sockets and devices carried, and what the network was like."""
    from assay.witness.network import ways
    from assay.witness.traffic import account, size

    whom = 'to each other' if len(report.hosts) == 1 else 'to other hosts'
    table(
        out,
        f'Fabric (what the ranks of a host sent {whom}, and what carried it)',
        '<host|ranks|had to travel|TCP sockets between ranks',
        (
            (one.host, one.ranks, size(one.had_to_travel), size(one.sockets))
            for one in account(report)
        ),
    )
    devices = [(host, device) for host in report.hosts for device in host.devices]
    if devices:
        table(
            out,
            'Devices (change of their counters, by whatever program)',
            '<host|<device|<kind|sent|received',
            (
                (host.name, device.name, device.kind, size(device.sent), size(device.received))
                for host, device in devices
            ),
        )
    if found := ways([report]):
        table(
            out,
            'Network (TCP connections between the ranks of two hosts)',
            '<host|<host|segments|sent again|shortest round trip ms',
            (
                (
                    *way.hosts,
                    way.segments,
                    percent(way.resent_share),
                    '-' if way.round_trip is None else f'{1e3 * way.round_trip:.3f}',
                )
                for way in found
            ),
        )


def show_profile(report: Report, out: Console) -> None:
    """The table that users of IPM know."""
    from assay.witness.profile import figures, summarise_calls
    from assay.witness.traffic import size

    job = figures(report)
    table(
        out,
        f'Profile ({percent(job.comm_share)} of the time in MPI; '
        f'{job.messages} messages, {job.bytes} bytes)',
        '<call|count|time s|% of MPI|~% of wall|~min s|~avg s|max s|waiting|bytes',
        (
            (
                one.name,
                one.count,
                seconds(one.time),
                percent(one.share_of_mpi),
                percent(one.share_of_wall),
                seconds(one.time_min),
                seconds(one.time_mean),
                seconds(one.time_max),
                percent(one.waiting / one.time if one.time else 0.0),
                size(one.bytes),
            )
            for one in summarise_calls(report)
        ),
    )
    say(out, 'min, avg, max: over all ranks; waiting: for other ranks, of the time of the call.')


def show_waits(report: Report, out: Console) -> None:
    """What the wall time went into, what could be won, and who is slowest."""
    from assay.witness.profile import figures, mean_shares, slowest, split

    job = figures(report)
    splits = [split(process) for process in report.processes]
    table(
        out,
        'Time of the ranks (of their wall time)',
        '<|computation|transfer|imbalance|late sender|late receiver',
        [('mean', *map(percent, mean_shares(splits).values()))],
    )
    say(
        out,
        f'{percent(job.analysed)} of the time in MPI was searched for waiting; what was not counts '
        f'as transfer.\n'
        f'A network of no cost would win at most {percent(job.network_bound)}, '
        f'perfect balance at most {percent(job.imbalance_share)}; '
        f'load balance {percent(job.load_balance)}.',
    )
    most = slowest(report, MOST_ROWS // 2)
    table(
        out,
        'Slowest ranks (those with the most computation)',
        'rank|<host|computation s|of wall|waiting|transfer',
        (
            (
                one.rank,
                one.host,
                seconds(one.computation),
                *(percent(part / one.wall if one.wall else 0.0) for part in parts(one)),
            )
            for one in most
        ),
    )


def parts(one: Split) -> tuple[float, float, float]:
    return one.computation, one.waiting, one.transfer


def show_matrix(report: Report, out: Console) -> None:
    """The heaviest pairs, and the sizes of messages."""
    from assay.witness.profile import message_sizes, pairs
    from assay.witness.traffic import size

    found = pairs(report)
    table(
        out,
        f'Matrix ({len(found)} pairs, the heaviest first)',
        'sender|<|receiver|messages|bytes|mean size',
        (
            (
                one.sender,
                '->',
                one.receiver if one.receiver >= 0 else 'outside',
                one.messages,
                size(one.bytes),
                size(one.bytes / one.messages if one.messages else 0),
            )
            for one in found
        ),
    )
    sizes = message_sizes(report)
    most = max(sizes.values(), default=1)
    table(
        out,
        'Sizes of messages',
        'from B|to B|messages|<',
        (
            (key, max(0, 2 * key - 1), count, '#' * max(1, round(40 * count / most)))
            for key, count in sizes.items()
        ),
        all_rows=True,
    )


# Two reports ----------------------------------------------------------------------------------


def show_difference(one: Report, other: Report, out: Console) -> None:
    """What changed, then calls, figures and placement side by side."""
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


def program_changes(one: Report, other: Report) -> list[str]:
    """What is exact and differs: the program did something else."""
    from assay.witness.profile import figures, summarise_calls

    found = []
    if one.command != other.command:
        found.append(f'command changed: {" ".join(one.command)} -> {" ".join(other.command)}')
    if one.ranks != other.ranks:
        found.append(f'ranks changed: {one.ranks} -> {other.ranks}')
    if one.has_matrix and other.has_matrix:
        before, after = figures(one), figures(other)
        if before.messages != after.messages:
            found.append(f'program changed: {before.messages} -> {after.messages} messages')
    if one.complete and other.complete:
        calls = {call.name: call for call in summarise_calls(one)}
        others = {call.name: call for call in summarise_calls(other)}
        for name in sorted({*calls, *others} - POLLING):
            for what, unit in (('count', 'calls'), ('bytes', 'bytes')):
                old = getattr(calls.get(name), what, 0)
                new = getattr(others.get(name), what, 0)
                if old != new:
                    found.append(f'program changed: {name} {old} -> {new} {unit}')
    return found


def setting_changes(one: Report, other: Report) -> list[str]:
    """What the job was given and differs: MPI, its libraries, and variables, of any rank."""
    from assay.witness.report import OLD_SCHEMA, OLD_VARIABLES

    found = []
    for name in ('library', 'path', 'thread_level'):
        old, new = (of_all_ranks(report, name) for report in (one, other))
        if old != new:
            found.append(f'MPI {name.replace("_", " ")} changed: {old} -> {new}')
    for path in sorted({*one.libraries} ^ {*other.libraries}):
        found.append(f'library {"no longer" if path in one.libraries else "newly"} loaded: {path}')
    before, after = one.variables(), other.variables()
    names = sorted({*before, *after})
    if OLD_SCHEMA in (one.schema_, other.schema_):
        found.append(
            'a report is of an earlier witness: it has no variables but those of OpenMP, and '
            'counts receives as bytes of MPI_Start and MPI_Startall'
        )
        names = [name for name in names if name.startswith(OLD_VARIABLES)]
    for name in names:
        old, new = before.get(name, 'unset'), after.get(name, 'unset')
        if old != new:
            found.append(f'environment changed: {name}: {old} -> {new}')
    return found


def of_all_ranks(report: Report, name: str) -> str:
    """A fact of the MPI; of ranks that differ each one's, in its first line."""
    first = getattr(report.mpi, name)
    facts = dict.fromkeys(p.differs.mpi.get(name, first) for p in report.processes)
    return ', '.join(fact.strip().partition('\n')[0] for fact in facts)


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
    from assay.witness.report import as_list

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
