"""Charts of the witness's reports on applications: who sent to whom, and where the ranks sat."""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay import AssayError
from assay.job.launch import WITNESS
from assay.report.html.chart import Axis, Chart, ChartSeries, Grid, Mark, Panel
from assay.results.cases import Case, folder_left
from assay.text import as_list, many, plain
from assay.witness import Report, WitnessError, read_witness
from assay.witness.placement import (
    DISTANCES,
    PlacedHost,
    cores_in_words,
    hosts_of,
    ranks_in_words,
    shared_cores,
)
from assay.witness.profile import PARTS, Matrix, Messages, matrices, mean_shares, split
from assay.witness.report import KeptPlan
from assay.witness.traffic import decimal_size

#: Jobs of a page, rows and columns of a matrix, rows of its table, rows of cores, and cores in one.
MOST, MOST_ROWS, MOST_PAIRS, MOST_SEATS, WIDE = 12, 32, 16, 32, 16
#: Bytes of a report that is read: one of some thousand ranks.
MOST_BYTES = 1 << 25
#: Bytes or messages of a pair of ranks: no job sends so many.
MOST_SENT = 1 << 63
#: Characters of a name.
WIDTH = 40
#: Rows and columns of a matrix on a page of its own.
MOST_DOTS = 128


def job_charts(cases: Sequence[Case]) -> tuple[list[Grid], list[str]]:
    """The charts of each job of an application whose files exist; and what is missing."""
    found: list[Grid] = []
    notes: list[str] = []
    jobs = [(case, path) for case in cases if case.implementation if (path := _report_of(case))]
    for case, path in jobs[:MOST]:
        try:
            report = _read(path)
            found += _of_job(report, _title(case, path))
            if not report.plan and os.path.exists(plan := f'{path}.plan'):
                notes.append(f'{plain(plan)}: no plan of this job: it is not drawn.')
        except WitnessError as error:
            notes.append(f'What the witness saw of a job cannot be shown: {plain(error)}')
    if len(jobs) > MOST:
        notes.append(
            f'Who sent to whom, and where ranks sat, is shown of the first {MOST} of {len(jobs)} '
            'jobs of applications.'
        )
    return found, notes


def _report_of(case: Case) -> Path | None:
    """The report of a job; of a series that of its largest start."""
    if not (where := folder_left(case)):
        return None
    own = where / WITNESS
    found = [own] if os.path.exists(own) else [*where.glob(f'*/{WITNESS}')]
    return max(found, key=lambda path: (_bytes(path), path), default=None)


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read(path: Path) -> Report:
    """:raises WitnessError: if it cannot be read, is no report, or has no end."""
    for one in (path, *(path.with_name(f'{path.name}.{beside}') for beside in ('ranks', 'plan'))):
        # A pipe would wait for somebody who writes.
        if os.path.exists(one) and not (os.path.isfile(one) and _bytes(one) <= MOST_BYTES):
            raise WitnessError(
                f'{one}: no file, or of more than {MOST_BYTES >> 20} MiB: it is not read'
            )
    return read_witness(path)


def _title(case: Case, path: Path) -> str:
    words = (case.short_name, case.fabric, case.layout, case.environment)
    start = path.parent.name if path.parent != folder_left(case) else ''
    return plain(' '.join([*filter(None, map(str, filter(None, words))), start]))


def of_job(report: Report) -> list[Chart | Grid]:
    """All charts of one job: who sent to whom, where ranks sat, and what their time went into.

    :raises AssayError: if there is nothing to draw.
    """
    title = plain(Path(report.command[0]).name if report.command else '', WIDTH)
    found: list[Chart | Grid] = [*_of_job(report, title, MOST_DOTS)]
    if report.has_profile:
        found.append(_time(report, title))
    if not found:
        raise AssayError('nothing to draw: the report has no cores, no messages and no profile')
    return found


