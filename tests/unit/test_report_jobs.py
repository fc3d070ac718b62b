"""What the page of a run shows of applications' jobs: who sent to whom, and where ranks sat."""

import json
import os
from pathlib import Path

import pytest

from assay import paths
from assay.report.html import jobs, page
from assay.results.reframe_report import case_of
from assay.witness.profile import COLLECTIVES, MESSAGES, ONE_SIDED
from pages import HOSTILE, Seen, filled, found_in
from reports import cases
from witnessed import (
    entries,
    halo,
    host,
    kept_plan,
    partner,
    process,
    sent,
    thread,
    validated,
    write,
)


@pytest.fixture
def ran(golden_report, tmp_path):
    """The case of an application that left this report of the witness."""

    def run(report, count=1, name='witness.json'):
        some = cases(filled(golden_report, count, tmp_path / 'output'))
        for case in some:
            case['implementation'] = 'assay'
        path = tmp_path / 'output' / name
        path.parent.mkdir(exist_ok=True)
        write(path, report)
        return some

    return run


def only(found):
    (charts, notes) = found
    assert notes == []
    return charts


def named(found, title):
    """The one of that name."""
    (one,) = (one for one in found if one.title.startswith(f'{title}: '))
    return one


def matrix_of(report):
    return named(jobs._of_job(validated(report), 'job'), 'Who sent to whom')


def shown(some):
    return jobs.job_charts([*map(case_of, some)])


# Which jobs ---------------------------------------------------------------------------------------


def test_jobs_of_real_applications(ran):
    for path in sorted(paths.ROOT.glob('tests/golden/jobs/Mini*/*/witness.json')):
        matrix, sizes, seats = only(shown(ran(json.loads(path.read_text()))))
        assert sizes.panels[0].values[0][-1] > 0
        assert matrix.panels[0].values[0][1] > 0 < matrix.panels[0].values[1][0]
        assert matrix.panels[0].values[0][0] is None
        assert seats.labels == [['0', '1']] and seats.panels[0].values == [[1, 1]]
        assert matrix.title == 'Who sent to whom: PointToPoint 1_node shm packed openmpi'


def test_of_benchmarks_and_of_what_is_gone_nothing_is_shown(ran, tmp_path):
    some = ran(halo(4))
    del some[0]['implementation']
    assert shown(some) == ([], [])
    some = ran(halo(4))
    (tmp_path / 'output' / 'witness.json').unlink()
    assert shown(some) == ([], [])
    (tmp_path / 'output').rename(tmp_path / 'elsewhere')
    assert shown(some) == ([], [])


def test_of_a_series_the_largest_start_is_shown(ran):
    ran(halo(2), name='2x1-cache/witness.json')
    matrix, *_ = only(shown(ran(halo(8), name='10x1-cache/witness.json')))
    assert matrix.title.endswith(' 10x1-cache') and len(matrix.rows) == 8


def test_one_that_is_damaged_is_told(ran, tmp_path):
    some = ran(halo(4))
    (tmp_path / 'output' / 'witness.json').write_text('{"schema": 9}')
    charts, (note,) = shown(some)
    assert charts == []
    assert note.startswith('What the witness saw of a job cannot be shown') and '9' in note


def test_one_of_endless_length_is_not_read(ran, tmp_path, monkeypatch):
    some = ran(halo(4))
    monkeypatch.setattr(jobs, 'MOST_BYTES', 100)
    charts, (note,) = shown(some)
    assert charts == [] and 'is not read' in note


def test_a_pipe_is_not_waited_for(ran, tmp_path):
    some = ran(halo(4))
    os.mkfifo(tmp_path / 'output' / 'witness.json.ranks')
    charts, (note,) = shown(some)
    assert charts == [] and 'witness.json.ranks: no file' in note
    (tmp_path / 'output' / 'witness.json.ranks').unlink()
    (tmp_path / 'output' / 'witness.json').unlink()
    os.mkfifo(tmp_path / 'output' / 'witness.json')
    charts, (note,) = shown(some)
    assert charts == [] and 'witness.json: no file' in note


def test_of_many_jobs_the_first_are_shown(ran):
    charts, (note,) = shown(ran(halo(2), count=30))
    assert len(charts) == 3 * jobs.MOST
    assert 'the first 12 of 30 jobs of applications' in note


# Messages -----------------------------------------------------------------------------------------


