"""Steps and drifts of stored figures, since which run, and what else changed there."""

import json
import math
from copy import deepcopy
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from assay import AssayError
from assay.report.console import sparkline
from assay.results.history import load_history
from assay.results.trend import find_trend
from command import call
from reports import identified, own_cases, passing
from stored import put

NOW = datetime.now(timezone.utc).replace(microsecond=0)
OLD, NEW = 'openmpi@5.0.9', 'openmpi@5.0.10'
RING = 'latency of Passed %fabric=shm %layout=packed @toy:node+gnu'


@pytest.fixture
def stored(tmp_path, golden_report, monkeypatch):
    """Stores a run a night, the newest today, and loads them.

    A case a list, a night an element: fields of the case; ``value`` and ``unit`` are those of its
    figure, ``begun`` is how many days ago.
    """
    database = tmp_path / 'perflogs' / 'results.db'
    golden = passing(golden_report('Passed'))

    def store(*cases_of_nights):
        reports = []
        for number, nights in enumerate(zip(*cases_of_nights, strict=True)):
            report = deepcopy(golden)
            template = own_cases(report)[0]
            days = nights[0].get('begun', len(cases_of_nights[0]) - number)
            begun = (NOW - timedelta(days=days)).timestamp()
            identified(report, number, begun)
            own = {'job_completion_time_unix': begun + 5, 'job_nodelist': ['n1']}
            own |= {'directions': {'latency': 'lower'}, 'built_mpi': OLD}
            report['runs'][0]['testcases'] = made = []
            for which, night in enumerate(nights):
                held = [night['value'], 42, -0.1, 0.1, night.get('unit', 'us'), 'pass']
                case = template | own | {'perfvalues': {f'toy:node{which}:latency': held}}
                name = f'{case["display_name"]} %n={which}' if which else case['display_name']
                made.append(case | {'display_name': name, 'name': name} | night)
            reports.append(report)
        put(database, *reports)
        history = load_history(database)
        monkeypatch.setattr('assay.results.history.load_history', lambda: history)
        return history

    return store


def noise(count, spread=0.01, seed=1):
    return 42 * np.exp(spread * np.random.default_rng(seed).standard_normal(count))


def said(*options):
    ended = call('trend', *options, COLUMNS='200')
    return ended.exit_code, ended.output


def look(history, cases='', figures=''):
    return find_trend(history, history.runs, cases, figures)


def upgraded(count=60, at=40, factor=1.08, seed=1):
    return [
        {'value': float(value) * (factor if night >= at else 1)}
        | ({'built_mpi': NEW} if night >= at else {})
        for night, value in enumerate(noise(count, seed=seed))
    ]


def test_a_step_names_the_first_bad_run_and_the_mpi_that_changed(stored):
    history = stored(upgraded())
    found = look(history)
    (group,) = found.groups
    (one,) = group.found
    assert (one.first.name, one.direction, one.is_bad) == ('00000028', 'worse', True)
    assert one.earliest.begun <= one.first.begun <= one.latest.begun
    assert one.last_good.name == '00000027'
    assert one.ratio == pytest.approx(1.08, abs=0.01)
    assert one.facts == (('mpi', f'{OLD} -> {NEW}'),)
    code, text = said()
    assert code == 1
    day = f'{(NOW - timedelta(days=20)).astimezone():%Y-%m-%d}'
    assert f'at run 00000028, {day}: 1 figure worse by ' in text
    assert f'    mpi: {OLD} -> {NEW}\n' in text
    assert '▁' in text and '█' in text
    assert 'of 1 figure in 60 runs from ' in text


def test_runs_that_overlap_stay_in_the_order_in_which_they_began(stored):
    nights = upgraded()
    late = (NOW - timedelta(days=18)).timestamp()
    nights[40]['job_completion_time_unix'] = late  # after that of the night after it
    (group,) = look(stored(nights)).groups
    (one,) = group.found
    assert (one.last_good.name, one.first.name) == ('00000027', '00000028')
    assert one.bad == one.first


@pytest.mark.parametrize(
    ('directions', 'direction', 'code'),
    [
        ({'latency': 'higher'}, 'better', 0),
        ({'latency': 'exact'}, 'worse', 1),
        ({}, 'changed', 0),
    ],
)
def test_the_direction_decides(stored, directions, direction, code):
    history = stored([one | {'directions': directions} for one in upgraded()])
    assert [one.direction for one in look(history).found] == [direction]
    assert said()[0] == code


def humps(*lengths):
    """Nights as before and 10% worse in turn."""
    factors = np.resize([1, 1.1], len(lengths))
    values = noise(sum(lengths), 0.005, seed=3) * np.repeat(factors, lengths)
    return [{'value': float(one)} for one in values]


