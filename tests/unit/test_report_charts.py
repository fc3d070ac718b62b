"""What the charts of a run's page show: curves, limits, scaling, and where the time went."""

import json

import pytest

from assay.report.html import charts
from assay.report.html.chart import Axis, Chart, ChartSeries
from assay.results.reframe_report import case_of
from pages import filled, left
from reports import cases


@pytest.fixture
def measured(golden_report, tmp_path):
    """The cases of a run whose jobs left their files."""
    return lambda count=4: cases(filled(golden_report, count, tmp_path / 'output'))


def overlays(shown, earlier=()):
    """The cases of a run, and those of an earlier one."""
    found = {'': shown} | ({'5d38a3d3': earlier} if earlier else {})
    return {name: [*map(case_of, some)] for name, some in found.items()}


def drawn(some):
    return charts.figure_charts([*map(case_of, some)])


def only(found, title):
    (chart,) = [one for one in found if one.title.startswith(title)]
    return chart


# Curves -------------------------------------------------------------------------------------------


def test_times_and_bandwidths_of_each_fabric_and_mpi(measured):
    time, bandwidth = charts.curve_charts(overlays(measured()))
    assert time.title.startswith('Time one way') and bandwidth.title.startswith('Bandwidth')
    assert 'PointToPoint, node, packed, 1_node' in time.title
    assert [one.name for one in time.series] == [
        'shm mpich',
        'shm openmpi',
        'tcp mpich',
        'ucx-shm openmpi',
    ]
    assert time.across.title == 'size of a message [B]'
    assert (time.upwards.title, bandwidth.upwards.title) == (
        'time [µs]',
        'bandwidth [MB/s]',
    )
    sizes = [float(1 << power) for power in range(23)]  # and not that of 0 bytes
    for one in time.series:
        assert one.at == sizes
        assert one.values == pytest.approx([(size + 500) * 1e-3 for size in sizes])
    values = bandwidth.series[0].values
    assert values == pytest.approx([size / (size + 500) * 1e3 for size in sizes])
    # One colour a fabric, one line an MPI.
    looks = {one.name: (one.colour, one.style) for one in time.series}
    assert looks['shm mpich'][0] == looks['shm openmpi'][0] != looks['tcp mpich'][0]
    assert looks['shm mpich'][1] == looks['tcp mpich'][1] != looks['shm openmpi'][1]


def test_earlier_runs_are_laid_over(measured):
    time, _ = charts.curve_charts(overlays(measured(1), measured(2)))
    assert [(one.name, one.form, one.group) for one in time.series] == [
        ('shm openmpi', 'line', ''),
        ('shm openmpi (5d38a3d3)', 'faint', 'run 5d38a3d3'),
        ('tcp mpich (5d38a3d3)', 'faint', 'run 5d38a3d3'),
    ]


def test_layouts_have_charts_of_their_own_and_not_without_end(measured):
    assert len(charts.curve_charts(overlays(measured(12)))) == 4
    found = charts.curve_charts(overlays(measured(6 * 30)))
    assert len(found) == charts.MOST_CURVES
    assert found[-1].notes == ('These are the first 48 of 60 charts of curves.',)


def test_a_curve_is_of_the_best_windows():
    entry = {'size': 8, 'bandwidth': 4e6, 'time': {'best': 2e-6, 'median': 3e-6}}
    assert charts._points_of_curve([entry], {}) == [(8, 2.0, 4.0)]


def test_files_that_are_gone_are_told(measured, tmp_path):
    runs = overlays(measured(2), measured(3))
    assert charts.removal_notes(runs) == []
    (tmp_path / 'output').rename(tmp_path / 'elsewhere')
    assert charts.curve_charts(runs) == []
    here, there = charts.removal_notes(runs)
    assert here.startswith('The files of 2 jobs of 2 of this run are not here any more')
    assert there.startswith('The files of 3 jobs of 3 of run 5d38a3d3 are not here any more')


@pytest.mark.parametrize(
    'changed',
    [
        {'program': 'other'},
        {'program': ['pt2pt']},
        {'results': None},
        {'results': []},
        {'results': [None]},
        {'results': [{'pattern': 'ping-pong'}]},
        {'results': [{'pattern': 'ping-pong', 'size': 8, 'time': {'best': 'x'}}]},
        {'results': [{'pattern': 'ping-pong', 'size': 8, 'time': {'best': float('nan')}}]},
        {'results': [{'pattern': 'ping-pong', 'size': -8, 'time': {'best': 1}}]},
        {'results': [{'pattern': 'ping-pong', 'size': 8, 'time': {'best': 1}, 'bandwidth': 'x'}]},
    ],
)
def test_a_report_that_is_none_has_no_curve(measured, tmp_path, changed):
    (case,) = measured(1)
    assert charts.read_curve(case_of(case))
    left(tmp_path / 'output', **changed)
    assert charts.read_curve(case_of(case)) is None


@pytest.mark.parametrize('content', ['', '[' * 100_000, '[]', 'null', '{"program"'])
def test_what_is_no_json_has_no_curve(measured, tmp_path, content):
    (case,) = measured(1)
    (tmp_path / 'output' / 'result.json').write_text(content)
    assert charts.read_curve(case_of(case)) is None
    (tmp_path / 'output' / 'result.json').unlink()
    assert charts.read_curve(case_of(case)) is None


