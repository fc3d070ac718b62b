"""What stored runs tell of each case, also those that are damaged or of a wrong clock."""

import math
from datetime import timedelta

import pytest

from assay.results import case_history
from assay.results.case_history import FORGIVEN, LATELY, case_histories, earlier_seconds
from assay.results.history import load_history
from reports import cases, disturbed, own_cases, run_of
from stored import NOW, made, put

CASE = 'Passed @toy:node+gnu'


@pytest.fixture
def database(tmp_path):
    return tmp_path / 'results.db'


def learned(database):
    return case_histories(load_history(database), 'toy:node')


def titles(report):
    return {
        f'{one["display_name"]} @toy:{one["partition"]}+{one["environ"]}'
        for one in own_cases(report)
    }


def test_when_a_case_ran_and_how_long_it_took(database, golden_report):
    reports = [made(golden_report, number, days=9 - number) for number in range(8)]
    for number, report in enumerate(reports):
        for case in cases(report):
            case |= {'time_setup': 1.0, 'time_compile': None, 'time_run': float(number)}
            case |= {'time_sanity': 0.5, 'time_performance': 0.5, 'time_total': 1e9}
    put(database, *reports, made(golden_report, 99, system='other'))
    known = learned(database)
    names = titles(reports[0])
    assert names < known.keys() and any(' ~' in name for name in known.keys() - names)
    for name in names:
        assert known[name].last == NOW - timedelta(days=2)
        assert known[name].seconds == [5.0, 6.0, 7.0, 8.0, 9.0]
        assert len(known[name].seconds) == LATELY
        assert known[name].trouble == ''


def test_a_build_takes_what_it_compiles_and_not_what_it_waits_for_jobs_of_others(
    database, golden_report
):
    report = made(golden_report, 0, days=1)
    builds = [one for one in cases(report) if one['fixture']]
    for build in builds:
        build |= {'time_setup': 0.25, 'time_compile': 0.5, 'time_run': 60.62}
        build |= {'time_sanity': 0.0, 'time_performance': 0.0}
    put(database, report)
    known = learned(database)
    assert {one['display_name'] for one in builds} <= known.keys()
    assert all(known[one['display_name']].seconds == [0.75] for one in builds)


def test_a_fixture_with_a_job_takes_the_time_of_its_job(database, golden_report):
    report = made(golden_report, 0, days=1)
    (download, *_) = (one for one in cases(report) if one['fixture'])
    download |= {'time_setup': 0.25, 'time_compile': 0.0, 'time_run': 60.0, 'jobid': '4711'}
    download |= {'time_sanity': 0.0, 'time_performance': 0.0}
    put(database, report)
    assert learned(database)[download['display_name']].seconds == [60.25]


def test_what_waited_for_others_tells_nothing_of_how_long_it_takes(database, golden_report):
    waited = made(golden_report, 0, days=2)
    for case in own_cases(waited):
        case |= {'replaced': ['latency is 9 us; the node was disturbed'], 'time_run': 90.0}
    put(database, waited)
    assert [learned(database)[name].seconds for name in titles(waited)] == [[], []]
    put(database, made(golden_report, 1, days=1))
    assert all(len(learned(database)[name].seconds) == 1 for name in titles(waited))


def test_how_a_case_ended(database, golden_report):
    def failed(report):
        for case in own_cases(report):
            case |= {'result': 'fail', 'fail_phase': 'sanity', 'fail_reason': 'no answer'}
        return report

    def missed(report):
        for case in own_cases(disturbed(report)):
            case |= {'result': 'fail', 'fail_phase': 'performance'}
        return report

    def one(number, days):
        return made(golden_report, number, days)

    name = next(iter(titles(one(0, 0))))
    for number, (made_of, trouble) in enumerate(
        [
            (failed, 'failed'),
            (lambda report: report, 'not good lately'),
            (missed, 'disturbed'),
            *[(lambda report: report, 'not good lately')] * (FORGIVEN - 1),
            (lambda report: report, ''),
        ]
    ):
        put(database, made_of(one(number, 20 - number)))
        assert learned(database)[name].trouble == trouble


def test_held_figures_that_vary(database, golden_report):
    def store(values, number, is_held=True):
        for days, value in enumerate(reversed(values), start=number):
            report = made(golden_report, 100 - days, days)
            for case in own_cases(report):
                held, free = [42.5, 42, -0.9, 0.9], [1.0, 0, None, None]
                (held if is_held else free)[0] = value
                case['perfvalues'] = {
                    'toy:node:latency': [*held, 'us', 'pass'],
                    'toy:node:other': [*free, 'us', 'pass'],
                }
            put(database, report)

    (name, *_) = titles(made(golden_report, 0))
    store([42.0, 60.0, 30.0, 70.0, 20.0], 50, is_held=False)
    assert learned(database)[name].trouble == ''
    store([42.0, 60.0, 30.0, 70.0, 20.0], 30)
    assert learned(database)[name].trouble == 'varies'
    store([42.0, 44.0, 38.0, 46.0, 38.5], 10)
    assert learned(database)[name].trouble == ''


