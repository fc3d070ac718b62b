"""Pictures: what stands in them, and what cannot be drawn."""

import re
import struct
from xml.etree import ElementTree

import pytest

from assay import AssayError, witness
from assay.report import pictures
from witnessed import call, halo, host, partner, process, report, wait, write


def drawn(tmp_path, found, name='job.svg'):
    path = tmp_path / name
    pictures.draw(found, path)
    return path


def words(path):
    return re.findall(r'<text[^>]*>([^<]*)</text>', path.read_text())


@pytest.fixture
def job(tmp_path):
    def make(ranks, hosts=1):
        return witness.read(write(tmp_path / 'r.json', halo(ranks, hosts)))

    return make


def test_labels_units_and_legend(tmp_path, job):
    seen = words(drawn(tmp_path, job(16, 2)))
    assert 'halo --n 64 (ranks: 16, hosts: 2)' in seen
    assert {'sender (rank)', 'receiver (rank)', 'rank', '% of wall time'} <= set(seen)
    assert 'bytes sent (logarithmic; white: none)' in seen
    assert {'100 kB', '1 MB'} <= {text.replace('\N{NO-BREAK SPACE}', ' ') for text in seen}
    # The means over the ranks, as in the tables.
    assert {'computation (70.0%)', 'transfer (17.3%)', 'imbalance (7.5%)'} <= set(seen)
    assert {'late sender (3.9%)', 'late receiver (1.3%)'} <= set(seen)


def test_bytes_are_in_the_row_of_their_sender(job):
    cells, block = pictures.bytes_by_block(job(3))
    assert block == 1
    assert cells.tolist() == [[0, 10**6, 10**6], [10**6, 0, 10**6], [10**6, 10**6, 0]]
    partners = [partner(2, 1, 7), partner(-1, 1, 9), partner(0, 2, 0)]
    found = report([process(0, partners=partners), process(1, (1,)), process(2, (2,))])
    assert pictures.bytes_by_block(found)[0].tolist() == [[1, 0, 7], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(('ranks', 'block'), [(512, 1), (514, 2), (1026, 3)])
def test_blocks_hold_the_bytes_of_their_ranks(job, ranks, block):
    found = job(ranks)
    cells, of = pictures.bytes_by_block(found)
    assert (of, len(cells)) == (block, -(-ranks // block))
    assert cells.sum() == 2 * ranks * 10**6
    parts, of = pictures.parts_by_block(found)
    assert (of, len(parts['transfer'])) == (block, len(cells))
    assert sum(parts.values()) == pytest.approx(100)
    assert parts['computation'][0] == pytest.approx(80, abs=0.1)
    assert parts['computation'][-1] == pytest.approx(60, abs=0.1)


def test_parts_are_percent_of_each_ranks_wall_time():
    calls, waits = {'MPI_Recv': call(1, 2.0)}, {'MPI_Recv': wait(2.0, late_sender=0.5)}
    one = process(0, wall=4.0, mpi_time=2.0, calls=calls, waits=waits)
    parts, _ = pictures.parts_by_block(report([one, process(1, (1,), wall=2.0)]))
    assert parts['computation'].tolist() == [50, 100]
    assert parts['transfer'].tolist() == [37.5, 0]
    assert parts['late_sender'].tolist() == [12.5, 0]
    parts, _ = pictures.parts_by_block(report([process(wall=0.0)]))
    assert parts['computation'].tolist() == [0]


def test_many_ranks_are_drawn_in_blocks(tmp_path, job):
    path = drawn(tmp_path, job(1000, 20))
    assert 'bytes sent, 2 by 2 ranks a dot (logarithmic; white: none)' in words(path)
    assert 'rank (mean of 2)' in words(path)
    # 500 blocks of five parts; the rest are lines and the legend.
    bars = path.read_text().count('<path')
    assert 2500 <= bars < 2700


def test_a_png_has_its_size(tmp_path, job):
    data = drawn(tmp_path, job(2), 'job.PNG').read_bytes()
    assert data[:8] == b'\x89PNG\r\n\x1a\n'
    assert struct.unpack('>II', data[16:24]) == (1560, 720)


@pytest.mark.parametrize('name', ['a.svg', 'a.png'])
def test_equal_reports_are_equal_files(tmp_path, job, name):
    first = drawn(tmp_path, job(4), name).read_bytes()
    assert drawn(tmp_path, job(4), f'b{name}').read_bytes() == first


def test_sections_that_are_off(tmp_path, job):
    assert 'no section matrix in this report' in words(
        drawn(tmp_path, job(4).model_copy(update={'sections': ['profile']}))
    )
    assert 'no section profile in this report' in words(
        drawn(tmp_path, job(4).model_copy(update={'sections': ['matrix']}))
    )


def test_a_job_without_messages_and_one_with_empty_ones(tmp_path):
    assert 'no messages between ranks' in words(drawn(tmp_path, report([process()])))
    outside = report([process(partners=[partner(-1, 3, 50)])])
    assert 'no messages between ranks' in words(drawn(tmp_path, outside))
    empty = report([process(partners=[partner(1, 3, 0)]), process(1, (1,))], [host()])
    assert 'sender (rank)' in words(drawn(tmp_path, empty))


def test_a_command_with_dollars_is_no_formula(tmp_path):
    found = report([process()], command=['./a', '$x_1$', 'y' * 100])
    assert any('$x_1$' in text and '…' in text for text in words(drawn(tmp_path, found)))


def test_a_command_of_any_characters_is_a_picture(tmp_path):
    found = report([process()], command=['./a\x00\x1b[1A\n\u202e'])
    path = drawn(tmp_path, found)
    ElementTree.parse(path)
    assert any(r'a\x00\x1b[1A \u202e' in text for text in words(path))


@pytest.mark.parametrize('name', ['job.pdf', 'job', 'png'])
def test_other_suffixes(tmp_path, job, name):
    with pytest.raises(AssayError, match=rf'{name}: a picture ends in \.png or \.svg'):
        pictures.draw(job(2), tmp_path / name)
    assert not (tmp_path / name).exists()


def test_what_cannot_be_drawn(tmp_path, job):
    with pytest.raises(AssayError, match='nothing to draw: the report is incomplete'):
        pictures.draw(report([process()], complete=False), tmp_path / 'a.svg')
    with pytest.raises(AssayError, match='nothing to draw: the report has no profile and no mat'):
        pictures.draw(report([process()], sections=['placement', 'fabric']), tmp_path / 'a.svg')
    with pytest.raises(AssayError, match=r'absent/a\.svg: cannot be written: No such'):
        pictures.draw(job(2), tmp_path / 'absent' / 'a.svg')