# Figures ------------------------------------------------------------------------------------------


def figures(case, **values):
    """Give a case these figures, which nothing holds."""
    case['perfvalues'] = {
        f'toy:node:{name}': [value, 0, None, None, '1', 'pass'] for name, value in values.items()
    }


def test_how_near_to_the_limits(measured):
    chart = only(drawn(measured(2)), 'How near')
    mpich, openmpi, least = chart.series
    assert (mpich.name, openmpi.name, least.name) == ('mpich', 'openmpi', 'the least that passes')
    names = [
        'bandwidth, PointToPoint 1_node tcp packed',
        'latency, PointToPoint 1_node tcp packed',
    ]
    assert mpich.at == names
    assert mpich.values == pytest.approx([70, 100 / 1.4])
    # At most 2.3 times the least latency, and at least half of the bandwidth.
    assert dict(zip(least.at, least.values, strict=True))[names[0]] == pytest.approx(50)
    assert dict(zip(least.at, least.values, strict=True))[names[1]] == pytest.approx(100 / 2.3)
    assert chart.places[0].startswith('bandwidth') and chart.places[-1].startswith('latency')


@pytest.mark.parametrize('value', [0.0, -1.0, None, float('nan'), float('inf')])
def test_what_is_no_multiple_of_a_limit_reached_nothing(value):
    assert charts.fraction_of_limit('latency_over_limit', value) is None


def test_the_furthest_from_the_limits_are_told(measured):
    some = measured(120)
    for number, case in enumerate(some):
        figures(case, bandwidth_of_limit=1 - number / 1000)
    chart = only(drawn(some), 'How near')
    assert len(chart.places) == charts.MOST
    assert min(min(one.values) for one in chart.series) == pytest.approx(100 * (1 - 0.119))
    assert 'These are the 40 of 60 that are furthest from their limits.' in chart.notes


def test_scaling_has_its_ideal_and_its_knee(measured):
    (case,) = measured(1)
    case |= {'sweep': 'strong', 'size': 'cache'}
    figures(
        case,
        speedup_4=1.8,
        efficiency_4=0.9,
        speedup_8=2.2,
        efficiency_8=0.55,
        efficiency=0.55,
        knee=4.0,
    )
    chart = only(drawn([case]), 'Strong scaling: PointToPoint')
    series = {one.name: (one.at, one.values) for one in chart.series}
    # The first point had 2 ranks.
    assert series == {
        'shm openmpi cache 1_node': ([2, 4, 8], [1.0, 1.8, 2.2]),
        'knee of shm openmpi cache 1_node': ([4.0], [1.8]),
        'ideal': ([2, 4, 8], [1.0, 2.0, 4.0]),
    }
    figures(case, knee=4.0)
    assert not [one for one in drawn([case]) if one.title.startswith('Strong')]


def test_where_the_time_went(measured):
    some = measured(3)
    figures(some[1], comm_share=0.25, imbalance_share=0.5)  # estimates: waiting is within MPI
    figures(some[2], comm_share=0.25)
    chart = only(drawn(some), 'Where the time')
    parts = {one.name: one.values for one in chart.series}
    assert parts['computation'] == pytest.approx([60, 75])
    assert parts['transfer'] == pytest.approx([30, 0])
    assert parts['waiting for others'] == pytest.approx([10, 25])
    assert chart.places == [
        'PointToPoint 1_node shm packed openmpi',
        'PointToPoint 1_node tcp packed mpich',
    ]


def test_failed_and_skipped_cases_do_not_disturb_the_others(measured):
    some = measured(4)
    some[0] |= {'result': 'fail', 'perfvalues': None, 'fail_phase': 'sanity'}
    some[1] |= {'result': 'skip', 'perfvalues': None}
    assert len(only(drawn(some), 'Where the time').places) == 2


# Tables -------------------------------------------------------------------------------------------


def test_each_chart_is_a_table_too(measured):
    lines = Chart(
        'title',
        'lines',
        Axis('size [B]'),
        Axis('time [s]'),
        (ChartSeries('a', [1.0, 4.0], [0.5, 2.0]), ChartSeries('b', [2.0, 4.0], [3.0, 10.0])),
    )
    assert lines.headings == ['size [B]', 'a', 'b']
    assert lines.cells == [
        ['1', '0.5000', '-'],
        ['2', '-', '3.000'],
        ['4', '2.000', '10.00'],
    ]
    bars = Chart('title', 'bars', Axis('%'), Axis('job'), (ChartSeries('a', ['x', 'y'], [1, 2]),))
    assert bars.headings == ['job', 'a']
    assert bars.cells == [['x', '1.000'], ['y', '2.000']]
    for chart in [*charts.curve_charts(overlays(measured(3))), *drawn(measured(3))]:
        assert len(chart.cells) == len(chart.places)
        assert all(len(row) == len(chart.headings) for row in chart.cells)
        json.dumps(chart.cells, allow_nan=False)
