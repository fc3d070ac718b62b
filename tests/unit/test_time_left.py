"""How long a run will go on."""

import math

import pytest

from assay.report.progress import time_left_in_words
from assay.results.case_history import TRUST, TimeLeft, earlier_seconds
from assay.results.reframe_report import name_of
from reports import cases, own_cases
from stored import made, put

NAMES = ['a', 'b', 'c', 'd']


def test_by_the_pace_alone():
    left = TimeLeft(NAMES, {})
    left.begins(100)
    assert left.seconds(130) is None
    left.ends('a', counts=True)
    left.begins(130)
    assert left.seconds(130) == pytest.approx(90)
    left.ends('b', counts=False)  # it was skipped
    assert left.seconds(130) == pytest.approx(60)
    left.ends('c', counts=True)
    left.ends('d', counts=True)
    assert left.seconds(200) == 0


def test_by_earlier_runs():
    left = TimeLeft(NAMES, {'a': 10, 'b': 20, 'c': 30, 'elsewhere': 1000})
    assert left.seconds(0) == pytest.approx(10 + 20 + 30 + 20)  # one that is not known as others
    left.begins(0)
    left.ends('a', counts=True)
    assert left.seconds(10) == pytest.approx(70)
    # Twice as slow as it was, of which more and more is believed.
    left.ends('b', counts=True)
    trusted = TRUST * 80
    assert left.seconds(60) == pytest.approx(50 * (60 + trusted) / (30 + trusted))


def test_few_known_cases_tell_nothing_before_one_has_ended():
    assert TimeLeft(NAMES, {'a': 10}).seconds(0) is None


def test_earlier_seconds_are_of_the_newest_session(golden_report, tmp_path):
    old, new = made(golden_report, 1, days=2), made(golden_report, 2, days=1)
    for report, seconds in ((old, (5, 5)), (new, (1, 3))):
        report['session_info']['time_elapsed'] = 9
        own = own_cases(report)
        for case, ran in zip(own, seconds, strict=True):
            case['time_run'] = ran
        for case in cases(report):
            case['time_compile'] = 1 if case['fixture'] else 100
    put(tmp_path / 'results.db', old, new)
    # What builds took is no time of the cases; the rest passed between their jobs.
    assert earlier_seconds(tmp_path / 'results.db') == {
        name_of(case).title: pytest.approx(share) for case, share in zip(own, (2, 6), strict=True)
    }


def test_a_database_that_tells_nothing(golden_report, tmp_path):
    assert earlier_seconds(tmp_path / 'missing.db') == {}
    (tmp_path / 'damaged.db').write_text('no database')
    assert earlier_seconds(tmp_path / 'damaged.db') == {}
    report = made(golden_report, 1)
    for case in cases(report):
        case['time_run'] = None
    put(tmp_path / 'results.db', report)
    assert earlier_seconds(tmp_path / 'results.db') == {}


@pytest.mark.parametrize('times', [(-1, 1), (math.nan, 1), (1, math.inf), ('1', 1)])
def test_times_that_are_none_tell_nothing_that_is_no_time(golden_report, tmp_path, times):
    report = made(golden_report, 1)
    report['session_info']['time_elapsed'] = 9
    own = own_cases(report)
    for case, ran in zip(own, times, strict=True):
        case['time_run'] = ran
    put(tmp_path / 'results.db', report)
    assert all(0 < one < 10 for one in earlier_seconds(tmp_path / 'results.db').values())


@pytest.mark.parametrize(
    ('seconds', 'words'),
    [
        (None, ''),
        (2, ''),
        (6, 'about 10 s left'),
        (54, 'about 50 s left'),
        (55, 'about 1 min left'),
        (200, 'about 3 min left'),
        (5000, 'about 1.4 h left'),
    ],
)
def test_words(seconds, words):
    assert time_left_in_words(seconds) == words
