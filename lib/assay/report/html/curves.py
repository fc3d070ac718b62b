"""Time and bandwidth over the size of a message, from the reports that benchmarks left."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.report.html.chart import Axis, Chart, ChartSeries
from assay.results.cases import Case, left_in
from assay.running.runs import KEPT
from assay.spelling import many
from assay.text import plain

#: The programs that have a curve: what a time of it is, and which of its results belong to it.
PROGRAMS: dict[str, tuple[str, dict[str, str]]] = {
    'pt2pt': ('one way, by ping-pong between two ranks', {'pattern': 'ping-pong'}),
    'ring': ('of a hop round all ranks', {}),
    'onesided': ('of a put, by flush', {'op': 'put', 'sync': 'flush'}),
}

#: A benchmark's report, which may be anything, and bytes of it, of which no real one has so many.
RESULT, MOST_BYTES = 'result.json', 1 << 24

#: Charts of a page: nobody looks through more.
MOST = 48

SIZE = Axis('size of a message [B]', is_logarithmic=True)
TIME = Axis('time [µs]', is_logarithmic=True)
BANDWIDTH = Axis('bandwidth [MB/s]', is_logarithmic=True)


@dataclass(frozen=True)
class Curve:
    """What a job measured over sizes.

    :param sizes: shape (n,), in bytes, ascending.
    :param times: shape (n,), in microseconds.
    :param bandwidths: shape (n,), in MB/s; of size 0, 0.
    """

    program: str
    sizes: Sequence[int]
    times: Sequence[float]
    bandwidths: Sequence[float]


@dataclass(frozen=True)
class Overlay:
    """The cases of a run.

    :param name: empty of the run that is shown; of an earlier one what it is called.
    """

    name: str
    cases: Sequence[Case]


def read_curve(case: Case) -> Curve | None:
    """The curve of a case; None where its files are gone, or it has none."""
    where = left_in(case)
    report = _result(where) if where else None
    program = str(report.get('program')) if report else ''
    if not report or program not in PROGRAMS:
        return None
    try:
        points = _points(report['results'], PROGRAMS[program][1])
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
    if not points:
        return None
    sizes, times, bandwidths = zip(*points, strict=True)
    return Curve(program, sizes, times, bandwidths)


def _result(where: Path) -> dict[str, Any] | None:
    """The report of a benchmark; None where there is none, or it cannot be read."""
    try:
        path = where / RESULT
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        found = json.loads(path.read_bytes())
    except (OSError, RecursionError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _points(results: Iterable[Any], wanted: Mapping[str, str]) -> list[tuple[int, float, float]]:
    """:raises LookupError, TypeError, ValueError, AttributeError: if they are not as is written."""
    found: dict[int, tuple[int, float, float]] = {}
    for entry in results:
        if any(entry.get(name) != value for name, value in wanted.items()):
            continue
        # What bandwidths are of; reports of earlier versions have the median alone, of both.
        times = entry['time']
        size, time = int(entry['size']), float(times.get('best', times['median'])) * 1e6
        bandwidth = float(entry.get('bandwidth') or 0) / 1e6
        if size < 0 or not (math.isfinite(time) and math.isfinite(bandwidth)):
            raise ValueError('no size, or no number')
        found.setdefault(size, (size, time, bandwidth))
    return [found[size] for size in sorted(found)]


def curve_charts(runs: Sequence[Overlay]) -> list[Chart]:
    """For each program, partition, layout and scale the times, and the bandwidths.

    Fabrics have colours, environments lines and marks of their own.

    :param runs: the one that is shown first, then those to compare it with.
    """
    curves: dict[tuple[str, str, str, str], list[tuple[Overlay, Case, Curve]]] = {}
    for run in runs:
        for case in run.cases:
            if curve := read_curve(case):
                at = (case.partition, case.layout, case.scale)
                curves.setdefault((curve.program, *at), []).append((run, case, curve))
    drawn = [case for some in curves.values() for _, case, _ in some]
    fabrics = sorted({case.fabric for case in drawn})
    environments = sorted({case.environment for case in drawn})
    found = []
    for (program, *where), some in [*curves.items()][: MOST // 2]:
        what = PROGRAMS[program][0]
        place = plain(', '.join(filter(None, where)))
        for quantity, axis in (('Time', TIME), ('Bandwidth', BANDWIDTH)):
            series = [
                _series(*one, quantity, fabrics, environments)
                for one in sorted(some, key=lambda one: (bool(one[0].name), _name(*one[:2])))
            ]
            checks = ', '.join(dict.fromkeys(case.check for _, case, _ in some))
            title = f'{quantity} {what}: {checks}, {place}'
            found.append(Chart(title, 'lines', SIZE, axis, tuple(series)))
    if found and len(curves) > MOST // 2:
        words = f'These are the first {MOST} of {2 * len(curves)} charts of curves.'
        found[-1] = replace(found[-1], notes=(words,))
    return found


def _series(
    run: Overlay,
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
        form='faint' if run.name else 'line',
        group=f'run {run.name}' if run.name else '',
    )


def _name(run: Overlay, case: Case) -> str:
    words = [case.fabric, case.environment, f'({run.name})' if run.name else '']
    return plain(' '.join(filter(None, words)))


def gone(runs: Sequence[Overlay]) -> list[str]:
    """A sentence for each run whose files were removed."""
    found = []
    for run in runs:
        had = [case for case in run.cases if case.result != 'skip' and case.job.id]
        lost = [case for case in had if left_in(case) is None]
        if lost:
            whose = f'run {run.name}' if run.name else 'this run'
            found.append(
                f'The files of {many(len(lost), "job")} of {len(had)} of {whose} are not here any '
                f'more, so their curves and outputs are missing: only the newest {KEPT} runs of a '
                'checkout keep their files.'
            )
    return found
