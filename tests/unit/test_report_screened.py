"""What the page of a run shows of the screening before it: who was found, nodes, and pairs."""

import json
from dataclasses import replace
from datetime import timedelta, timezone

import numpy as np
import pytest

from assay import paths
from assay.report.html import page, screened
from assay.report.html.page import write_stored
from assay.results.history import load_history
from assay.results.run_selectors import choose_runs
from assay.screening import kept
from assay.screening.verdict import judge_screening
from pages import HOSTILE, Seen, filled, found_in
from reports import cases, run_of
from screenings import BEGUN, large, screening, slow_links
from stored import NOW, made, put


def shown(now, hours=3):
    return screened.screening_section(now, judge_screening(now), BEGUN + timedelta(hours=hours))


@pytest.fixture
def of_toy(tmp_path, monkeypatch):
    """Keeps a screening of the partition of the golden reports, begun so many days ago."""
    monkeypatch.setattr(paths, 'SCREENINGS', tmp_path / 'screenings')

    def keep(days, n=8, **others):
        one = screening(n, **others)
        return kept.keep_screening(
            replace(one, system='toy:node', begun=NOW - timedelta(days=days))
        )

    return keep


# Which screening ----------------------------------------------------------------------------------


def test_the_newest_at_or_before_the_run(golden_report, of_toy):
    report = made(golden_report, 1, days=5)
    assert screened.screenings_of(run_of(report)) == []
    of_toy(4)
    assert screened.screenings_of(run_of(report)) == []
    of_toy(9), of_toy(7, slow={('dgemm alone', 3): 0.5}), of_toy(6)
    (found,) = screened.screenings_of(run_of(report))
    assert f'{NOW - timedelta(days=6):%Y-%m-%d %H:%M} UTC (24.0 hours before this run)' in (
        found.about
    )
    assert found.about.endswith('held against 2 earlier screenings')
    assert (found.kind, found.conclusion, found.told) == ('good', 'NOTHING FOUND of 8 nodes', [])
    (found,) = screened.screenings_of(run_of(made(golden_report, 1, days=6.5)))
    assert (found.kind, found.told[0][0].partition(' (')[0]) == ('bad', 'n3 is bad')
    # As of the check `Screen` itself, which begins within it.
    (found,) = screened.screenings_of(run_of(made(golden_report, 1, days=7 + 8 / 86400)))
    assert '(during this run)' in found.about


def test_of_many_partitions_the_first_are_shown(golden_report, of_toy):
    report = filled(golden_report, 5)
    for number, case in enumerate(cases(report)):
        case |= {'system': 'toy', 'partition': f'p{number}'}
    report['session_info'] |= made(golden_report, 1)['session_info']
    for number in range(1, 5):
        one = replace(screening(4), system=f'toy:p{number}', begun=NOW - timedelta(days=number))
        kept.keep_screening(one)
    found = screened.screenings_of(run_of(report))
    assert [one.about.partition(',')[0] for one in found] == [
        '4 nodes of toy:p1',
        '4 nodes of toy:p2',
    ]
    assert found[1].notes == ['Not looked for: screenings of 2 more partitions.']


@pytest.mark.parametrize('hours', [-12, 14])
def test_clocks_of_any_zone_name_files(golden_report, tmp_path, monkeypatch, hours):
    monkeypatch.setattr(paths, 'SCREENINGS', tmp_path)
    zone = timezone(timedelta(hours=hours))
    for minutes in (5, -5):
        begun = (NOW - timedelta(minutes=minutes)).astimezone(zone)
        kept.keep_screening(replace(screening(4), system='toy:node', begun=begun))
    path, found = kept.newest('toy:node', NOW)
    assert found.begun == NOW - timedelta(minutes=5) and path.exists()


def test_one_that_is_damaged_is_left_out_and_told(golden_report, of_toy, capsys):
    of_toy(9)
    of_toy(6).write_text('{')
    (found,) = screened.screenings_of(run_of(made(golden_report, 1, days=5)))
    assert '4.0 days' not in found.about and '4 days before' in found.about
    assert 'not the file of a screening' in capsys.readouterr().err


@pytest.mark.parametrize('system', ['toy:../toy/node', '../screenings/toy:node', 'toy/node', ':'])
def test_names_lead_nowhere_else(of_toy, system):
    of_toy(9)
    assert kept.newest('toy:node', NOW)
    assert kept.newest(system, NOW) is None


def test_a_stored_run_has_it_and_a_report_from_elsewhere_has_not(golden_report, of_toy, tmp_path):
    of_toy(6, slow={('dgemm alone', 3): 0.5})
    database, file = tmp_path / 'perflogs' / 'results.db', tmp_path / 'report.json'
    report = made(golden_report, 1, days=5)
    put(database, report)
    file.write_text(json.dumps(report))
    history = load_history(database)
    texts = []
    for words in ('last', str(file)):
        write_stored(tmp_path / 'page.html', history, choose_runs(history, words))
        texts.append(Seen((tmp_path / 'page.html').read_text()).text)
    assert 'Nodes and links: FOUND: 1 bad node of 8 nodes' in texts[0]
    assert 'Nodes and links' not in texts[1]


