"""Figures as rows: bounds, distances from them, and verdicts."""

import math

import pytest

from assay.results.cases import cases
from assay.results.rows import Row, allowed, bound, number, of_unit, rows


def row(value, reference, lower, upper):
    return Row('c', 'e', 'f', 'l', 'n', value, 'us', reference, lower, upper, 'pass')


def test_headlines_are_rows_that_nothing_holds(golden_report):
    report = golden_report('NoReference')
    assert not any(row.headline for row in rows(report))
    for case in cases(report):
        case['headlines'] = ['latency']
    assert [row.headline for row in rows(report)] == [True, True]


def test_rows_hold_figures_and_absolute_bounds(golden_report):
    first, second = rows(golden_report('Passed'))
    assert (first.check, first.environment, first.fabric) == ('Passed', 'gnu', 'shm')
    assert (second.fabric, second.layout, second.figure) == ('tcp', 'packed', 'latency')
    assert (first.value, first.unit, first.reference) == (42.5, 'us', 42)
    assert (first.lower, first.upper) == pytest.approx((37.8, 46.2))
    assert first.room == pytest.approx(3.7 / 42)
    assert first.verdict == 'pass'


@pytest.mark.parametrize(
    ('name', 'verdicts'),
    [
        ('FailedReference', ['fail', 'fail']),
        ('FailedSanity', ['fail', 'fail']),
        ('FailedBuild', ['fail', 'not run', 'not run']),
        ('NoFigures', ['no figure', 'no figure']),
        ('NoReference', ['no bound', 'no bound']),
        ('Skipped', []),
    ],
)
def test_verdicts_of_rows(golden_report, name, verdicts):
    assert [row.verdict for row in rows(golden_report(name))] == verdicts


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_what_is_no_number_is_no_pass(golden_report, value):
    report = golden_report('Passed')
    for case in cases(report):
        for values in (case['perfvalues'] or {}).values():
            values[0] = value
    assert [row.verdict for row in rows(report)] == ['fail', 'fail']


@pytest.mark.parametrize(
    ('args', 'room'),
    [
        ((80, 100, 50, None), 0.3),
        ((40, 100, 50, None), -0.1),
        ((115, 100, None, 110), -0.05),
        ((-12, -10, -11, -9), -0.1),
        ((5, 100, None, None), None),
        ((5, None, None, None), None),
        ((5, 0, -1, 6), None),
        ((math.nan, 100, 90, 110), None),
    ],
)
def test_room(args, room):
    assert row(*args).room == (room if room is None else pytest.approx(room))


@pytest.mark.parametrize(
    ('lower', 'upper', 'words'),
    [
        (None, None, ''),
        (0.05, None, 'at least 0.05000'),
        (None, 5.2, 'at most 5.200'),
        (72, 88, '72.00 to 88.00'),
        (10, 10, 'only 10.00'),
    ],
)
def test_bounds_in_words(lower, upper, words):
    assert allowed(lower, upper) == words


def test_the_unit_of_a_ratio_is_not_told():
    assert [of_unit('4.2', unit) for unit in ('us', '1', '')] == ['4.2 us', '4.2', '4.2']


@pytest.mark.parametrize(
    ('reference', 'threshold', 'absolute'),
    [(42, -0.1, 37.8), (-100, -0.1, -110), (0, 5, 5), (100, None, None)],
)
def test_bounds_are_reframes(reference, threshold, absolute):
    from reframe.utility.sanity import reference_bounds

    found = bound(reference, threshold)
    assert found == (absolute if absolute is None else pytest.approx(absolute))
    thresholds = (threshold, None) if (threshold or 0) < 0 else (None, threshold)
    if absolute is not None:
        assert found in reference_bounds(reference, *thresholds)


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        (None, '-'),
        (0, '0'),
        (42.5, '42.50'),
        (28221.3, '28221'),
        (0.02841, '0.02841'),
        (999.96, '1000.0'),
        (1.5e-9, '1.500e-09'),
        (math.nan, 'nan'),
        (-0.5, '-0.5000'),
    ],
)
def test_numbers_keep_four_digits(value, text):
    assert number(value) == text