def test_a_step_that_was_repaired_is_told_and_is_not_bad(stored):
    history = stored(humps(50, 30, 10))
    found = look(history)
    assert [one.direction for one in found.found] == ['worse', 'better']
    assert [round(one.ratio, 1) for one in found.found] == [1.1, 0.9]
    assert [one.is_repaired for one in found.found] == [True, False]
    code, text = said()
    assert code == 0
    assert 'worse, repaired' in text


@pytest.mark.parametrize(('before', 'after', 'is_told'), [(0.1, 0.2, False), (2.0, 4.0, True)])
def test_starts_of_less_than_a_second_have_no_trend(stored, before, after, is_told):
    values = noise(60) / 42 * np.repeat([before, after], [40, 20])
    held = [None, None, None, 's', 'pass']
    nights = [{'value': 1.0, 'perfvalues': {'toy:node:startup': [one, *held]}} for one in values]
    assert bool(look(stored(nights)).groups) == is_told


def test_a_step_is_found_after_another_was_repaired(stored):
    """In the whole history there is no single step then."""
    (one,) = look(stored(humps(30, 30, 30, 30))).found
    assert (one.first.name, one.direction) == ('0000005a', 'worse')
    assert one.ratio == pytest.approx(1.1, abs=0.01)


def test_a_step_that_was_repaired_in_part_is_bad(stored):
    values = noise(90) * np.repeat([1, 1.2, 1.1], 30)
    history = stored([{'value': float(one)} for one in values])
    assert [one.is_bad for one in look(history).found] == [True, False]
    assert said()[0] == 1


def test_a_drift_over_months_is_told_in_percent_a_week(stored):
    weeks = np.arange(120) / 7
    history = stored([{'value': float(one)} for one in noise(120) * 1.005**weeks])
    (one,) = look(history).drifts
    assert one.per_week == pytest.approx(0.005, abs=0.0005)
    assert int(one.earliest.name, 16) <= 10 <= int(one.latest.name, 16) <= 20
    code, text = said()
    assert code == 1
    assert 'drift: 1 figure worse by 0.5' in text
    assert '% a week' in text
    assert 'nothing changed of what is stored since the drift may have begun' in text


def test_a_drift_may_begin_later_than_the_history(stored):
    weeks = np.maximum(0, np.arange(180) - 60) / 7
    nights = [{'value': float(one)} for one in noise(180) * 1.005**weeks]
    # What changed long before it began is not to blame for it.
    for at, fact in ((20, 'built_compiler'), (60, 'built_mpi')):
        for number, night in enumerate(nights):
            night[fact] = 'new' if number >= at else 'old'
    history = stored(nights)
    (one,) = look(history).drifts
    assert 50 <= int(one.first.name, 16) <= 70
    assert int(one.earliest.name, 16) <= 60 <= int(one.latest.name, 16)
    assert one.per_week == pytest.approx(0.005, abs=0.0005)
    assert one.last_good.begun < one.earliest.begun
    assert one.facts == (('mpi', 'old -> new'),)
    text = said()[1]
    assert one.first.name in text
    assert 'changed since the drift may have begun:\n    mpi: old -> new' in text
    assert 'compiler' not in text


def test_without_a_change_there_is_one_sentence(stored):
    stored([{'value': float(one)} for one in noise(60)])
    code, text = said()
    assert (code, len(text.splitlines())) == (0, 1)
    assert text.startswith('nothing changed in 1 figure of 60 runs from ')
    assert 'unchanged' in said('--all')[1]


def test_figures_with_one_cause_are_one_group(stored):
    """The estimates of small steps are off by a run or two."""
    steady = [{'value': float(one), 'built_mpi': OLD} for one in noise(60, seed=9)]
    history = stored(*(upgraded(factor=1.025, seed=seed) for seed in (4, 5, 14, 15)), steady)
    (group,) = look(history).groups
    assert len({one.first.name for one in group.found}) > 1
    assert len(group.found) == 4
    assert group.run.name == '00000028'
    assert {one.facts for one in group.found} == {(('mpi', f'{OLD} -> {NEW}'),)}
    assert 'at run 00000028' in said()[1]
    assert '4 figures worse by 2' in said()[1]


def test_json_has_every_change_and_every_figure(stored):
    stored(upgraded())
    code, text = said('--json')
    found = json.loads(text)
    (group,) = found['groups']
    (change,) = group['changes']
    assert code == 1
    assert found['worse'] is True
    assert change['figure'] == 'latency'
    assert change['what_changed'] == {'mpi': f'{OLD} -> {NEW}'}
    assert change['first_bad']['run'].startswith('00000028-')
    assert [one['state'] for one in found['figures']] == ['worse']


# What cannot be looked at -------------------------------------------------------------------------


def test_an_empty_database(stored):
    stored([])
    assert said() == (0, 'no run was looked at\n')
    with pytest.raises(AssayError, match='no run is stored in'):
        said('last')