def test_a_case_that_one_job_had_no_time_for_had_no_turn(database, golden_report):
    """Nor does it take as long as it waited."""
    first, late = made(golden_report, 1, 5), made(golden_report, 2, 1)
    name = next(iter(titles(first)))
    put(database, first)
    before = learned(database)[name], earlier_seconds(database)
    for case in own_cases(late):
        case |= {'result': 'skip', 'jobid': '7+2', 'time_run': 700.0, 'time_sanity': None}
    put(database, late)
    assert (learned(database)[name], earlier_seconds(database)) == before
    assert run_of(late).left_out == len(own_cases(late))


def test_a_case_that_is_too_large_for_the_job_had_its_turn(database, golden_report):
    """Or it would be chosen first for ever."""
    report = made(golden_report, 1, 1)
    for case in own_cases(report):
        case |= {'result': 'skip', 'jobid': '', 'time_run': 0.2, 'time_sanity': None}
    put(database, report)
    assert learned(database)[next(iter(titles(report)))].last == NOW - timedelta(days=1)


def test_steps_are_known_from_jobs_that_may_have_waited(database, golden_report):
    reports = [made(golden_report, day, day) for day in (3, 2, 1)]
    for report, number in zip(reports, ('7.12', '7', '7+2'), strict=True):
        for case in own_cases(report):
            case['jobid'] = number
    put(database, *reports)
    one = learned(database)[next(iter(titles(reports[0])))]
    assert (len(one.seconds), len(one.seconds_of_steps)) == (3, 1)


def test_a_skipped_case_had_its_turn_and_a_stopped_one_had_not(database, golden_report):
    skipped, stopped = made(golden_report, 1, 5), made(golden_report, 2, 1)
    for report, result in ((skipped, 'skip'), (stopped, 'abort')):
        for case in own_cases(report):
            case |= {'result': result, 'perfvalues': None, 'time_setup': 0.04, 'time_compile': None}
            case |= {'time_run': None, 'time_sanity': None, 'time_performance': None}
    put(database, skipped, stopped)
    (name, *_) = titles(skipped)
    one = learned(database)[name]
    assert one.last == NOW - timedelta(days=5)
    assert (one.seconds, one.endings, one.trouble) == ([0.04], [], '')


@pytest.mark.parametrize('time', [-1.0, math.nan, math.inf, 0.0, 1e12, 'long', [], True])
def test_a_time_that_is_none_is_not_taken(database, golden_report, time):
    report = made(golden_report, 1, 1)
    for case in own_cases(report):
        case |= dict.fromkeys(('time_setup', 'time_compile', 'time_sanity', 'time_performance'))
        case['time_run'] = time
        if time not in (0, True):  # which are times, of a stage
            case['time_setup'] = 5.0
    put(database, report)
    (name, *_) = titles(report)
    one = learned(database).get(name)
    assert one is None or one.seconds == ([1.0] if time is True else [])


def test_a_damaged_run_leaves_the_others(database, golden_report):
    good, bad = made(golden_report, 1, 5), made(golden_report, 2, 1)
    own_cases(bad)[0].pop('result')
    put(database, good, bad)
    (name, *_) = titles(good)
    assert learned(database)[name].last == NOW - timedelta(days=5)


def test_a_run_of_the_future_is_no_last_one(database, golden_report):
    put(database, made(golden_report, 1, 3), made(golden_report, 2, -400))
    (name, *_) = titles(made(golden_report, 1))
    one = learned(database)[name]
    assert (one.last, one.in_future) == (NOW - timedelta(days=3), NOW + timedelta(days=400))


def test_the_newest_runs_of_the_system_are_looked_at(database, golden_report, monkeypatch):
    reports = [made(golden_report, number, 9 - number) for number in range(3)]
    put(database, *reports, *(made(golden_report, 9 + n, system='other') for n in range(3)))
    monkeypatch.setattr(case_history, 'NEWEST', 2)
    (name, *_) = titles(reports[0])
    assert len(learned(database)[name].seconds) == 2


def test_without_a_history_nothing_is_known(database):
    assert learned(database) == {}


def test_what_failed_in_a_run_with_a_purpose_of_its_own_is_no_trouble(database, golden_report):
    good, faulted = made(golden_report, 0, days=2), made(golden_report, 1, days=1)
    faulted['session_info']['purpose'] = 'campaign'
    for case in own_cases(faulted):
        case |= {'result': 'fail', 'fail_phase': 'sanity', 'fail_reason': 'no answer'}
    put(database, good, faulted)
    for name in titles(good):
        assert (learned(database)[name].endings, learned(database)[name].trouble) == (['good'], '')