def _of_job(report: Report, title: str, most: int = MOST_ROWS) -> Iterator[Grid]:
    sent = matrices(report) if report.has_matrix else {}
    matrix, sizes = _matrix(report, sent, title, most), _sizes(sent, title)
    if matrix:
        yield matrix
    if sizes:
        yield sizes
    notes = []
    if not report.complete:
        notes.append('The job did not get to MPI_Finalize: who sent to whom is not known.')
    elif not report.has_matrix:
        notes.append('The report has no section matrix: who sent to whom is not known.')
    elif not matrix:
        notes.append('No message went from rank to rank.')
    if report.plan and not report.plan.moves:
        notes.append(f'A plan was made: {_answer(report.plan)}.')
    if seats := _seats(report, title, notes):
        yield seats
    if matrix and (places := _by_place(report, title)):
        yield places
    if report.plan and report.plan.moves:
        yield _plan(report, report.plan, title)


# Messages -----------------------------------------------------------------------------------------


def _matrix(report: Report, sent: Mapping[str, Matrix], title: str, most: int) -> Grid | None:
    """Bytes from each row to each column, of each kind; None if no messages went between ranks.

    :param sent: by kind.
    :param most: rows and columns.
    :raises WitnessError: if there are more than any job sends.
    """
    row_of, names, what = _rows(report, most)
    ranks_of: list[list[int]] = [[] for _ in names]
    for rank, row in enumerate(row_of):
        ranks_of[row].append(rank)
    found = [(kind, pair) for kind, matrix in sent.items() for pair in matrix.pairs]
    lost = as_list([one.rank for one in report.processes if one.collectives_incomplete])
    if any(max(pair.bytes * pair.count, pair.messages) >= MOST_SENT for _, pair in found):
        raise WitnessError(f'{title}: a rank sent more to another than any job sends')
    cells: dict[str, dict[tuple[int, int], int]] = {}
    for kind, pair in found:
        of_kind = cells.setdefault(kind, {})
        for column, count in _columns(pair, row_of, ranks_of):
            cell = row_of[pair.sender], column
            # A logarithm has no place for empty messages: they are drawn as one byte.
            of_kind[cell] = of_kind.get(cell, 0) + max(pair.bytes, 1) * count
    panels = [
        (kind if report.has_kinds else '', of_kind) for kind, of_kind in cells.items() if of_kind
    ]
    if not panels:
        return None
    notes = ['Collectives: what their arguments say; the MPI chooses the way.']
    if not report.has_kinds:
        notes = ['Messages and neighbourhood collectives; other collectives are in no pair.']
    if lost:
        notes.append(f'Incomplete: collectives of these ranks are missing: {plain(lost, WIDTH)}.')
    heaviest = sorted(found, key=lambda one: -one[1].bytes * one[1].count)
    if len(found) > MOST_PAIRS:
        notes.append(f'The table has the {MOST_PAIRS} heaviest of {len(found)} pairs of ranks.')
    return _who_to_whom(
        f'Who sent to whom: {title}',
        what,
        names,
        panels,
        headings=['from rank', 'to rank', 'kind', 'messages [1]', 'to each [B]', 'in short'],
        cells=[
            [
                str(pair.sender),
                pair.to,
                kind,
                str(pair.messages),
                str(pair.bytes),
                decimal_size(pair.bytes),
            ]
            for kind, pair in heaviest[:MOST_PAIRS]
        ],
        notes=notes,
    )


def _columns(
    pair: Messages, row_of: Sequence[int], ranks_of: Sequence[Sequence[int]]
) -> list[tuple[int, int]]:
    """The columns that messages go to, and to how many ranks of each."""
    found: Counter[int] = Counter()
    for span in pair.receivers:
        if len(span) > 1:
            for column, ranks in enumerate(ranks_of):
                found[column] += bisect_left(ranks, span.stop) - bisect_left(ranks, span.start)
        elif span[0] >= 0:
            found[row_of[span[0]]] += 1
    return [(column, count) for column, count in found.items() if count]