def test_a_matrix_of_ranks():
    matrix = matrix_of(halo(4, bytes_each=123_456))
    (panel,) = matrix.panels
    assert panel.values[0] == [None, 123000, None, 123000]
    assert panel.values[1] == [123000, None, 123000, None]
    assert (matrix.across.title, matrix.upwards.title) == ('to rank', 'from rank')
    assert matrix.ends == (100_000, 1_000_000) and matrix.measure.is_logarithmic
    assert matrix.headings[:4] == ['from rank', 'to rank', 'kind', 'messages [1]']
    assert matrix.cells[0] == ['0', '1', MESSAGES, '100', '123456', '123.5 kB']


def test_each_kind_has_a_matrix_of_its_own():
    """What a collective sends to each of several ranks is in the cell of each."""
    one_sided = partner(1, 1, 64) | {'kind': 'one_sided'}
    collectives = [sent('0,2-3', 1, 1000)]
    some = [process(rank, (rank,)) for rank in range(4)]
    some[1] = process(1, (1,), partners=[partner(0, 1, 8), one_sided], collectives=collectives)
    matrix, _ = [*jobs._of_job(validated(entries(some)), 'job')]
    rows = {panel.title: panel.values[1] for panel in matrix.panels}
    assert rows == {
        MESSAGES: [8, None, None, None],
        COLLECTIVES: [1000, None, 1000, 1000],
        ONE_SIDED: [None, 64, None, None],
    }
    assert matrix.cells[0] == ['1', 'each of 0,2-3', COLLECTIVES, '1', '1000', '1.0 kB']
    (blocks, _) = jobs._of_job(validated(entries(some)), 'job', 2)
    assert [panel.values[0] for panel in blocks.panels][1] == [1000, 2000]


def test_many_ranks_are_grouped_to_their_nodes():
    matrix = matrix_of(halo(64, hosts=4, bytes_each=10))
    assert matrix.rows == matrix.columns == ['n1', 'n2', 'n3', 'n4']
    # Of 16 ranks in a row 15 send to the next and to the one before within the node.
    assert matrix.panels[0].values[0] == [300, 10, None, 10]
    assert matrix.across.title == 'to node'
    assert 'The table has the 16 heaviest of 128 pairs of ranks.' in matrix.notes


def test_many_nodes_and_many_ranks_of_one_are_blocks():
    found = [*jobs._of_job(validated(halo(200, hosts=100, bytes_each=10)), 'job')]
    matrix, seats = named(found, 'Who sent to whom'), named(found, 'Where ranks sat')
    assert len(matrix.rows) == 25 and matrix.rows[:2] == ['n1', 'n5']
    assert matrix.across.title == 'to nodes, 4 from'
    assert len(seats.rows) == jobs.MOST_SEATS
    assert 'These are 32 of 200 rows of cores' in seats.notes[0]
    matrix = matrix_of(halo(64, bytes_each=10))
    assert len(matrix.rows) == 32 and matrix.rows[:2] == ['0-1', '2-3']
    assert matrix.panels[0].values[0][:3] == [20, 10, None]


def test_messages_to_nobody_of_these_and_empty_ones():
    some = [process(0, partners=[partner(1), partner(-1, 3, 50)]), process(1, (1,))]
    matrix, _ = [*jobs._of_job(validated(entries(some)), 'job')]
    assert matrix.panels[0].values == [[None, 1], [None, None]]
    assert matrix.ends == (1, 10)
    assert matrix.cells[0] == ['0', 'outside', MESSAGES, '3', '50', '50 B']


@pytest.mark.parametrize('sent', [(10**400, 1), (1, 10**400), (1, 1 << 63)])
def test_more_than_any_job_sends_leaves_out_the_job(ran, sent):
    some = [process(0, partners=[partner(1, *sent)]), process(1, (1,))]
    charts, (note,) = shown(ran(entries(some)))
    assert charts == []
    assert note.endswith('a rank sent more to another than any job sends')


@pytest.mark.parametrize(
    ('changed', 'words'),
    [
        ({'complete': False}, 'did not get to MPI_Finalize'),
        ({'sections': ['placement']}, 'no section matrix'),
        ({}, 'No message went from rank to rank'),
    ],
)
def test_what_is_not_known_of_messages_is_said(changed, words):
    some = [process(0), process(1, (1,))]
    (seats,) = jobs._of_job(validated(entries(some, **changed)), 'job')
    assert words in seats.notes[0] and seats.labels[0] == ['0', '1']


# Plans --------------------------------------------------------------------------------------------


@pytest.fixture
def plan_of(tmp_path):
    """The charts behind the messages of a job of 4 ranks on 2 nodes with a kept plan."""

    def run(plan, report=None):
        path = write(tmp_path / 'r.json', report or halo(4, 2))
        path.with_name('r.json.plan').write_text(json.dumps(plan))
        return [*jobs._of_job(jobs._read(path), 'job')][2:]

    return run


