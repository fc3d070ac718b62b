"""What jobs wrote, read in bounded memory."""

import re
import tracemalloc

import pytest

from assay import paths
from assay.config.fabrics import load_catalogue
from assay.job import output
from assay.job.output import Output, TooMuchError, first_match, reason_in_output, without_log_lines

STATEMENTS = paths.ROOT / 'tests' / 'golden' / 'statements'
PAIR = '[n{host}:1234] mca: bml: Using tcp btl for send to [[1,1],{rank}] on node n{host}\n'


def written(folder, *texts):
    files = []
    for number, text in enumerate(texts):
        files.append(folder / f'{number}')
        files[-1].write_bytes(text if isinstance(text, bytes) else text.encode())
    return Output(tuple(files))


PIECE, MOST = 1 << 16, 1 << 18


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Pieces, and limits, of less than real jobs' outputs are read by."""
    monkeypatch.setattr(output, 'PIECE', PIECE)
    monkeypatch.setattr(output, 'MOST', MOST)


@pytest.fixture
def loud(tmp_path):
    """As much as 32 pieces of what Open MPI says of pairs of ranks, round what a program says."""
    lines = ''.join(PAIR.format(host=rank % 64, rank=rank) for rank in range(16 * PIECE // 70))
    return written(tmp_path, lines + 'one\n' + lines, 'two\n')


def test_pieces_are_of_whole_lines(tmp_path, loud):
    assert all(piece.endswith('\n') for piece in loud)
    assert ''.join(loud) == ''.join(f'{path.read_text()}\n' for path in loud.files)[:-1]
    # Of a file that ends within a line the next one begins a line of its own.
    assert ''.join(written(tmp_path, 'a', 'b\n')) == 'a\nb\n'
    assert ''.join(written(tmp_path, b'\xff\xc3', '')) == '\ufffd\ufffd\n'


def test_what_is_large_is_never_whole_in_memory(loud):
    catalogue = load_catalogue()
    size = sum(path.stat().st_size for path in loud.files)
    tracemalloc.start()
    assert loud.text == 'one\n\ntwo\n'
    assert reason_in_output('pt2pt', loud) == 'two'
    assert first_match(re.compile('never said'), loud) is None
    assert catalogue.verify('tcp', 'openmpi', loud) is None
    assert 'tcp was used instead' in catalogue.verify('shm', 'openmpi', loud)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < size / 2


def test_a_line_without_end(tmp_path):
    endless = written(tmp_path, 'x' * (3 * PIECE))
    assert [len(piece) for piece in endless] == [2 * PIECE, PIECE]


def test_a_program_that_writes_too_much(tmp_path):
    assert len(written(tmp_path, 'x' * 79 + '\n', 'y' * (MOST - 81)).text) == MOST
    with pytest.raises(TooMuchError, match='0 and 1 hold more than 0 MiB that no MPI logged'):
        written(tmp_path, 'x' * 79 + '\n', 'y' * MOST).text  # noqa: B018


@pytest.mark.parametrize('path', sorted(STATEMENTS.glob('*.out')), ids=lambda path: path.stem)
def test_what_is_logged_is_not_the_program(path):
    """All that the program of these runs printed is left, and it is most of what is left."""
    text = path.read_text(errors='replace')
    own = re.findall(r'^np=\d+ .*\n', text, re.MULTILINE)
    left = without_log_lines(text)
    assert re.findall(r'^np=\d+ .*\n', left, re.MULTILINE) == own
    assert not re.search(r'UCX +(INFO|DIAG)|bml: Using|<info>|mca: base', left)
