"""Each figure's values over runs, out of the table of figures."""

import math
from datetime import timedelta

import pytest

from assay.results.figure_series import learn_past, measured_figures
from tables import FIRST, RING, figures


def test_values_are_in_order_of_time_and_repeats_are_one_session():
    early = {'value': 1.0, 'begun': FIRST - timedelta(days=1)}
    table = figures({'value': 2.0}, {'value': 3.0, 'run': 'run0'}, early)
    one = measured_figures(table)[RING]
    assert (one.check, one.better, one.kind) == ('Ring', 'lower', ('Ring', 'latency'))
    assert one.values.to_list() == [1, 2, 3]
    assert one.runs.to_list() == ['run2', 'run0', 'run0']
    assert one.series.size == 2


@pytest.mark.parametrize('value', [math.nan, math.inf, -1.0, None])
def test_what_is_no_value_is_counted_and_left_out(value):
    one = measured_figures(figures({'value': value}, {'value': 2.0}))[RING]
    assert (one.values.to_list(), one.unusable, one.disturbed) == ([2], 1, 0)


def test_a_disturbed_value_is_counted_and_left_out():
    one = measured_figures(figures({'value': 1.0, 'disturbances': 'others took 30% of CPU 1'}))[
        RING
    ]
    assert (one.series, one.unusable, one.disturbed) == (None, 0, 1)


def test_a_direction_is_the_last_that_was_stored():
    rows = [{'value': 1.0, 'better': better} for better in (None, 'higher', 'lower', None)]
    assert measured_figures(figures(*rows))[RING].better == 'lower'


def test_another_unit_is_another_figure_and_a_case_without_one_is_none():
    found = measured_figures(figures({'value': 1.0}, {'value': 1.0, 'unit': 'ms'}, {'figure': '-'}))
    assert [figure.unit for figure in found] == ['ms', 'us']


def test_nothing_is_measured():
    assert measured_figures(figures()) == {}
    assert learn_past([]).kinds == {}


def test_a_past_begins_after_the_last_step_and_is_of_the_newest_sessions():
    values = [place + day % 3 for place in (100.0, 200.0) for day in range(20)]
    one = measured_figures(figures(*({'value': value} for value in values)))[RING]
    assert learn_past([one]).unchanged[RING].values.min() == 200
