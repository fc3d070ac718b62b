"""Charts of a run: curves over sizes, how near the limits it is, how it scales, where time went.

Curves need the reports of benchmarks, which are in the folders of runs: only the newest stay.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay import AssayError
from assay.files import read_bounded
from assay.report.html.chart import Axis, Chart, ChartSeries
from assay.results.cases import Case, folder_left
from assay.results.rows import Row, is_number, rows_of
from assay.running.runs import KEPT
from assay.text import many, plain

# Time and bandwidth over the size of a message ----------------------------------------------------


#: The programs that have a curve: what a time of it is, and which of its results belong to it.
PROGRAMS: dict[str, tuple[str, dict[str, str]]] = {
    'pt2pt': ('one way, by ping-pong between two ranks', {'pattern': 'ping-pong'}),
    'ring': ('of a hop round all ranks', {}),
    'onesided': ('of a put, by flush', {'op': 'put', 'sync': 'flush'}),
}

#: A benchmark's report, which may be anything, and more bytes than any real one has.
RESULT, MOST_BYTES = 'result.json', 1 << 24

#: Charts of a page: nobody looks through more.
MOST_CURVES = 48

SIZE = Axis('size of a message [B]', is_logarithmic=True)
TIME = Axis('time [µs]', is_logarithmic=True)
BANDWIDTH = Axis('bandwidth [MB/s]', is_logarithmic=True)


@dataclass(frozen=True)
class Curve:
    """The times and bandwidths that a job measured, by message size.

    :param sizes: shape (n,), in bytes, ascending.
    :param times: shape (n,), in microseconds.
    :param bandwidths: shape (n,), in MB/s; of size 0, 0.
    """

    program: str
    sizes: Sequence[int]
    times: Sequence[float]
    bandwidths: Sequence[float]


#: The cases of runs by what these are called: of the one that is shown, nothing.
Overlays = Mapping[str, Sequence[Case]]


def read_curve(case: Case) -> Curve | None:
    """The curve of a case; None where its files are gone, or it has none."""
    where = folder_left(case)
    report = _result(where) if where else None
    program = str(report.get('program')) if report else ''
    if not report or program not in PROGRAMS:
        return None
    try:
        points = _points_of_curve(report['results'], PROGRAMS[program][1])
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
    if not points:
        return None
    sizes, times, bandwidths = zip(*points, strict=True)
    return Curve(program, sizes, times, bandwidths)


def _result(where: Path) -> dict[str, Any] | None:
    """The report of a benchmark; None where there is none, or it cannot be read."""
    try:
        found = json.loads(read_bounded(where / RESULT, MOST_BYTES))
    except (AssayError, RecursionError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _points_of_curve(
    results: Iterable[Any], wanted: Mapping[str, str]
) -> list[tuple[int, float, float]]:
    """:raises LookupError, TypeError, ValueError, AttributeError: if they are not as is written."""
    found: dict[int, tuple[int, float, float]] = {}
    for entry in results:
        if any(entry.get(name) != value for name, value in wanted.items()):
            continue
        size, time = int(entry['size']), float(entry['time']['best']) * 1e6
        bandwidth = float(entry.get('bandwidth') or 0) / 1e6
        if size < 0 or not (math.isfinite(time) and math.isfinite(bandwidth)):
            raise ValueError('no size, or no number')
        found.setdefault(size, (size, time, bandwidth))
    return [found[size] for size in sorted(found)]


def curve_charts(runs: Overlays) -> list[Chart]:
    """For each program, partition, layout and scale the times, and the bandwidths.

    Fabrics have colours, environments lines and marks of their own.

    :param runs: the one that is shown first, then those to compare it with.
    """
    curves: dict[tuple[str, str, str, str], list[tuple[str, Case, Curve]]] = {}
    for run, cases in runs.items():
        for case in cases:
            if curve := read_curve(case):
                at = (case.partition, case.layout, case.scale)
                curves.setdefault((curve.program, *at), []).append((run, case, curve))
    drawn = [case for some in curves.values() for _, case, _ in some]
    fabrics = sorted({case.fabric for case in drawn})
    environments = sorted({case.environment for case in drawn})
    found = []
    for (program, *where), some in [*curves.items()][: MOST_CURVES // 2]:
        what = PROGRAMS[program][0]
        place = plain(', '.join(filter(None, where)))
        for quantity, axis in (('Time', TIME), ('Bandwidth', BANDWIDTH)):
            series = [
                _series(*one, quantity, fabrics, environments)
                for one in sorted(some, key=lambda one: (bool(one[0]), _name(*one[:2])))
            ]
            checks = ', '.join(dict.fromkeys(case.check for _, case, _ in some))
            title = f'{quantity} {what}: {checks}, {place}'
            found.append(Chart(title, 'lines', SIZE, axis, tuple(series)))
    if found and len(curves) > MOST_CURVES // 2:
        words = f'These are the first {MOST_CURVES} of {2 * len(curves)} charts of curves.'
        found[-1] = replace(found[-1], notes=(words,))
    return found


def _series(
    run: str,
    case: Case,
    curve: Curve,
    quantity: str,
    fabrics: Sequence[str],
    environments: Sequence[str],
) -> ChartSeries:
    # An empty message has neither a place on a logarithmic axis nor a bandwidth.
    places = [number for number, size in enumerate(curve.sizes) if size]
    values = curve.times if quantity == 'Time' else curve.bandwidths
    return ChartSeries(
        _name(run, case),
        [float(curve.sizes[number]) for number in places],
        [values[number] for number in places],
        colour=fabrics.index(case.fabric),
        style=environments.index(case.environment),
        form='faint' if run else 'line',
        group=f'run {run}' if run else '',
    )


def _name(run: str, case: Case) -> str:
    words = [case.fabric, case.environment, f'({run})' if run else '']
    return plain(' '.join(filter(None, words)))


def removal_notes(runs: Overlays) -> list[str]:
    """A sentence for each run whose files were removed."""
    found = []
    for run, cases in runs.items():
        had = [case for case in cases if case.result != 'skip' and case.job.id]
        lost = [case for case in had if folder_left(case) is None]
        if lost:
            whose = f'run {run}' if run else 'this run'
            found.append(
                f'The files of {many(len(lost), "job")} of {len(had)} of {whose} are not here any '
                f'more, so their curves and outputs are missing: only the newest {KEPT} runs of a '
                'checkout keep their files.'
            )
    return found


# Figures: limits, scaling, and where the time went ------------------------------------------------


#: Bars of one chart: with more, nobody finds one.
MOST = 40

#: How figures are named that are a fraction or a multiple of what the machine itself can do.
OF_LIMIT, OVER_LIMIT = '_of_limit', '_over_limit'

REACHED = Axis('of what the machine itself can do [%]')
SHARE = Axis('mean of the ranks, of their wall time [%]')


def fraction_of_limit(figure: str, value: float | None) -> float | None:
    """The part of the machine's limit that a figure reached; None if it is about something else.

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
        if (part := fraction_of_limit(row.figure.name, row.figure.value)) is not None
    ]
    furthest: dict[str, float] = {}
    for part, row in rows:
        furthest[_what(row)] = min(part, furthest.get(_what(row), part))
    kept = sorted(furthest, key=lambda name: furthest[name])[:MOST]
    environments = sorted({row.case.environment for _, row in rows})
    series = []
    for number, environment in enumerate(environments):
        of_it = {_what(row): part for part, row in rows if row.case.environment == environment}
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
    stem = row.figure.name.removesuffix(OF_LIMIT).removesuffix(OVER_LIMIT)
    where = filter(None, (row.case.fabric, row.case.layout))
    return plain(f'{stem}, {row.case.short_name} {" ".join(where)}')


def _least(row: Row) -> float | None:
    one = row.figure
    bound = one.upper if one.name.endswith(OVER_LIMIT) else one.lower
    return fraction_of_limit(one.name, bound)


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
    """The shares of each job's wall time, as its witness saw them."""
    names = list[str]()
    parts: dict[str, list[float]] = {'computation': [], 'transfer': [], 'waiting for others': []}
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
        for values, share in zip(parts.values(), (1 - in_mpi, in_mpi - waits, waits), strict=True):
            values.append(100 * share)
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