def _who_to_whom(
    title: str,
    what: str,
    names: list[str],
    panels: Sequence[tuple[str, Mapping[tuple[int, int], int]]],
    **others: Any,
) -> Grid:
    """Bytes from each row to each column.

    :param what: each is.
    :param panels: their names, and bytes by row and column.
    :param others: of the grid: the numbers below it, and notes.
    """
    return Grid(
        title=title,
        across=Axis(f'to {what}'),
        upwards=Axis(f'from {what}'),
        columns=names,
        rows=names,
        measure=Axis('sent [B]', is_logarithmic=True),
        colours='amount',
        ends=_decades([count for _, cells in panels for count in cells.values()]),
        panels=[Panel(name, _filled(cells, len(names))) for name, cells in panels],
        **others,
    )


def _decades(counts: Collection[int]) -> tuple[int, int]:
    """The powers of ten around some numbers above 0."""
    lowest = 10 ** math.floor(math.log10(min(counts)))
    return lowest, max(10 ** math.ceil(math.log10(max(counts))), 10 * lowest)


def _filled(
    cells: Mapping[tuple[int, int], int], columns: int, rows: int | None = None
) -> list[list[float | None]]:
    """Rows of cells; as many as columns, if nothing else is said."""
    values: list[list[float | None]] = [[None] * columns for _ in range(rows or columns)]
    for (row, column), count in cells.items():
        values[row][column] = int(float(f'{count:.3g}'))
    return values


