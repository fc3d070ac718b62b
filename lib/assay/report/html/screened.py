"""The newest screening of each partition of a run: what it found, its nodes, and its pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

import numpy as np

from assay.report.html.chart import Axis, Grid, Mark, Panel
from assay.report.screening import (
    evidence_lines,
    headline,
    nodes_not_measured,
    nodes_without_peers,
    noise_lines,
    screening_conclusion,
    screening_subject,
)
from assay.results.cases import Run
from assay.results.rows import number
from assay.results.statistics.series import Floats
from assay.screening.findings import MOST_EARLIER, Kind
from assay.screening.kept import earlier_screenings, newest
from assay.screening.links import of_usual
from assay.screening.measured import Screening
from assay.screening.nodes import off_peers
from assay.screening.verdict import ScreeningVerdict, judge_screening
from assay.text import many, plain

#: Partitions of a page, findings of one, nodes of a map, rows and columns of a matrix, and pairs of
#: a table: of what is more the rest is counted.
MOST, MOST_TOLD, MOST_NODES, MOST_ROWS, MOST_PAIRS = 2, 40, 1024, 64, 200
#: Nodes whose names have room in their cells, and characters of a name.
MOST_NAMED, WIDTH = 64, 40
#: From the median of the peers, in percent, and as a multiple of it: what is further has the same
#: colour, so that one broken node leaves the others theirs.
FURTHEST, TIMES = 20.0, 2.0

#: What a node or a pair was found to be, by the kind of the finding: the worst stands first.
FOUND: Mapping[Kind, str] = {
    'node': 'bad',
    'pair': 'bad pair',
    'group': 'of a bad group',
    'either': 'perhaps bad',
    'different': 'different',
    'suspect': 'suspect',
    'disturbed': 'disturbed',
}
_KINDS = {0: 'good', 1: 'bad', 3: 'odd'}


@dataclass(frozen=True)
class ScreeningSection:
    """A screening on the page.

    :param kind: of its verdict: ``good``, ``bad`` or ``odd``.
    :param conclusion: that verdict.
    :param about: when, of what, and how much was measured.
    :param told: each finding in words, with what shows it.
    :param more: how many further findings there are.
    """

    kind: str
    conclusion: str
    about: str
    told: Sequence[tuple[str, Sequence[str]]]
    more: int
    notes: Sequence[str]
    charts: Sequence[Grid]


def screenings_of(run: Run) -> list[ScreeningSection]:
    """The newest screening at or before a run, of each of its partitions that has one."""
    partitions = dict.fromkeys(f'{case.system}:{case.partition}' for case in run.own_cases)
    found: list[ScreeningSection] = []
    for place, partition in enumerate(partitions):
        if len(found) == MOST:
            note = (
                f'Not looked for: screenings of {many(len(partitions) - place, "more partition")}.'
            )
            found[-1] = replace(found[-1], notes=[*found[-1].notes, note])
            break
        if kept := newest(partition, run.ended):
            path, now = kept
            verdict = judge_screening(now, [*earlier_screenings(path, now, MOST_EARLIER).values()])
            found.append(screening_section(now, verdict, run.begun))
    return found


def screening_section(
    now: Screening, verdict: ScreeningVerdict, run_begun: datetime
) -> ScreeningSection:
    """One screening.

    :param run_begun: when the run began that it is shown with.
    """
    when = f'{now.begun.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC'
    told = [(plain(headline(one)), [*map(plain, evidence_lines(one))]) for one in verdict.findings]
    found = _found(verdict)
    return ScreeningSection(
        _KINDS[verdict.exit_code],
        plain(screening_conclusion(now, verdict)),
        plain(screening_subject(now, verdict, f'{when} ({_ago(now.begun, run_begun)})')),
        told[:MOST_TOLD],
        len(told[MOST_TOLD:]),
        [
            *([plain(nodes_without_peers(verdict))] if verdict.without_peers else []),
            *map(plain, (*nodes_not_measured(now), *noise_lines(verdict))),
        ],
        [*_nodes(now, found), *_pairs(now, verdict, found)],
    )


def _ago(begun: datetime, run_begun: datetime) -> str:
    hours = (run_begun - begun).total_seconds() / 3600
    if hours < 0:
        return 'during this run'
    return (
        f'{hours:.1f} hours before this run' if hours < 48 else f'{hours / 24:.0f} days before it'
    )


def _found(verdict: ScreeningVerdict) -> dict[str, str]:
    """The worst that was found of each node, in a word; a bad pair makes no node bad."""
    found: dict[str, str] = {}
    for kind, word in FOUND.items():
        for one in verdict.findings:
            if one.kind == kind != 'pair':
                for name in one.members:
                    found.setdefault(name, word)
    return found


def nodes_in_order(now: Screening) -> list[int]:
    """Numbers of the nodes by switch, where the scheduler knows, and by name: n2 before n10."""
    switch = {name: switch for switch, names in now.switches.items() for name in names}

    def place(at: int) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
        name = now.nodes[at]
        return _natural(switch.get(name, '')), _natural(name)

    return sorted(range(len(now.nodes)), key=place)


def _natural(name: str) -> list[tuple[str, int]]:
    return [(word, int(digits or 0)) for word, digits in re.findall(r'(\D*)(\d{0,9})', name)]


def _name(now: Screening, at: int) -> str:
    return plain(now.nodes[at], WIDTH)


# Nodes --------------------------------------------------------------------------------------------


def _nodes(now: Screening, found: Mapping[str, str]) -> Iterator[Grid]:
    """A map of the nodes for each figure; none where no node has peers."""
    off = {figure: 100 * values for figure, values in off_peers(now).items()}
    far = np.abs([*off.values()])
    if np.isnan(far).all():
        return
    far = np.nan_to_num(far)
    order, notes = nodes_in_order(now), ['Rows go by switch and name.']
    if len(order) > MOST_NODES:
        place_of = {at: place for place, at in enumerate(order)}
        furthest = far.max(axis=0)
        order.sort(key=lambda at: (now.nodes[at] not in found, -furthest[at]))
        order = sorted(order[:MOST_NODES], key=place_of.__getitem__)
        notes.append(
            f'These are {MOST_NODES} of {len(now.nodes)} nodes: those that were found, and those '
            'that are furthest from their peers.'
        )
    end = float(np.clip(far[:, order].max(), 5, FURTHEST))
    if far.max() > end:
        notes.append(f'What is more than {end:.0f}% off has the same colour.')
    width = min(len(order), 8 if len(order) <= 16 else 16 if len(order) <= 128 else 32)
    names = [_name(now, at) for at in order]
    texts = [names[start : start + width] for start in range(0, len(names), width)]
    yield Grid(
        title=f'Nodes: each figure against the median of the peers, {plain(now.system)}',
        across=Axis('place in the row [1]'),
        upwards=Axis('first node'),
        columns=[str(place + 1) for place in range(width)],
        rows=[row[0] for row in texts],
        measure=Axis('from the median of the peers [%]'),
        colours='low',
        ends=(-end, end),
        panels=[Panel(plain(name), _in_rows(one[order], width)) for name, one in off.items()],
        headings=['node', 'found', *(f'{plain(figure)} [%]' for figure in off)],
        cells=[
            [name, found.get(now.nodes[at], '-'), *(_percent(one[at]) for one in off.values())]
            for name, at in zip(names, order, strict=True)
        ],
        marks=_marks(
            (found[now.nodes[at]], divmod(place, width))
            for place, at in enumerate(order)
            if now.nodes[at] in found
        ),
        notes=notes,
        labels=texts if len(order) <= MOST_NAMED else (),
        texts=texts,
    )


def _in_rows(values: Floats, width: int) -> list[list[float | None]]:
    cells = [None if value != value else round(float(value), 1) for value in values]
    cells += [None] * (-len(cells) % width)
    return [cells[start : start + width] for start in range(0, len(cells), width)]


def _percent(value: float) -> str:
    return '-' if value != value else f'{value:+.1f}'


def _marks(found: Iterator[tuple[str, tuple[int, int]]]) -> list[Mark]:
    cells: dict[str, list[tuple[int, int]]] = {}
    for word, cell in found:
        cells.setdefault(word, []).append(cell)
    words = [*FOUND.values()]
    return [Mark(word, cells[word], words.index(word)) for word in words if word in cells]


# Pairs --------------------------------------------------------------------------------------------


def _pairs(now: Screening, verdict: ScreeningVerdict, found: Mapping[str, str]) -> Iterator[Grid]:
    """A matrix of latencies, and one of bandwidths; of many nodes with several to a row."""
    usual = of_usual(now)
    bad = {frozenset(one.members) for one in verdict.findings if one.kind == 'pair'}
    order = nodes_in_order(now)
    block = -(-len(order) // MOST_ROWS)
    row_of = {at: place // block for place, at in enumerate(order)}
    rows = [_name(now, at) for at in order[::block]]
    ends = [(int(a), int(b)) for a, b in now.links.ends]
    measured = {'latency': now.links.latency * 1e6, 'bandwidth': now.links.bandwidth / 1e6}
    for figure, unit in (('latency', 'µs'), ('bandwidth', 'MB/s')):
        if figure not in usual:
            continue
        times, is_high = usual[figure], figure == 'latency'
        values: list[list[float | None]] = [[None] * len(rows) for _ in rows]
        for (a, b), value in zip(ends, times.tolist(), strict=True):
            for row, column in ((row_of[a], row_of[b]), (row_of[b], row_of[a])):
                old = values[row][column]
                worst = value if old is None else (max if is_high else min)(old, value)
                values[row][column] = float(f'{worst:.3g}')
        worst_first = np.argsort(-times if is_high else times, kind='stable')[:MOST_PAIRS]
        medians = np.median(measured[figure], axis=1)
        notes = [
            f'What is beyond {TIMES:g} times the median, or 1/{TIMES:g} of it, has the same colour.'
        ]
        if block > 1:
            notes.append(
                f'A cell is the worst of the pairs between {block} nodes and {block} others.'
            )
        if any(cell is None for at, row in enumerate(values) for cell in row[:at]):
            notes.append('Where there is no colour no pair was measured.')
        if len(ends) > len(worst_first):
            notes.append(f'The table has the {len(worst_first)} worst of {len(ends)} pairs.')
        yield Grid(
            title=f'Pairs: {figure} against the median, {plain(now.system)}',
            across=Axis(first := 'node' if block == 1 else f'first of {block} nodes'),
            upwards=Axis(first),
            columns=rows,
            rows=rows,
            measure=Axis(f'{figure}, of the median of all pairs [1]', is_logarithmic=True),
            colours='high' if is_high else 'low',
            ends=(1 / TIMES, TIMES),
            panels=[Panel('', values)],
            headings=['node', 'other node', f'{figure} [{unit}]', 'of the median [1]', 'found'],
            cells=[
                [
                    *(_name(now, end) for end in ends[at]),
                    number(float(medians[at])),
                    number(float(times[at])),
                    _of_pair(now, ends[at], bad, found),
                ]
                for at in worst_first
            ],
            marks=_marks(
                ('bad pair', cell)
                for a, b in ends
                if {now.nodes[a], now.nodes[b]} in bad
                for cell in ((row_of[a], row_of[b]), (row_of[b], row_of[a]))
            ),
            notes=notes,
        )


def _of_pair(
    now: Screening, ends: tuple[int, int], bad: set[frozenset[str]], found: Mapping[str, str]
) -> str:
    if {now.nodes[end] for end in ends} in bad:
        return FOUND['pair']
    told = ((_name(now, end), found.get(now.nodes[end])) for end in ends)
    return ', '.join(f'{name}: {word}' for name, word in told if word) or '-'