@pytest.mark.parametrize('count', [1, 19])
def test_too_few_runs_are_counted(stored, count):
    stored([{'value': float(one)} for one in noise(count)])
    code, text = said()
    assert code == 0
    assert text.splitlines()[-1] == '1 figure with too few runs (fewer than 20) to tell'


def test_equal_values_show_no_change(stored):
    stored([{'value': 42.0}] * 60)
    assert said()[1].startswith('nothing changed in 1 figure of 60 runs')


def test_what_is_no_value_is_counted(stored):
    nights = upgraded()
    for night, value in ((3, math.nan), (50, math.inf)):
        nights[night]['value'] = value
    nights[10]['taken_by_others'] = ['others']
    history = stored(nights)
    assert look(history).groups[0].run.name == '00000028'
    text = said()[1]
    assert '1 value left out: others used the nodes' in text
    assert '2 values left out: no finite number' in text


@pytest.mark.parametrize(
    ('value', 'sentence'),
    [(math.nan, '1 figure without any value to use'), (0.0, '1 figure with zeros')],
)
def test_figures_without_values_and_with_zeros_are_counted(stored, value, sentence):
    stored([{'value': value}] * 30)
    code, text = said()
    assert code == 0
    assert sentence in text


def test_runs_of_one_time_have_no_order(stored):
    history = stored([one | {'begun': 5} for one in upgraded()])
    assert [line.state for line in look(history).lines] == ['one time']
    text = said()[1]
    assert 'nothing changed in 0 figures' in text
    assert '1 figure whose runs all began at one time, in no known order' in text


@pytest.mark.parametrize('form', ['step', 'drift'])
def test_a_change_beyond_all_numbers_is_json(stored, form):
    logs = np.repeat([-690, 690], 30) if form == 'step' else np.linspace(-690, 690, 60)
    values = noise(60) / 42 * np.exp(logs)
    stored([{'value': float(one)} for one in [*values[:-1], 1.5e300]])
    code, text = said('--json')
    told = json.loads(text, parse_constant=pytest.fail)
    (change,) = told['drifts'] or told['groups'][0]['changes']
    assert (code, change['form'], change['ratio']) == (1, form, None)
    assert [one['unusable'] for one in told['figures']] == [1]
    assert ('drift: 1 figure' if form == 'drift' else 'at run 0000001e') in said()[1]


@pytest.mark.parametrize('apart', [1, 1e-9])
@pytest.mark.parametrize('end', [690, -690])
def test_no_drift_takes_more_than_all_in_a_week(stored, apart, end):
    """Of as much as there can be, within months or milliseconds."""
    values = noise(60) / 42 * np.exp(np.linspace(-end, end, 60))
    history = stored(
        [{'value': float(one), 'begun': 1 + (59 - n) * apart} for n, one in enumerate(values)]
    )
    (one,) = look(history).drifts
    assert one.per_week == -1 if end < 0 else one.per_week > 1e60


def test_another_unit_is_another_figure(stored):
    nights = upgraded()
    stored([one | ({'unit': 'ms'} if n >= 40 else {}) for n, one in enumerate(nights)])
    code, text = said()
    assert code == 0
    assert 'was stored in several units' in text


def test_a_renamed_check_begins_anew(stored):
    nights = upgraded()
    for night in nights[40:]:
        night['display_name'] = 'Renamed %fabric=shm'
    history = stored(nights)
    assert [line.state for line in look(history).lines] == ['unchanged', 'unchanged']
    assert [line.state for line in look(history, 'Passed').lines] == ['unchanged']
    with pytest.raises(AssayError, match="-n 'Nothing' matches none of 2 figures"):
        look(history, 'Nothing')
    with pytest.raises(AssayError, match="-n 'Renamed' with --figure 'x' matches none"):
        look(history, 'Renamed', 'x')
    assert [str(line.figure) for line in look(history, figures='^latency$').lines] == [
        str(line.figure) for line in look(history).lines
    ]
    with pytest.raises(AssayError, match=r'no regular expression'):
        look(history, '(')


def test_a_run_of_the_future_is_left_out(stored):
    nights = [{'value': float(one)} for one in noise(60)]
    nights[30]['begun'] = -400
    history = stored(nights)
    assert len(look(history).runs) == 59
    assert '1 run of the future left out' in said()[1]


# Sparklines ---------------------------------------------------------------------------------------


def test_a_sparkline_has_a_median_a_bucket_and_gaps():
    assert sparkline(range(8), range(8), 8, 8) == '▁▂▃▄▅▆▇█'
    assert sparkline([0, 1, 2, 5], [1, 9, 1, 9], 6, 2) == '▁█'
    assert sparkline([0, 3], [1, 2], 4, 10) == '▁··█'
    assert sparkline([0, 1], [5, 5], 2, 10) == '▅▅'
    assert sparkline([], [], 0, 10) == ''
    assert sparkline([0, 3], [1, 2], 4, 10, 'ascii') == '_??#'
