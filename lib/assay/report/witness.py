"""Tables of a witness's report: placement, fabric, profile, waits and messages; and of two."""

from __future__ import annotations

from rich.console import Console

from assay.report.console import MOST_ROWS, in_seconds, percent, print_line, print_table
from assay.text import as_list, many, plain
from assay.witness.changes import program_changes, setting_changes
from assay.witness.disturbance import disturbances
from assay.witness.placement import hosts_of, is_busy, shared_cores
from assay.witness.profile import (
    OF_ALL,
    Matrix,
    figures,
    matrices,
    mean_shares,
    slowest,
    split,
    summarise_calls,
)
from assay.witness.report import Process, Report
from assay.witness.sites import (
    SiteSummary,
    compare_sites,
    slower_most,
    summarise_phases,
    summarise_sites,
)
from assay.witness.traffic import account, decimal_size, ways


def show_job(report: Report, out: Console) -> None:
    """All that a report holds."""
    print_line(out, plain(' '.join(report.command)))
    if not report.complete:
        show_ended(report, out)
    print_line(out, job_summary(report))
    show_placement(report, out)
    if report.complete:
        for words in disturbances([report]):
            out.print()
            print_line(out, _sentence(words))
        show_traffic(report, out)
    if report.has_profile:
        show_profile(report, out)
        show_waits(report, out)
        show_sites(report, out)
        show_phases(report, out)
    if report.has_matrix:
        show_matrix(report, out)


def job_summary(report: Report) -> str:
    """Ranks, hosts, start and MPI in one line."""
    words = f'ranks: {report.ranks}, hosts: {len(report.hosts)}, started {plain(report.started)}'
    if report.complete:
        words += f', wall {max(process.wall for process in report.processes):.3f} s'
    library = report.mpi.library.strip().partition('\n')[0]
    mpi = f'{library} ({report.mpi.path}), thread level {report.mpi.thread_level}'
    return f'{words}\n{plain(mpi)}'


def show_answer(report: Report, out: Console) -> None:
    """Show the time of a program by its parts, on one screen: a sentence first, then its lines."""
    if not report.complete:
        show_ended(report, out)
    if not report.has_profile:
        return
    shares = mean_shares([split(process) for process in report.processes])
    job, sites = figures(report), summarise_sites(report)
    print_line(
        out,
        f'{many(report.ranks, "rank")} on {many(len(report.hosts), "host")}, {job.wall:.3f} s: '
        f'{percent(shares["computation"])} computation, '
        f'{percent(shares["transfer"])} transfer, {percent(job.imbalance_share)} waiting '
        f'for other ranks.',
    )
    if sites and job.comm_share > 0:
        print_line(out, f'Most time in MPI: {plain(site_in_words(sites[0], report))}.')
    if sites and (most := max(sites, key=lambda one: one.computed)).computed:
        share = percent(most.computed / report.thread_time)
        where = plain(f'{most.call} in {most.where}')
        print_line(out, f'Most computation: before {where}: {share} of the time.')
    print_line(
        out,
        f'An infinitely fast network would save at most {percent(job.network_bound)}, '
        f'perfect balance at most {percent(job.imbalance_share)}.',
    )
    # Ranks that share cores, and what else took time of the CPUs.
    crowded = [host for host in hosts_of(report, []) if len(host.used) < len(host.ranks)]
    for words in (*filter(None, map(shared_cores, crowded)), *disturbances([report])):
        print_line(out, _sentence(words))
    show_sites(report, out, few=True)
    show_phases(report, out)


def _sentence(words: str) -> str:
    """Begun with a capital, unless with the name of a host."""
    is_host = not words.startswith(('the ', 'all ', 'ranks '))
    return f'{words[0] if is_host else words[0].upper()}{plain(words[1:])}.'