def test_a_kept_plan_is_drawn(plan_of):
    *_, chart = plan_of(kept_plan([0, 2, 1, 3], turns={'verdict': 'better', 'ratio': 0.8}))
    assert chart.rows == ['switch 0, n1 socket 0', 'switch 1, n2 socket 0']
    assert chart.labels == [['0', '1 > 2'], ['2 > 1', '3']]
    assert chart.panels[0].values == [[0, 1], [1, 0]]
    assert chart.cells == [['1', 'n1', 'n2'], ['2', 'n2', 'n1']]
    assert 'Expected gain: 25.0% of the wall time (20.0% to 30.0%).' in chart.notes
    assert 'better: it took 0.800 times as long.' in chart.notes[-1]


@pytest.mark.parametrize('other', [{'started': '2020-01-01T00:00:00Z'}, {'ranks': []}])
def test_a_plan_of_an_earlier_job_is_not_drawn(plan_of, other):
    seats, places = plan_of(kept_plan([0, 2, 1, 3], **other))
    assert seats.notes == [] and len(places.panels) == 1


def test_a_plan_that_decided_nothing(plan_of):
    *_, chart = plan_of(kept_plan([0, 2, 1, 3], turns={'verdict': 'cannot tell', 'ratio': 0.97}))
    assert 'was not proven faster or slower: it took 0.970' in chart.notes[-1]


def test_what_is_no_plan_of_the_job_is_not_drawn_and_told(ran, tmp_path):
    some = ran(halo(4, 2))
    (tmp_path / 'output/witness.json.plan').write_text('{}')
    charts, (note,) = shown(some)
    assert len(charts) == 4 and note.endswith('no plan of this job: it is not drawn.')


def test_of_many_rows_of_seats_those_that_change_are_drawn(tmp_path):
    path = write(tmp_path / 'r.json', halo(80, 40))
    seat_of = [*range(80)]
    seat_of[75], seat_of[77] = 77, 75
    path.with_name('r.json.plan').write_text(json.dumps(kept_plan(seat_of)))
    plan = named(jobs._of_job(jobs._read(path), 'job'), 'Where ranks should sit')
    assert plan.rows[:2] == ['switch 0, n39 socket 0', 'switch 1, n38 socket 0']
    assert plan.labels[0] == ['76', '77 > 75'] and len(plan.rows) == 32
    assert 'These are 32 of 40 rows of seats, those that change first.' in plan.notes


@pytest.mark.parametrize('verdict', ['leave it', 'place'])
def test_a_plan_that_moves_nobody_is_told_and_not_drawn(plan_of, verdict):
    """Nor one whose gain is not worth it."""
    seat_of = [0, 2, 1, 3] if verdict == 'leave it' else [0, 1, 2, 3]
    seats, places = plan_of(kept_plan(seat_of, verdict=verdict))
    assert seats.notes == [f'A plan was made: {verdict}: messages take half of the time.']
    assert [panel.title for panel in places.panels] == [''] and len(places.headings) == 2


# Messages by place --------------------------------------------------------------------------------


def test_messages_by_seat_before_and_after(plan_of):
    """Two rings of two, dealt round two nodes: as planned none leaves its node."""
    report = halo(4, 2)
    for rank, one in enumerate(report['processes']):
        one['partners'] = [partner((rank + 2) % 4, 10, 5000), partner(-1, 1, 9), partner(rank)]
    places, _ = plan_of(kept_plan([0, 2, 1, 3]), report)
    names = ['n1 domain 0: 0', 'n1 domain 0: 1', 'n2 domain 0: 0', 'n2 domain 0: 1']
    assert places.rows == places.columns == names
    now, then = places.panels
    assert now.title == 'as ranks sat' and then.title == 'as planned (expected gain: 25.0%)'
    assert now.values[0] == [None, None, 5000, None] and now.values[3] == [None, 5000, None, None]
    assert then.values[0] == [None, 5000, None, None] and then.values[3] == [None, None, 5000, None]
    assert places.headings == ['distance', *(f'{panel.title} [B]' for panel in places.panels)]
    assert places.cells == [
        ['within a NUMA domain', '0', '20000'],
        ['between switches', '20000', '0'],
    ]


def by_place(report):
    return named(jobs._of_job(validated(report), 'job'), 'Who sent to whom, by place')


