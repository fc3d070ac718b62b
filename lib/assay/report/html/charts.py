"""Charts of figures: how near the machine's limits, how well it scales, where the time went."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from assay.report.html.chart import Axis, Chart, ChartSeries
from assay.results.cases import Case
from assay.results.rows import Row, is_number, rows_of
from assay.text import plain

#: Bars of one chart: with more, nobody finds one.
MOST = 40

#: How figures are named that are a fraction or a multiple of what the machine itself can do.
OF_LIMIT, OVER_LIMIT = '_of_limit', '_over_limit'

REACHED = Axis('of what the machine itself can do [%]')
SHARE = Axis('mean of the ranks, of their wall time [%]')


def reached(figure: str, value: float | None) -> float | None:
    """What part of the machine's limit a figure says was reached; None if it says nothing of it.

    A time that is a multiple of the least possible one is that part of it turned round.
    """
    if not is_number(value):
        return None
    part = None
    if figure.endswith(OF_LIMIT):
        part = value
    elif figure.endswith(OVER_LIMIT) and value > 0:
        part = 1 / value
    return part if part is not None and is_number(100 * part) else None


def figure_charts(cases: Sequence[Case]) -> list[Chart]:
    """All of them that the figures of these cases give."""
    found = [*_limits(cases), *_scaling(cases), _time(cases)]
    return [chart for chart in found if chart.series]


def _limits(cases: Sequence[Case]) -> Iterator[Chart]:
    """The figures furthest from the limits, with the least that their references allow."""
    rows = [
        (part, row)
        for case in cases
        if case.result != 'skip'
        for row in rows_of(case)
        if (part := reached(row.figure, row.value)) is not None
    ]
    furthest: dict[str, float] = {}
    for part, row in rows:
        furthest[_what(row)] = min(part, furthest.get(_what(row), part))
    kept = sorted(furthest, key=lambda name: furthest[name])[:MOST]
    environments = sorted({row.environment for _, row in rows})
    series = []
    for number, environment in enumerate(environments):
        of_it = {_what(row): part for part, row in rows if row.environment == environment}
        names = [name for name in kept if name in of_it]
        values = [100 * of_it[name] for name in names]
        series.append(ChartSeries(plain(environment), names, values, colour=number, style=number))
    least = {_what(row): bound for _, row in rows if (bound := _least(row)) is not None}
    names = [name for name in kept if name in least]
    if names:
        bounds = [100 * least[name] for name in names]
        series.append(ChartSeries('the least that passes', names, bounds, form='marks'))
    notes = [
        'A latency that is a multiple of the limit is shown as the part of it that it reaches.'
    ]
    if len(furthest) > len(kept):
        notes.append(
            f'These are the {len(kept)} of {len(furthest)} that are furthest from their limits.'
        )
    title = 'How near to the limits of the machine'
    yield Chart(title, 'bars', REACHED, Axis('figure'), tuple(series), tuple(notes), tuple(kept))


def _what(row: Row) -> str:
    stem = row.figure.removesuffix(OF_LIMIT).removesuffix(OVER_LIMIT)
    where = [one for one in (row.fabric, row.layout) if one != '-']
    return plain(f'{stem}, {row.check} {" ".join(where)}')


def _least(row: Row) -> float | None:
    bound = row.upper if row.figure.endswith(OVER_LIMIT) else row.lower
    return reached(row.figure, bound)


def _scaling(cases: Sequence[Case]) -> Iterator[Chart]:
    """Speed-up over ranks: measured, ideal, and the knee."""
    kinds: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        if case.sweep in ('strong', 'weak'):
            kinds.setdefault((case.check, case.sweep), []).append(case)
    for (check, sweep), some in kinds.items():
        series, ranks = list[ChartSeries](), set[float]()
        for number, case in enumerate(some):
            points, knee = _points(case)
            if len(points) < 2:
                continue
            ranks |= points.keys()
            places = sorted(points)
            words = (case.fabric, case.environment, case.size, case.scale)
            name = plain(' '.join(filter(None, words)))
            at = [points[one] for one in places]
            series.append(ChartSeries(name, places, at, colour=number, style=number))
            if knee in points:
                at = [points[knee]]
                series.append(ChartSeries(f'knee of {name}', [knee], at, number, number, 'marks'))
        if ranks:
            least = min(ranks)
            ideal = [one / least for one in sorted(ranks)]
            series.append(ChartSeries('ideal', sorted(ranks), ideal, 7, 1, 'faint'))
        yield Chart(
            f'{sweep.capitalize()} scaling: {check}',
            'lines',
            Axis('ranks', is_logarithmic=True),
            Axis('speed-up [1]', is_logarithmic=True),
            tuple(series),
            ('Up to the knee each step won at least half of the ranks that it added.',),
        )


def _points(case: Case) -> tuple[dict[float, float], float]:
    """Speed-up by ranks, from the first point on, and the ranks of the knee; 0 if there is none."""
    figures = {one.name: one.value for one in case.figures if is_number(one.value)}
    points: dict[float, float] = {}
    for name, value in figures.items():
        if match := re.fullmatch(r'speedup_(\d{1,9})', name):
            ranks = int(match[1])
            efficiency = figures.get(f'efficiency_{ranks}')
            points[ranks] = value
            # An efficiency is the speed-up over the growth of the ranks.
            if efficiency and value > 0 and is_number(first := efficiency * ranks / value):
                points[max(1, round(first))] = 1.0
    return points, figures.get('knee', 0.0)


def _time(cases: Sequence[Case]) -> Chart:
    """What the wall time of each job went into, as its witness saw it."""
    names, computation, transfer, waiting = list[str](), list[float](), list[float](), list[float]()
    for case in cases:
        figures = {one.name: one.value for one in case.figures}
        in_mpi, waits = figures.get('comm_share'), figures.get('imbalance_share')
        if not (
            is_number(in_mpi) and is_number(waits) and is_number(100 * (abs(in_mpi) + abs(waits)))
        ):
            continue
        waits = min(waits, in_mpi)
        where = (case.fabric, case.layout, case.environment)
        names.append(plain(' '.join([case.short_name, *filter(None, where)])))
        computation.append(100 * (1 - in_mpi))
        transfer.append(100 * (in_mpi - waits))
        waiting.append(100 * waits)
    parts = {'computation': computation, 'transfer': transfer, 'waiting for others': waiting}
    series = [
        ChartSeries(name, names[:MOST], values[:MOST], colour=number, style=number)
        for number, (name, values) in enumerate(parts.items())
        if values
    ]
    notes = ['What is in MPI and not known to be waiting is counted as transfer.']
    if len(names) > MOST:
        notes.append(f'These are the first {MOST} of {len(names)} jobs.')
    title = 'Where the time of jobs went'
    return Chart(title, 'stacked', SHARE, Axis('job'), tuple(series), tuple(notes))
