"""Two systems side by side on a page: what is compared, what is not, and which way is better."""

import json
import re
from dataclasses import replace

import pytest

from assay import AssayError
from assay.report.html import beside, page
from assay.report.html.beside import JudgedRun
from assay.report.html.page import write_stored
from assay.results.history import load_history
from assay.results.reframe_report import case_of
from assay.results.run_selectors import choose_runs
from assay.results.store import keep_verdict
from pages import FIGURES, HOSTILE, Seen, filled, found_in
from reports import cases, disturbed
from stored import made, put

HERE = [('system', 'here'), ('begun', 'now')]
THERE = [('system', 'there'), ('begun', 'then')]


def of(report):
    some = cases(report)
    for case in some:
        case['directions'] = {'latency': 'lower', 'bandwidth': 'higher', 'comm_share': 'exact'}
    return some


@pytest.fixture
def two(golden_report):
    """The cases of two systems, that of the second called otherwise in its partitions."""
    here, there = of(filled(golden_report, 4)), of(filled(golden_report, 4))
    for case in there:
        case['system'], case['partition'] = 'there', 'compute'
    return here, there


def compared(here, there):
    here, there = ([case_of(case) for case in some] for some in (here, there))
    return beside.compare_systems(
        *(
            JudgedRun('PASSED', 'good', '', (), facts, some)
            for facts, some in ((HERE, here), (THERE, there))
        )
    )


def line(found, figure, number=0):
    return [one for one in found.lines if one.row.figure.name == figure][number]


def test_figure_by_figure_with_the_better_one(two):
    here, there = two
    there[0]['perfvalues']['toy:node:latency'][0] = 0.94
    there[0]['perfvalues']['toy:node:bandwidth'][0] = 18000.0
    there[0]['perfvalues']['toy:node:comm_share'][0] = 0.2
    there[0]['perfvalues']['toy:node:steal_share'][0] = 0.5
    found = compared(here, there)
    assert len(found.lines) == 4 * 9 and found.systems == ('here', 'there')
    latency, bandwidth = line(found, 'latency'), line(found, 'bandwidth')
    assert latency.values == ('0.4700 us', '0.9400 us')
    assert (latency.ratio, latency.better, latency.direction) == (
        '0.5000',
        'here',
        'lower is better',
    )
    assert (bandwidth.ratio, bandwidth.better, bandwidth.direction) == (
        '0.5000',
        'there',
        'higher is better',
    )
    # Shares that are to be exact, and what nobody said a direction of, or has no ratio.
    exact, unknown, zero = (
        line(found, name) for name in ('comm_share', 'imbalance_share', 'steal_share')
    )
    assert (exact.ratio, exact.better, exact.direction) == ('2.000', '-', 'neither is')
    assert (unknown.ratio, unknown.better, unknown.direction) == ('1.000', 'same', 'not known')
    assert (zero.values, zero.ratio, zero.better) == (('0', '0.5000'), '-', '-')
    assert found.notes[0].startswith('Whether a difference is more than chance is not known')
    assert len(found.notes) == 1


def test_where_they_do_not_agree_which_way_is_better_nobody_knows(two):
    here, there = two
    there[0]['directions']['latency'] = 'higher'
    there[0]['perfvalues']['toy:node:latency'][0] = 0.94
    assert line(compared(here, there), 'latency').better == '-'
    there[0]['directions'] = None
    assert line(compared(here, there), 'latency').better == 'here'


def test_only_cases_of_the_same_name_environment_and_program(two):
    here, there = two
    there[0]['display_name'] += ' %size=cache'
    there[1]['environ'] = 'intelmpi'
    there[2]['implementation'] = 'upstream'
    found = compared(here, there)
    assert {one.row.case.fabric for one in found.lines} == {here[3]['fabric']}
    assert '27 figures of here have no partner of the same name.' in found.notes
    assert '27 figures of there have no partner of the same name.' in found.notes


def test_partitions_of_the_same_name_or_the_only_ones(two):
    here, there = two
    here[1]['display_name'], here[1]['environ'] = here[0]['display_name'], here[0]['environ']
    here[1]['partition'] = 'other'
    there[1]['display_name'], there[1]['environ'] = there[0]['display_name'], there[0]['environ']
    there[1]['partition'] = 'node'
    there[1]['perfvalues']['toy:node:latency'][0] = 2.0
    # `node` goes with `node`; `other` and `compute` are left, and are the only ones.
    first, second, *_ = [
        one for one in compared(here, there).lines if one.row.figure.name == 'latency'
    ]
    assert (first.values[1], second.values[1]) == ('2.000 us', '0.4700 us')
    here[2] |= {key: here[0][key] for key in ('display_name', 'environ')} | {'partition': 'third'}
    names = [
        one.row.case.fabric
        for one in compared(here, there).lines
        if one.row.figure.name == 'latency'
    ]
    assert len(names) == 2  # whether `other` or `third` is like `compute` nobody knows


def test_repetitions_count_by_their_median_and_failures_are_told(two):
    here, there = two
    for number, value in enumerate((1.0, 3.0, 20.0)):
        here[number] = json.loads(json.dumps(here[0]))
        here[number]['perfvalues']['toy:node:latency'][0] = value
    here[1]['perfvalues']['toy:node:bandwidth_of_limit'][0] = 0.1
    found = compared(here, there)
    assert line(found, 'latency').values[0] == '3.000 us'
    assert line(found, 'bandwidth_of_limit').values == ('0.7000 (fail)', '0.7000')