def test_places_of_many_ranks_are_their_domains_or_nodes():
    report = halo(64, hosts=4, bytes_each=10)
    for one in report['processes']:
        one['numa'] = str(int(one['cores']) // 8)
    places = by_place(report)
    assert places.rows[:3] == ['n1 domain 0', 'n1 domain 1', 'n2 domain 0']
    # Of eight ranks in a row seven send to the next and to the one before within the domain.
    assert places.panels[0].values[0][:3] == [140, 10, None]
    assert places.cells[1] == ['between NUMA domains of a socket', '80']
    places = by_place(halo(200, hosts=100, bytes_each=10))
    assert len(places.rows) == 25 and places.across.title == 'to nodes, 4 from'


def test_ranks_that_share_a_seat_have_rows_of_their_own():
    some = [process(rank, (0,), f'n{rank // 2}', partners=[partner(0)]) for rank in range(4)]
    places = by_place(entries(some, [host('n0'), host('n1')]))
    assert len({*places.rows}) == 4 and places.rows[2:] == ['n1 domain 0: 0', 'n1 domain 0: 0 (3)']


@pytest.mark.parametrize('partners', [[], [partner(-1, 1, 9)], [partner(0)]])
def test_no_messages_have_no_places(partners):
    some = [process(0, partners=partners), process(1, on='n2')]
    found = jobs._of_job(validated(entries(some, [host(), host('n2')])), 'job')
    assert not [one for one in found if 'by place' in one.title]


# Sizes --------------------------------------------------------------------------------------------


def test_sizes_of_each_kind():
    report = halo(4)
    one = report['processes'][1]
    one['partners'] = [partner(0, 3, 80, {0: 1, 16: 2}) | {'kind': 'one_sided'}]
    one['collectives'] = [sent('0,2-3', 5, 8 << 20, {1 << 20: 5})]
    sizes = named(jobs._of_job(validated(report), 'job'), 'Sizes of messages')
    assert sizes.rows == [MESSAGES, COLLECTIVES, ONE_SIDED]
    # Each size between, so that a gap is seen.
    assert sizes.columns == ['0', *(str(1 << n) for n in range(10)), *_in_ki(1, 512), '1 Mi']
    of_kind = dict(zip(sizes.rows, sizes.panels[0].values, strict=True))
    assert of_kind[MESSAGES][14] == 600 and of_kind[COLLECTIVES][-1] == 15
    assert of_kind[ONE_SIDED][:6] == [1, None, None, None, None, 2]
    assert sizes.cells[1] == ['16', '31', '0', '0', '2']
    assert sizes.texts[1][-1] == 'collectives, 1048576 to 2097151 B'


def _in_ki(first, last):
    return [f'{1 << n} Ki' for n in range(first.bit_length() - 1, last.bit_length())]


@pytest.mark.parametrize('sizes', [{10**400: 1}, {8: 10**400}, {8: 1 << 63}])
def test_more_sizes_than_any_job_has_leave_out_the_job(ran, sizes):
    some = [process(0, partners=[partner(1, 1, 1, sizes)]), process(1, (1,))]
    charts, (note,) = shown(ran(entries(some)))
    assert charts == [] and note.endswith('a rank sent more than any job sends')


def test_odd_sizes_have_a_place():
    """A report of somebody else's: what is no power of two, below 0, or counted 0 times."""
    some = [process(0, partners=[partner(1, 1, 1, {3: 1, -1: 1, 64: 0})]), process(1, (1,))]
    sizes = named(jobs._of_job(validated(entries(some)), 'job'), 'Sizes of messages')
    assert sizes.columns == ['0', '1', '2'] and sizes.panels[0].values == [[1, None, 1]]


# Messages that are not all there ------------------------------------------------------------------


def test_ranks_with_too_many_lists_are_told():
    report = halo(4)
    report['processes'][2]['collectives_incomplete'] = True
    matrix, *_ = jobs._of_job(validated(report), 'job')
    assert 'Incomplete: collectives of these ranks are missing: 2.' in matrix.notes


# Seats --------------------------------------------------------------------------------------------


def test_a_row_for_each_domain_of_each_node():
    hosts = [host('n1', [[0, 1], [2, 3]]), host('n2', [[0, 1, 2]])]
    some = [process(0, (0,)), process(1, (3,)), process(2, (1, 2), 'n2')]
    *_, seats = jobs._of_job(validated(entries(some, hosts)), 'job')
    assert seats.rows == ['n1 domain 0: 0-1', 'n1 domain 1: 2-3', 'n2 domain 0: 0-2']
    assert seats.labels == [['0', '', ''], ['', '1', ''], ['', '2', '2']]
    assert seats.panels[0].values == [[1, 0, None], [0, 1, None], [0, 1, 1]]
    assert seats.texts[1][:2] == ['n1 domain 1, core 2: no rank', 'n1 domain 1, core 3: rank 1']
    assert seats.cells[2] == [
        'n2 domain 0',
        'cores 0-2',
        'core 0: no rank; core 1: rank 2; core 2: rank 2',
    ]
    assert seats.measure.title == 'ranks that may use the core [1]' and not seats.marks


def test_threads_sit_somewhere_too():
    own = [thread(5, (1,), busy=1.0), thread(6, (2,), busy=0.0), thread(7, (0, 1, 2, 3), busy=0.0)]
    *_, seats = jobs._of_job(validated(entries([process(0, (0,), threads=own)])), 'job')
    assert [*seats.labels[0], *seats.labels[1]] == ['0', '0', '0', '']


def test_cores_of_several_ranks_are_marked_and_told():
    some = [process(0, (0,)), process(1, (0,)), process(2, (1,))]
    *_, seats = jobs._of_job(validated(entries(some)), 'job')
    assert seats.labels[0] == ['0-1', '2']
    assert [(mark.name, mark.cells) for mark in seats.marks] == [
        ('shared by several ranks', [(0, 0)])
    ]
    assert 'ranks 0 and 1 share core 0 of node n1.' in seats.notes


def test_nodes_with_shared_cores_are_never_left_out():
    hosts = [host(f'n{number}', [[0, 1]]) for number in range(50)]
    some = [process(number, (0,), f'n{number}') for number in range(50)]
    some += [process(50, (0,), 'n49')]
    *_, seats = jobs._of_job(validated(entries(some, hosts)), 'job')
    assert seats.rows[0] == 'n49 domain 0: 0-1' and len(seats.rows) == 32


def test_a_wide_domain_has_several_rows():
    *_, seats = jobs._of_job(validated(entries([process(0)], [host(domains=[range(40)])])), 'job')
    assert seats.rows == ['n1 domain 0: 0-15', 'n1 domain 0: 16-31', 'n1 domain 0: 32-39']
    assert len(seats.columns) == 16


def test_who_sat_on_no_core_is_told():
    some = [process(0, (0,)), process(1, (9,)), process(2, (11,))]
    *_, seats = jobs._of_job(validated(entries(some)), 'job')
    assert seats.labels == [['0', ''], ['', '']]
    assert 'On no core of these nodes sat 2 ranks: 1-2.' in seats.notes


def test_a_node_without_cores_has_no_map():
    none = host(domains=[[0]]) | {'cores': '', 'numa': []}
    assert [*jobs._of_job(validated(entries([process(0)], [none])), 'job')] == []


# The page -----------------------------------------------------------------------------------------


@pytest.mark.parametrize('text', HOSTILE)
def test_what_a_job_wrote_is_text(golden_report, tmp_path, text):
    report = filled(golden_report, 1, tmp_path / 'output')
    (case,) = cases(report)
    case['implementation'] = case['environ'] = text
    some = [process(0, on=text, partners=[partner(1, 1, 10)]), process(1, (1,), on=text)]
    content = entries(some, [host(text)], command=[text])
    write(Path(tmp_path / 'output' / 'witness.json'), content)
    seen = Seen(page.page(found_in(report)))
    assert 'Where ranks sat' in seen.text
    assert seen.tags.count('script') == 4 and 'img' not in seen.tags
    assert not [one for one in seen.attributes if one[1].startswith('on') or one[1] == 'src']


def test_a_page_with_all_of_it_is_bounded(golden_report, tmp_path):
    """12 jobs of 32 ranks that all send to each other, beside the page without them."""
    report = filled(golden_report, 40, tmp_path / 'output')
    without = len(page.page(found_in(report)))
    everyone = [
        process(
            rank,
            (rank,),
            partners=[partner(to, 9, 123_456_789 + rank * to) for to in range(32) if to != rank],
        )
        for rank in range(32)
    ]
    for one in everyone[16:]:
        one['numa'] = '1'
        one['partners'][0]['sizes'] = {1 << n: n + 1 for n in range(30)}
    domains = [range(16), range(16, 32)]
    path = write(tmp_path / 'output' / 'witness.json', entries(everyone, [host(domains=domains)]))
    path.with_name('witness.json.plan').write_text(json.dumps(kept_plan([*range(31, -1, -1)])))
    for case in cases(report):
        case['implementation'] = 'assay'
    grown = len(page.page(found_in(report))) - without
    assert grown < 12 * 20_000, grown
