"""The page of one job: what is drawn on it, and what cannot be."""

import pytest

from assay import AssayError, witness
from assay.commands import main as cli
from assay.report.html import jobs, page
from pages import HOSTILE, Seen
from witnessed import call, halo, host, partner, process, report, wait, write


@pytest.fixture
def job(tmp_path):
    def make(ranks, hosts=1):
        return witness.read_witness(write(tmp_path / 'r.json', halo(ranks, hosts)))

    return make


def time_of(found):
    return jobs.of_job(found)[-1]


def parts(chart):
    """The values of each part, by its name without the mean."""
    return {one.name.partition(' (')[0]: one.values for one in chart.series}


def test_what_is_drawn_of_a_job(job):
    matrix, sizes, seats, places, time = jobs.of_job(job(16, 2))
    assert sizes.title == 'Sizes of messages: halo'
    assert places.title == 'Who sent to whom, by place: halo'
    assert (matrix.upwards.title, matrix.across.title) == ('from rank', 'to rank')
    assert seats.title == 'Where ranks sat: halo'
    assert (time.across.title, time.upwards.title) == ('of the wall time [%]', 'rank')
    # The means over the ranks, as in the tables.
    assert [one.name for one in time.series] == [
        'computation (70.0%)',
        'transfer (17.3%)',
        'imbalance (7.5%)',
        'late sender (3.9%)',
        'late receiver (1.3%)',
    ]


def test_parts_are_percent_of_each_ranks_wall_time():
    calls, waits = {'MPI_Recv': call(1, 2.0)}, {'MPI_Recv': wait(2.0, late_sender=0.5)}
    one = process(0, wall=4.0, mpi_time=2.0, calls=calls, waits=waits)
    found = parts(time_of(report([one, process(1, (1,), wall=2.0)])))
    assert found['computation'] == [50, 100]
    assert found['transfer'] == [37.5, 0]
    assert found['late sender'] == [12.5, 0]
    assert parts(time_of(report([process(wall=0.0)])))['computation'] == [0]


@pytest.mark.parametrize(('ranks', 'rows', 'bars'), [(128, 128, 32), (130, 65, 26)])
def test_many_ranks_of_a_host_are_drawn_in_blocks(job, ranks, rows, bars):
    matrix, *_, time = jobs.of_job(job(ranks))
    sent = sum(value for row in matrix.panels[0].values for value in row if value)
    assert (len(matrix.rows), sent) == (rows, 2 * ranks * 10**6)
    assert len(time.places) == bars
    assert [sum(one) for one in zip(*parts(time).values(), strict=True)] == [
        pytest.approx(100) for _ in range(bars)
    ]


def test_many_ranks_of_several_hosts_are_drawn_by_host(job):
    matrix, *_, time = jobs.of_job(job(160, 20))
    assert (len(matrix.rows), len(time.places), time.upwards.title) == (20, 20, 'node')


def test_sections_that_are_off(job):
    found = job(4)
    *_, seats = jobs.of_job(found.model_copy(update={'sections': ['matrix']}))
    assert seats.title.startswith('Where ranks sat')
    seats, time = jobs.of_job(found.model_copy(update={'sections': ['profile']}))
    assert 'The report has no section matrix: who sent to whom is not known.' in seats.notes
    assert time.kind == 'stacked'


def test_of_a_job_that_never_ended_its_seats_are_drawn():
    (seats,) = jobs.of_job(report([process()], complete=False))
    assert 'The job did not get to MPI_Finalize: who sent to whom is not known.' in seats.notes


def test_nothing_to_draw():
    none = host(domains=[[0]]) | {'cores': '', 'numa': []}
    with pytest.raises(AssayError, match='nothing to draw'):
        jobs.of_job(report([process()], [none], sections=['placement', 'fabric']))


def test_equal_reports_are_equal_pages(job):
    assert page.page_of_job(job(4)) == page.page_of_job(job(4))


@pytest.mark.parametrize('text', HOSTILE)
def test_what_a_job_is_called_is_text(text):
    some = [process(0, on=text, partners=[partner(1, 1, 10)]), process(1, (1,), on=text)]
    seen = Seen(page.page_of_job(report(some, [host(text)], command=[text, text])))
    assert 'Where ranks sat' in seen.text
    assert seen.tags.count('script') == 4 and 'img' not in seen.tags
    assert not [one for one in seen.attributes if one[1].startswith('on') or one[1] == 'src']


def test_the_command(tmp_path, monkeypatch, capsys):
    path = write(tmp_path / 'r.json', halo(2))

    def run(name):
        monkeypatch.setattr('sys.argv', ['assay', 'witness', str(path), '--picture', name])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code

    assert not run(str(tmp_path / 'job.html'))
    seen = Seen((tmp_path / 'job.html').read_text())
    assert 'halo --n 64' in seen.text and 'ranks: 2, hosts: 1' in seen.text
    assert capsys.readouterr().out.endswith('job.html\n')
    for name in ('job.svg', 'job'):
        assert 'a picture is a page for a browser' in str(run(str(tmp_path / name)))
        assert not (tmp_path / name).exists()