def _rows(report: Report, most: int) -> tuple[list[int], list[str], str]:
    """The row of each rank, the names of the rows, and what they are: of many ranks their nodes."""
    if report.ranks <= most:
        return [*range(report.ranks)], [str(rank) for rank in range(report.ranks)], 'rank'
    if len(report.hosts) > 1:
        number = {host.name: number for number, host in enumerate(report.hosts)}
        block = -(-len(number) // most)
        names = [plain(name, WIDTH) for name in [*number][::block]]
        what = 'node' if block == 1 else f'nodes, {block} from'
        return [number[process.host] // block for process in report.processes], names, what
    block = -(-report.ranks // most)
    starts = range(0, report.ranks, block)
    names = [f'{start}-{min(start + block, report.ranks) - 1}' for start in starts]
    return [rank // block for rank in range(report.ranks)], names, 'ranks'


def _sizes(sent: Mapping[str, Matrix], title: str) -> Grid | None:
    """How many messages of each kind have which size, in powers of two; None if that is not known.

    :raises WitnessError: if there are more than any job sends.
    """
    counts: dict[str, Counter[int]] = {}
    for kind, matrix in sent.items():
        for size, count in matrix.sizes.items():
            if max(size, count) >= MOST_SENT:
                raise WitnessError(f'{title}: a rank sent more than any job sends')
            if count > 0:
                counts.setdefault(kind, Counter())[max(size, 0).bit_length()] += count
    if not counts:
        return None
    kinds = [*counts]
    first, last = (end(end(of_kind) for of_kind in counts.values()) for end in (min, max))
    columns = range(first, last + 1)
    ends = [(2**power >> 1, max(0, 2**power - 1)) for power in columns]
    # Sizes between two that occur are columns too, so that a gap is seen as one.
    cells = {
        (row, power - first): count
        for row, kind in enumerate(kinds)
        for power, count in counts[kind].items()
    }
    return Grid(
        title=f'Sizes of messages: {title}',
        across=Axis('from this size to below its double [B]'),
        upwards=Axis('kind'),
        columns=[_in_ki(least) for least, _ in ends],
        rows=kinds,
        measure=Axis('messages [1]', is_logarithmic=True),
        colours='amount',
        ends=_decades(cells.values()),
        panels=[Panel('', _filled(cells, len(columns), len(kinds)))],
        headings=['from [B]', 'to [B]', *(f'{kind} [1]' for kind in kinds)],
        cells=[
            [str(least), str(most), *(str(counts[kind][power]) for kind in kinds)]
            for power, (least, most) in zip(columns, ends, strict=True)
            if any(counts[kind][power] for kind in kinds)
        ],
        texts=[[f'{kind}, {least} to {most} B' for least, most in ends] for kind in kinds],
    )


def _in_ki(size: int) -> str:
    """A power of two: ``64 Ki``."""
    for unit in ('', ' Ki', ' Mi', ' Gi', ' Ti'):
        if size < 1024:
            return f'{size}{unit}'
        size >>= 10
    return f'{size} Pi'


# Time ---------------------------------------------------------------------------------------------


def _time(report: Report, title: str) -> Chart:
    """The shares of each rank's wall time, in percent; many ranks share a row."""
    row_of, names, what = _rows(report, MOST_ROWS)
    splits = [split(process) for process in report.processes]
    shares = mean_shares(splits)
    # A job that does nothing between MPI_Init and MPI_Finalize may have taken no time.
    walls = [max(wall, 1e-9) for wall in _sums(row_of, [one.wall for one in splits])]
    series = []
    for number, part in enumerate(PARTS):
        spent = _sums(row_of, [getattr(one, part) for one in splits])
        values = [100 * seconds / wall for seconds, wall in zip(spent, walls, strict=True)]
        name = f'{part.replace("_", " ")} ({shares[part]:.1%})'
        series.append(ChartSeries(name, names, values, colour=number, style=number))
    return Chart(
        f'What the time of each rank went into: {title}',
        'stacked',
        Axis('of the wall time [%]'),
        Axis(what),
        tuple(series),
        ('In brackets: the mean of the ranks.',),
    )


def _sums(row_of: Sequence[int], values: Sequence[float]) -> list[float]:
    """The sum of the ranks of each row."""
    found = [0.0] * (max(row_of) + 1)
    for row, value in zip(row_of, values, strict=True):
        found[row] += value
    return found


# Seats --------------------------------------------------------------------------------------------


def _seats(report: Report, title: str, notes: list[str]) -> Grid | None:
    """The ranks on the cores of each node, a row for each NUMA domain; None without any.

    :param notes: what else there is to say of the job.
    """
    # As if each rank had been given several cores: where its threads were busy counts.
    hosts = hosts_of(report, [2] * report.ranks)
    # Those where something is wrong first, so that they are not what is left out.
    rows = [
        row for host in sorted(hosts, key=lambda host: not shared_cores(host)) for row in _of(host)
    ]
    if not rows:
        return None
    nowhere = [
        rank.number
        for host in hosts
        for rank in host.ranks
        if not any(rank.cores & cores for cores in host.domains.values())
    ]
    if nowhere:
        ranks = plain(as_list(nowhere), WIDTH)
        notes.append(f'On no core of these nodes sat {many(len(nowhere), "rank")}: {ranks}.')
    if len(rows) > MOST_SEATS:
        notes.append(
            f'These are {MOST_SEATS} of {len(rows)} rows of cores, of nodes with cores of several '
            'ranks first.'
        )
    rows = rows[:MOST_SEATS]
    notes += [f'{sentence}.' for host in hosts if (sentence := shared_cores(host))][:4]
    width = max(len(cores) for *_, cores in rows)
    names: list[str] = []
    values: list[list[float | None]] = []
    labels: list[list[str]] = []
    texts: list[list[str]] = []
    table: list[list[str]] = []
    crowded: list[tuple[int, int]] = []
    for number, (host, domain, cores) in enumerate(rows):
        on = [[rank for rank in host.ranks if core in rank.cores] for core in cores]
        words = [ranks_in_words(ranks) if ranks else 'no rank' for ranks in on]
        told = [f'core {core}: {one}' for core, one in zip(cores, words, strict=True)]
        seated = [plain(as_list([rank.number for rank in ranks]), 11) for ranks in on]
        where = f'{plain(host.name, WIDTH)} domain {domain}'
        gap = width - len(cores)
        names.append(f'{where}: {as_list(cores)}')
        values.append([*(float(len(ranks)) for ranks in on), *[None] * gap])
        labels.append([*seated, *[''] * gap])
        texts.append([*(f'{where}, {one}' for one in told), *[''] * gap])
        table.append([where, cores_in_words(cores), '; '.join(told)])
        crowded += [(number, place) for place, ranks in enumerate(on) if len(ranks) > 1]
    return Grid(
        title=f'Where ranks sat: {title}',
        across=Axis('place in the row [1]'),
        upwards=Axis('cores'),
        columns=[str(place + 1) for place in range(width)],
        rows=names,
        measure=Axis('ranks that may use the core [1]'),
        colours='seats',
        ends=(0, 2),
        panels=[Panel('', values)],
        headings=['node and NUMA domain', 'cores', 'ranks'],
        cells=table,
        marks=[Mark('shared by several ranks', crowded, 0)] if crowded else (),
        notes=notes,
        labels=labels,
        texts=texts,
    )


#: Of a seat: its switch, the number of its host, its packages and its domains.
_Seat = tuple[int, int, tuple[int, ...], tuple[int, ...]]


def _seats_of(report: Report) -> list[_Seat]:
    """The seat of each rank. Those of one domain are equal."""
    number = {host.name: number for number, host in enumerate(report.hosts)}
    ranks = report.plan.ranks if report.plan else []
    switch = {one.seat_of: one.switch for one in ranks}
    return [
        (
            switch.get(one.rank, 0),
            number[one.host],
            tuple(sorted(one.packages)),
            tuple(sorted(one.numa)),
        )
        for one in report.processes
    ]


def _by_place(report: Report, title: str) -> Grid | None:
    """Bytes between the places where ranks sat, as they sat and as planned.

    A place is a seat; of many ranks their NUMA domain, or node. Neighbours are near each other, so
    that what is far from the diagonal went far. None if all seats are in one domain, or no messages
    went between two ranks.
    """
    seats = _seats_of(report)
    sent = [
        (process.rank, one.rank, max(one.bytes, 1))
        for process in report.processes
        for one in process.partners
        if one.rank not in (-1, process.rank)
    ]
    place_of, names, what = _places(report, seats)
    if len({*seats}) < 2 or len(names) < 2 or not sent:
        return None
    plan = report.plan
    ways = {'as ranks sat': [*range(report.ranks)]}
    if plan and plan.moves:
        ways[f'as planned (expected gain: {plan.gain.expected:.1%})'] = [
            one.seat_of for one in plan.ranks
        ]
    panels: list[Counter[tuple[int, int]]] = []
    columns: list[Counter[str]] = []
    for seat_of in ways.values():
        cells: Counter[tuple[int, int]] = Counter()
        far: Counter[str] = Counter()
        for sender, receiver, size in sent:
            one, other = seat_of[sender], seat_of[receiver]
            cells[place_of[one], place_of[other]] += size
            far[_distance(seats[one], seats[other])] += size
        panels.append(cells)
        columns.append(far)
    return _who_to_whom(
        f'Who sent to whom, by place: {title}',
        what,
        names,
        [(way if len(ways) > 1 else '', cells) for way, cells in zip(ways, panels, strict=True)],
        headings=['distance', *(f'{way} [B]' for way in ways)],
        cells=[
            [distance, *(str(far[distance]) for far in columns)]
            for distance in DISTANCES
            if any(far[distance] for far in columns)
        ],
        notes=['Messages and one-sided calls, without the collectives that no plan counts.'],
    )


def _distance(one: _Seat, other: _Seat) -> str:
    """How far two seats are from each other."""
    inner = len(one)
    return DISTANCES[next((inner - n for n in range(inner) if one[n] != other[n]), 0)]


def _places(report: Report, seats: Sequence[_Seat]) -> tuple[list[int], list[str], str]:
    """The place of each rank's seat, the names of the places, and what they are."""
    cores = [tuple(sorted(one.cores)) for one in report.processes]
    levels: dict[str, list[tuple[Any, ...]]] = {
        'seat': [(*seat, cores[rank], rank) for rank, seat in enumerate(seats)],
        'NUMA domain': [*seats],
        'node': [seat[:2] for seat in seats],
    }
    what = next((one for one, keys in levels.items() if len({*keys}) <= MOST_ROWS), 'node')
    keys = levels[what]
    places = sorted({*keys})
    block = -(-len(places) // MOST_ROWS)
    number = {place: n // block for n, place in enumerate(places)}
    names: list[str] = []
    for place in places[::block]:
        rank = keys.index(place)
        process = report.processes[rank]
        name = plain(process.host, WIDTH)
        if what != 'node':
            name += f' domain {as_list(process.numa)}'
        if what == 'seat':
            name += f': {as_list([*cores[rank]])}'
        # Ranks that share a seat need names of their own.
        names.append(name if name not in names else f'{name} ({len(names)})')
    return [number[key] for key in keys], names, what if block == 1 else f'{what}s, {block} from'


def _answer(plan: KeptPlan) -> str:
    return f'{plain(plan.verdict)}: {plain(plan.why)}'


def _plan(report: Report, plan: KeptPlan, title: str) -> Grid:
    """The planned seats of ranks: a row for each socket, those behind a switch together."""
    rank_of = {one.seat_of: one.rank for one in plan.ranks}
    many_switches = len({one.switch for one in plan.ranks}) > 1
    rows: dict[tuple[int, int, tuple[int, ...]], list[int]] = {}
    for seat, (switch, host, packages, _) in enumerate(_seats_of(report)):
        rows.setdefault((switch, host, packages), []).append(seat)
    places = sorted(
        (place, seats[start : start + WIDE])
        for place, seats in rows.items()
        for start in range(0, len(seats), WIDE)
    )
    gain = plan.gain
    notes = [
        f'{_answer(plan)}.',
        f'Expected gain: {gain.expected:.1%} of the wall time ({gain.low:.1%} to {gain.high:.1%}).',
    ]
    if plan.turns and plan.turns.ratio is not None:
        verdict = plain(plan.turns.verdict)
        told = 'not proven faster or slower' if verdict == 'cannot tell' else verdict
        notes.append(
            f'Run in turn, the job as planned was {told}: it took '
            f'{plan.turns.ratio:.3f} times as long.'
        )
    if len(places) > MOST_SEATS:
        notes.append(
            f'These are {MOST_SEATS} of {len(places)} rows of seats, those that change first.'
        )
        places.sort(key=lambda row: all(rank_of[seat] == seat for seat in row[1]))
    names: list[str] = []
    values: list[list[float | None]] = []
    labels: list[list[str]] = []
    texts: list[list[str]] = []
    for number, ((behind, host, packages), seats) in enumerate(places[:MOST_SEATS]):
        gap = [''] * (min(WIDE, max(len(some) for _, some in places)) - len(seats))
        where = f'{plain(report.hosts[host].name, WIDTH)} socket {as_list([*packages])}'
        if many_switches:
            where = f'switch {behind}, {where}'
        # Two rows of a socket need names of their own.
        names.append(where if where not in names else f'{where} ({number})')
        moves = [rank_of[seat] != seat for seat in seats]
        values.append([*map(float, moves), *[None] * len(gap)])
        pairs = [*zip(seats, moves, strict=True)]
        labels.append([f'{s} > {rank_of[s]}' if moved else str(s) for s, moved in pairs] + gap)
        texts.append([f'{where}, rank {s} now, rank {rank_of[s]} planned' for s, _ in pairs] + gap)
    return Grid(
        title=f'Where ranks should sit: {title}',
        across=Axis('seat in the row [1]'),
        upwards=Axis('sockets'),
        columns=[str(place + 1) for place in range(max(map(len, values)))],
        rows=names,
        measure=Axis('other ranks that are planned there [1]'),
        colours='seats',
        ends=(0, 2),
        panels=[Panel('', values)],
        headings=['rank', 'node now', 'node planned'],
        cells=[
            [
                str(one.rank),
                *(plain(report.processes[n].host, WIDTH) for n in (one.rank, one.seat_of)),
            ]
            for one in plan.ranks
            if one.rank != one.seat_of
        ][:MOST_DOTS],
        notes=notes,
        labels=labels,
        texts=texts,
    )


def _of(host: PlacedHost) -> Iterator[tuple[PlacedHost, int, list[int]]]:
    """The rows of a host: its domains, with some of their cores each."""
    for domain, cores in sorted(host.domains.items()):
        in_order = sorted(cores)
        for start in range(0, len(in_order), WIDE):
            yield host, domain, in_order[start : start + WIDE]