def test_what_others_disturbed_is_better_nowhere(golden_report):
    here, there = (cases(disturbed(golden_report('FailedReference'))) for _ in range(2))
    for case in (*here, *there):
        case['directions'] = {'latency': 'lower'}
    for case in there:
        for values in (case['perfvalues'] or {}).values():
            values[0] *= 2
    here, there = ([case for case in some if not case['fixture']] for some in (here, there))
    assert {one.better for one in compared(here, there).lines} == {'-'}
    assert all(
        '(disturbed)' in value for one in compared(here, there).lines for value in one.values
    )
    for case in (*here, *there):
        case['no_evidence'] = ''
    assert {one.better for one in compared(here, there).lines} == {'here'}


def test_what_has_no_value_is_compared_with_nothing(two):
    here, there = two
    here[0]['perfvalues']['toy:node:latency'][0] = float('nan')
    there[1]['perfvalues'] = None
    found = compared(here, there)
    assert len(found.lines) == 8 + 18
    assert '9 figures of here have no partner of the same name.' in found.notes


def test_of_very_many_figures_those_that_matter_are_kept(golden_report):
    here, there = of(filled(golden_report, 300)), of(filled(golden_report, 300))
    found = compared(here, there)
    assert len(found.lines) == beside.MOST
    assert any('These are 1000 of 2700 figures' in note for note in found.notes)
    # All of them are held to references, or asked for first.
    assert {one.row.figure.name for one in found.lines} == {name for name, *_ in FIGURES[:4]}
    here, there = (of(filled(golden_report, 300, figures=FIGURES[4:])) for _ in range(2))
    there[299]['perfvalues']['toy:node:comm_share'][0] = 0.1
    assert compared(here, there).lines[-1].values == ('0.4000', '0.1000')


def test_facts_stand_beside_each_other(two):
    here, there = two
    here[0]['ran_mpi'], there[0]['ran_mpi'] = 'openmpi@5.0.8', 'openmpi@5.0.10'
    here[0]['ran_on_kernel'] = '6.1'
    facts = {name: two for name, *two in compared(here, there).facts}
    assert [one.values[0][0] for one in facts['MPI, as it ran']] == [
        'openmpi@5.0.8',
        'openmpi@5.0.10',
    ]
    assert facts['kernel'][0].values == [('6.1', 1)] and facts['kernel'][1] is None


# Stored runs --------------------------------------------------------------------------------------


@pytest.fixture
def page_of(golden_report, tmp_path):
    """Stores runs of some systems under one label, and writes their page: what is seen of it."""

    def write_it(*systems, words='these', only=None):
        database = tmp_path / 'perflogs' / 'results.db'
        reports = [
            made(golden_report, number, 9 - number, 'these', system, 40.0 + number)
            for number, system in enumerate(systems, 1)
        ]
        put(database, *reports)
        for report, word in zip(reports, ('FAILED', 'PASSED', 'PASSED', 'PASSED'), strict=False):
            why = ['something is wrong'] if word == 'FAILED' else []
            keep_verdict(report['session_info']['uuid'], word, why, database)
        history = load_history(database)
        write_stored(tmp_path / 'page.html', history, choose_runs(history, words, only))
        return Seen((tmp_path / 'page.html').read_text())

    return write_it


def test_runs_of_two_systems_show_both(page_of):
    seen = page_of('old', 'new')
    text = ' '.join(seen.text.split())
    assert 'Report of a run on new' in text and 'beside one on old' in text
    assert 'Side by side: new and old' in text
    assert re.search(r'✗ old: FAILED ?: 2 passed', text)
    assert 'FAILED on old: something is wrong' in text
    assert '42.00 us41.00 us1.024' in seen.text.replace('\n', '')
    assert 'in 00000001' not in text  # of another system it is no value before


def test_the_newest_of_each_system_stand_side_by_side(page_of):
    text = page_of('old', 'new', 'old', 'new').text.replace('\n', '')
    assert '44.00 us43.00 us' in text
    assert 'in 00000002' in text


@pytest.mark.parametrize(('systems', 'only'), [(('old', 'old'), None), (('old', 'new'), 'old')])
def test_of_one_system_nothing_is_beside_it(page_of, systems, only):
    text = page_of(*systems, only=only).text
    assert 'Side by side' not in text and 'Report of a run on old' in text


def test_a_run_without_cases_is_of_no_system(page_of, monkeypatch):
    seen = page_of('old', 'old', '')
    assert 'Side by side' not in seen.text and 'in 00000002' in seen.text


def test_runs_of_three_systems_are_refused(page_of):
    with pytest.raises(AssayError, match='of 3 systems, a, b, c, and a page shows two'):
        page_of('a', 'b', 'c')


@pytest.mark.parametrize('text', HOSTILE)
def test_names_of_systems_are_text(golden_report, two, text):
    found = found_in(filled(golden_report, 2))
    here, there = two
    there[0]['environ'] = here[0]['environ'] = there[0]['fabric'] = text
    run = [('system', text), ('begun', text)]
    here, there = ([case_of(case) for case in some] for some in two)
    both = [JudgedRun(text, 'bad', text, [text], run, some) for some in (here, there)]
    seen = Seen(page.page(replace(found, beside=beside.compare_systems(*both))))
    plain = Seen(page.page(found))
    assert seen.tags.count('script') == plain.tags.count('script') and 'img' not in seen.tags
    assert not [one for one in seen.attributes if one[1].startswith('on') or one[1] == 'src']
    assert seen.tags.count('caption') == seen.tags.count('table')