def site_in_words(site: SiteSummary, report: Report) -> str:
    """A place of the program with its share of the time, and whom it waits for."""
    share = percent(_share(site, report.thread_time))
    words = f'{site.call} in {site.where}: {share} of the time'
    if site.waiting > 0.05 * site.time:
        words += f', {percent(site.waiting / site.time)} of it waiting'
        if (whom := site.whom) is not None:
            words += f', mostly for rank {whom}'
    return words


def _share(site: SiteSummary, whole: float) -> float:
    return site.time / whole if whole else 0.0


def show_sites(report: Report, out: Console, few: bool = False) -> None:
    """The places that called MPI, those that took longest first."""
    if not (found := summarise_sites(report)):
        return
    whole = report.thread_time  # a sum over all ranks: not once for each line
    print_table(
        out,
        'Lines that call MPI (those that took longest first)',
        '<call|<where|count|time s|% of wall|waiting|for rank|~ranks|bytes|computing before s',
        (
            (
                site.call,
                site.where,
                site.count,
                in_seconds(site.time),
                percent(_share(site, whole)),
                percent(site.waiting / site.time if site.time else 0.0),
                '-' if site.whom is None else site.whom,
                len(site.ranks),
                decimal_size(site.bytes),
                in_seconds(site.computed),
            )
            for site in found[: MOST_ROWS // 2 if few else len(found)]
        ),
    )


def show_phases(report: Report, out: Console) -> None:
    """Print the time of each phase that the program began by MPI_Pcontrol, if it began any."""
    if found := summarise_phases(report):
        print_table(
            out,
            'Phases of the program (MPI_Pcontrol)',
            'phase|begun|time s|in MPI|waiting',
            (
                (
                    one.phase,
                    one.begun,
                    in_seconds(one.wall),
                    percent(one.in_mpi),
                    percent(one.waiting),
                )
                for one in found
            ),
        )


def show_ended(report: Report, out: Console, which: str = '') -> None:
    """Show that the report is incomplete, and where each rank was."""
    why = 'the job did not get to MPI_Finalize'
    if not report.ended:
        why += ', or the disk was full'
    if report.finalized:
        why = 'the report could not be written at its end (a full disk?)'
    print_line(out, f'INCOMPLETE{which}: {why}; its placement is known.')
    for one in report.ended[:MOST_ROWS]:
        print_line(out, f'  {plain(one.words)}')
    if len(report.ended) > MOST_ROWS:
        print_line(out, f'  ... and {len(report.ended) - MOST_ROWS} more')
    silent = {*range(report.ranks)} - {one.rank for one in report.ended}
    if not (report.ended or report.finalized):
        print_line(out, '  No rank left word of its end.')
    elif silent and report.ended:
        print_line(out, f'  no word of their end, as after SIGKILL, from ranks: {as_list(silent)}')


def show_placement(report: Report, out: Console) -> None:
    """Print the seat of each rank, and the cores of its host."""
    rows = [placement_row(process) for process in report.processes]
    print_table(
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
    print_table(
        out,
        'Hosts',
        '<host|ranks|<CPUs|<CPUs of the job|<cores of the job|<CPUs of NUMA domains',
        hosts,
    )


def placement_row(process: Process) -> list[object]:
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


def show_traffic(report: Report, out: Console) -> None:
    """Print the bytes that ranks sent, and sockets and devices carried, and the network's state."""
    whom = 'to each other' if len(report.hosts) == 1 else 'to other hosts'
    print_table(
        out,
        f'Fabric (what the ranks of a host sent {whom}, and what carried it)',
        '<host|ranks|had to travel|TCP sockets between ranks',
        (
            (one.host, one.ranks, decimal_size(one.had_to_travel), decimal_size(one.sockets))
            for one in account(report)
        ),
    )
    devices = [(host, device) for host in report.hosts for device in host.devices]
    if devices:
        print_table(
            out,
            'Devices (change of their counters, by whatever program)',
            '<host|<device|<kind|sent|received',
            (
                (
                    host.name,
                    device.name,
                    device.kind,
                    decimal_size(device.sent),
                    decimal_size(device.received),
                )
                for host, device in devices
            ),
        )
    if found := ways([report]):
        print_table(
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
    job = figures(report)
    print_table(
        out,
        f'Profile ({percent(job.comm_share)} of the time in MPI; '
        f'{job.messages} messages, {job.bytes} bytes)',
        '<call|count|time s|% of MPI|~% of wall|~min s|~avg s|max s|waiting|bytes',
        (
            (
                one.name,
                one.count,
                in_seconds(one.time),
                percent(one.share_of_mpi),
                percent(one.share_of_wall),
                in_seconds(one.time_min),
                in_seconds(one.time_mean),
                in_seconds(one.time_max),
                percent(one.waiting / one.time if one.time else 0.0),
                decimal_size(one.bytes),
            )
            for one in summarise_calls(report)
        ),
    )
    print_line(
        out, 'min, avg, max: over all ranks; waiting: for other ranks, of the time of the call.'
    )


def show_waits(report: Report, out: Console) -> None:
    """Print the shares of the wall time, the gain that is possible, and the slowest rank."""
    job = figures(report)
    splits = [split(process) for process in report.processes]
    print_table(
        out,
        'Time of the ranks (of their wall time)',
        '<|computation|transfer|imbalance|late sender|late receiver',
        [('mean', *map(percent, mean_shares(splits).values()))],
    )
    print_line(
        out,
        f'{percent(job.analysed)} of the time in MPI was analysed for wait states; '
        f'the rest is counted as transfer.\n'
        f'An infinitely fast network would save at most {percent(job.network_bound)}, '
        f'perfect balance at most {percent(job.imbalance_share)}; '
        f'load balance {percent(job.load_balance)}.',
    )
    if gave_up := [process.rank for process in report.processes if process.waits_incomplete]:
        print_line(
            out,
            f'INCOMPLETE: ranks that gave up comparing what they waited for: {as_list(gave_up)}.',
        )
    most = slowest(report, MOST_ROWS // 2)
    print_table(
        out,
        'Slowest ranks (those with the most computation)',
        'rank|<host|computation s|of wall|waiting|transfer',
        (
            (
                one.rank,
                one.host,
                in_seconds(one.computation),
                *(
                    percent(part / one.wall if one.wall else 0.0)
                    for part in (one.computation, one.waiting, one.transfer)
                ),
            )
            for one in most
        ),
    )


def show_matrix(report: Report, out: Console) -> None:
    """Print the heaviest pairs of each kind of messages, and the message sizes."""
    if lost := [one.rank for one in report.processes if one.collectives_incomplete]:
        print_line(out, f'INCOMPLETE: ranks with collectives in no matrix: {as_list(lost)}.')
    for kind, matrix in (matrices(report) or {OF_ALL: Matrix([], {})}).items():
        print_table(
            out,
            f'Matrix of {kind} ({many(len(matrix.pairs), "pair")}, the heaviest first)',
            'sender|<|receiver|messages|bytes|mean size',
            (
                (
                    one.sender,
                    '->',
                    one.to,
                    one.messages,
                    decimal_size(one.bytes),
                    decimal_size(one.bytes / one.messages if one.messages else 0),
                )
                for one in matrix.pairs
            ),
        )
        if matrix.pairs and not matrix.sizes:
            continue
        most = max(matrix.sizes.values(), default=1)
        print_table(
            out,
            f'Sizes of {kind}',
            'from B|to B|messages|<',
            (
                (key, max(0, 2 * key - 1), count, '#' * max(1, round(40 * count / most)))
                for key, count in matrix.sizes.items()
            ),
            all_rows=True,
        )


# Two jobs -----------------------------------------------------------------------------------------


# Figures that are fractions, by the words for them.
SHARES = {
    'time in MPI': 'comm_share',
    'waiting': 'imbalance_share',
    'transfer': 'transfer_share',
    'load balance': 'load_balance',
    'an infinitely fast network saves': 'network_bound',
}


def show_difference(one: Report, other: Report, out: Console) -> None:
    """Print the changes between two reports, then calls, figures and placement side by side."""
    program = program_changes(one, other)
    more = [f'... and {len(program) - MOST_ROWS} more'] if len(program) > MOST_ROWS else []
    changes = program[:MOST_ROWS] + more + setting_changes(one, other)
    for report, name in ((one, 'first'), (other, 'second')):
        if not report.complete:
            show_ended(report, out, f' {name} report')
    for change in changes or ['program, MPI and settings: the same']:
        print_line(out, plain(change))
    if one.has_profile and other.has_profile:
        show_slower_line(one, other, out)
        compare_figures(one, other, out)
        compare_lines(one, other, out)
        compare_calls(one, other, out)
    compare_placement(one, other, out)


def compare_figures(one: Report, other: Report, out: Console) -> None:
    before, after = figures(one), figures(other)
    rows = [
        ('wall s', in_seconds(before.wall), in_seconds(after.wall), change(before.wall, after.wall))
    ]
    for key in ('messages', 'bytes'):
        old, new = getattr(before, key), getattr(after, key)
        rows.append((key, str(old), str(new), change(old, new)))
    for name, key in SHARES.items():
        old, new = getattr(before, key), getattr(after, key)
        rows.append((name, percent(old), percent(new), f'{100 * (new - old):+.1f} points'))
    print_table(out, 'Figures', '<figure|first|second|change', rows)


def show_slower_line(one: Report, other: Report, out: Console) -> None:
    """Print the line that became slower most, if one did by a thousandth of the job's time."""
    wall = sum(process.wall for process in one.processes)
    found = slower_most(compare_sites(one, other), 1e-3 * wall)
    if found and (site := found[0].after):
        before, after = found[0].both(found[1])
        where = site_in_words(site, other)
        if found[1] == 'computed':
            where = f'the program itself, before {site.call} in {site.where}'
        elif found[1] == 'transfer':
            where += ', without its waiting'
        print_line(
            out,
            f'Slower most: {plain(where)}; {in_seconds(before)} -> {in_seconds(after)} s of all '
            f'ranks ({change(before, after)})',
        )


def compare_lines(one: Report, other: Report, out: Console) -> None:
    if not (found := compare_sites(one, other)):
        return
    print_table(
        out,
        'Lines that call MPI (those whose time changed most first)',
        '<call|<where|~count|~-> count|time s|-> time s|change|waiting s|-> waiting s|-> for rank'
        '|computing before s|-> computing s|change',
        (
            (
                seen.call,
                seen.where,
                *(site.count if site else 0 for site in (place.before, place.after)),
                *map(in_seconds, place.both('time')),
                change(*place.both('time')),
                *map(in_seconds, place.both('waiting')),
                '-' if not place.after or place.after.whom is None else place.after.whom,
                *map(in_seconds, place.both('computed')),
                change(*place.both('computed')),
            )
            for place in found
            if (seen := place.after or place.before)
        ),
    )


def compare_calls(one: Report, other: Report, out: Console) -> None:
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
                *map(in_seconds, times),
                change(*times),
                *(decimal_size(call.bytes if call else 0) for call in (old, new)),
            )
        )
    rows.sort(reverse=True)
    print_table(
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
    def seat(process: Process) -> tuple[object, ...]:
        return process.host, as_list(process.cores), as_list(process.numa)

    rows = [
        (before.rank, *seat(before), '->', *seat(after))
        for before, after in zip(one.processes, other.processes, strict=False)
        if seat(before) != seat(after)
    ]
    if rows:
        columns = 'rank|<host|<cores|<NUMA|<|<host|<cores|<NUMA'
        print_table(out, f'Placement (ranks that sat elsewhere: {len(rows)})', columns, rows)
    else:
        print_line(out, '\nPlacement: the same')