# Nodes --------------------------------------------------------------------------------------------


def test_a_map_of_the_nodes_with_what_was_found():
    found = shown(screening(16, slow={('dgemm alone', 3): 0.75, ('triad alone', 9): 0.5}))
    assert [who.partition(' (')[0] for who, _ in found.told] == ['n3 is bad', 'n9 is bad']
    assert '15 peers' in found.told[0][1][0]
    nodes = found.charts[0]
    assert nodes.measure.title == 'from the median of the peers [%]'
    panels = {panel.title: panel.values for panel in nodes.panels}
    assert panels['dgemm alone'][0][3] == pytest.approx(-25, abs=3)
    assert panels['triad alone'][1][1] == pytest.approx(-50, abs=3)
    assert all(abs(value) < 5 for row in panels['dgemm together'] for value in row)
    assert nodes.texts[1][1] == nodes.labels[1][1] == 'n9' and nodes.rows == ['n0', 'n8']
    assert [(mark.name, mark.cells) for mark in nodes.marks] == [('bad', [(0, 3), (1, 1)])]
    assert (
        nodes.ends == (-20, 20) and 'What is more than 20% off has the same colour.' in nodes.notes
    )
    assert nodes.headings[:3] == ['node', 'found', 'triad alone [%]']
    row = dict(zip(nodes.headings, nodes.cells[9], strict=True))
    assert (row['node'], row['found']) == ('n9', 'bad')
    assert float(row['triad alone [%]']) == panels['triad alone'][1][1]


def test_where_all_are_alike_no_colour_is_a_dark_one():
    (nodes, *_) = shown(screening(16)).charts
    assert nodes.ends == (-5, 5) and not nodes.marks


def test_what_is_told_apart_has_a_sign_and_a_word():
    left = np.ones(8)
    left[5] = 0.5
    now = screening(16, slow={('dgemm together', 7): left}, facts={2: {'kernel': 'other'}})
    now.taken['alone'][4] = 0.5
    now.values['triad alone'][4] *= 0.5
    (nodes, *_) = shown(now).charts
    marks = {mark.name: mark for mark in nodes.marks}
    assert {*marks} == {'different', 'suspect', 'disturbed'}
    assert len({mark.style for mark in nodes.marks}) == 3
    assert [row[1] for row in nodes.cells[:8]] == [
        '-',
        '-',
        'different',
        '-',
        'disturbed',
        '-',
        '-',
        'suspect',
    ]


def test_nodes_stand_by_switch_and_number():
    now = replace(screening(12), switches={'s10': ('n3', 'n11'), 's9': ('n10', 'n2')})
    names = [now.nodes[at] for at in screened.nodes_in_order(now)]
    assert names == [f'n{i}' for i in (0, 1, 4, 5, 6, 7, 8, 9, 2, 10, 3, 11)]


def test_without_peers_there_is_no_map():
    found = shown(screening(2))
    assert found.notes == ['too few of a kind to be judged: n[0-1]']
    assert [chart.title.partition(':')[0] for chart in found.charts] == ['Pairs', 'Pairs']


def test_of_two_kinds_each_has_its_own_median():
    slow = {('dgemm alone', i): 0.5 for i in range(8)}
    now = screening(16, slow=slow, facts={i: {'processor': 'old'} for i in range(8)})
    panel = next(one for one in shown(now).charts[0].panels if one.title == 'dgemm alone')
    assert all(abs(value) < 5 for row in panel.values for value in row)


# Pairs --------------------------------------------------------------------------------------------


def test_pairs_are_a_matrix_and_the_worst_stand_in_a_table():
    now = slow_links(screening(16), lambda a, b: {a, b} == {2, 9}, 3.0, alone=True)
    found = shown(now)
    assert found.told[0][0].startswith('the link between n2 and n9 is bad')
    nodes, latency, bandwidth = found.charts
    assert not nodes.marks  # a bad link makes no node bad
    assert latency.rows == latency.columns == [f'n{i}' for i in range(16)]
    (panel,) = latency.panels
    assert panel.values[2][9] == panel.values[9][2] == pytest.approx(3, rel=0.1)
    assert all(panel.values[i][i] is None for i in range(16))
    assert not any('no colour' in note for note in latency.notes)
    assert latency.marks[0].name == 'bad pair' and latency.marks[0].cells == [(2, 9), (9, 2)]
    assert latency.headings == ['node', 'other node', 'latency [µs]', 'of the median [1]', 'found']
    assert latency.cells[0][:2] == ['n2', 'n9'] and latency.cells[0][4] == 'bad pair'
    assert float(latency.cells[0][2]) == pytest.approx(6, rel=0.1)
    assert (latency.colours, bandwidth.colours) == ('high', 'low')
    assert bandwidth.headings[2] == 'bandwidth [MB/s]'
    assert float(bandwidth.cells[0][2]) == pytest.approx(20000, rel=0.2)
    assert float(bandwidth.cells[0][3]) < 1 < float(latency.cells[0][3])


def test_less_bandwidth_is_a_part_of_the_median():
    now = screening(16)
    now.links.bandwidth[20] *= 0.25
    a, b = now.links.ends[20]
    *_, bandwidth = shown(now).charts
    assert bandwidth.panels[0].values[a][b] == pytest.approx(0.25, rel=0.1)
    assert bandwidth.cells[0][:2] == [f'n{a}', f'n{b}']
    assert float(bandwidth.cells[0][3]) == pytest.approx(0.25, rel=0.1)


def test_pairs_of_a_bad_node_name_it():
    _, latency, _ = shown(slow_links(screening(16), lambda a, b: 5 in (a, b))).charts
    assert all('n5: bad' in row[4] for row in latency.cells[:15])
    assert latency.cells[15][4] == '-'


def test_a_screening_without_pairs_has_no_matrix():
    now = screening(8)
    none = replace(
        now.links,
        ends=now.links.ends[:0],
        latency=now.links.latency[:0],
        bandwidth=now.links.bandwidth[:0],
        alone=now.links.alone[:0],
    )
    (nodes,) = shown(replace(now, links=none)).charts
    assert nodes.title.startswith('Nodes')


# Many nodes ---------------------------------------------------------------------------------------


def test_a_thousand_nodes_are_a_map_and_take_little(golden_report):
    now = large(1000)
    now.values['triad alone'][777] *= 0.5
    a, b = (int(end) for end in now.links.ends[4321])
    now.links.latency[4321] *= 5
    found = shown(now)
    nodes, latency, _ = found.charts
    assert len(nodes.cells) == 1000 and len(nodes.rows) == len(nodes.columns) == 32
    assert nodes.marks[0].cells == [divmod(777, 32)]
    assert not nodes.labels
    # The worst pair is seen, though a cell is of many.
    assert len(latency.rows) == 63 and latency.rows[1] == 'node00016'
    assert latency.panels[0].values[a // 16][b // 16] == pytest.approx(5, rel=0.1)
    assert latency.cells[0][:2] == [f'node{a:05}', f'node{b:05}']
    assert f'The table has the 200 worst of {len(now.links.ends)} pairs.' in latency.notes
    assert 'Where there is no colour no pair was measured.' in latency.notes
    without = len(page.page(found_in(filled(golden_report))))
    drawing = 1_900_000
    assert len(page.page(found_in(filled(golden_report), screened=[found]))) - without < (
        drawing + 250_000
    )


def test_of_more_nodes_those_that_matter_are_shown():
    now = large(3000)
    # The last one is as fast as the one in the middle, and wrong all the same.
    now = replace(now, faults=(*now.faults[:-1], {'wrong': 1}))
    for values in now.values.values():
        values[2999] = np.median(values)
    now.values['triad alone'][5] *= 1.2  # not found, and far off
    nodes, latency, _ = shown(now).charts
    assert len(nodes.cells) == 1024 and nodes.cells[-1][:2] == ['node02999', 'bad']
    assert [row[0] for row in nodes.cells] == sorted(row[0] for row in nodes.cells)
    assert 'node00005' in [row[0] for row in nodes.cells]
    assert any('These are 1024 of 3000 nodes' in note for note in nodes.notes)
    assert len(latency.rows) <= 64


def test_findings_without_end_are_counted(golden_report):
    now = screening(60)
    for number in range(50):
        now.faults[number]['wrong'] = 1
    found = shown(now)
    assert (len(found.told), found.more) == (40, 10)
    assert 'and 10 more findings' in page.page(found_in(golden_report('Passed'), screened=[found]))


# Text ---------------------------------------------------------------------------------------------


def test_names_of_nodes_and_facts_are_text(golden_report):
    now = screening(len(HOSTILE), facts={0: {'kernel': HOSTILE[0]}})
    for faults, text in zip(now.faults, HOSTILE, strict=True):
        faults['placement'] = text
    now = replace(
        now, nodes=tuple(HOSTILE), system=HOSTILE[1], fabric=HOSTILE[2], environment=HOSTILE[0]
    )
    now = replace(now, switches={HOSTILE[3]: tuple(HOSTILE[:3])})
    seen = Seen(page.page(found_in(filled(golden_report), screened=[shown(now)])))
    assert seen.tags.count('script') == 4 and 'img' not in seen.tags and 'iframe' not in seen.tags
    assert not [one for one in seen.attributes if one[1].startswith('on') or one[1] == 'src']
    assert '<script>alert(1)</script>' in seen.text
    data, _ = seen.packed
    assert json.loads(data)[0]['texts'] and not {'<', '>', '&'} & {*data}
