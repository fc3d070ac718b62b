"""What is told of stacks; those in tests/golden/stacks are of real ranks."""

import shutil

import pytest

from assay import paths
from assay.job.ending import innermost_calls, seconds_until_stacks

GOLDEN = paths.ROOT / 'tests' / 'golden' / 'stacks'


@pytest.fixture
def told(tmp_path):
    """What is told of a job with these stacks, one file for each host."""

    def tell(*texts):
        for number, text in enumerate(texts):
            (tmp_path / f'witness.json.stacks-n{number + 1}').write_text(text)
        found = innermost_calls(tmp_path)
        return found and found.replace(str(tmp_path), '/stage')

    return tell


HANGS = 'in hang at /src/endings.c:351'
RECEIVES = 'in MPI_Recv, called by hang at /src/endings.c:349'


@pytest.mark.parametrize(
    ('name', 'ranks'),
    [
        ('openmpi-ring', {0: 'in MPI_Recv, called by batch'}),
        ('openmpi-endings', {0: HANGS, 2: RECEIVES, 1: RECEIVES}),
        ('mpich-endings', {0: HANGS, 1: RECEIVES, 2: RECEIVES}),
    ],
)
def test_real_stacks(told, name, ranks):
    seen = '; '.join(f'rank {rank} on n1 was {where}' for rank, where in ranks.items())
    assert told((GOLDEN / name).read_text()) == f'{seen} (stacks: /stage/witness.json.stacks-n1)'


def stack(who, *frames):
    lines = ''.join(f'#{depth}  {frame}\n' for depth, frame in enumerate(frames))
    return f'== {who}, pid 7\n\nThread 1 (LWP 7):\n{lines}[Inferior 1 (process 7) detached]\n'


@pytest.mark.parametrize(
    ('frames', 'where'),
    [
        # Started, but not through MPI_Init.
        (
            [
                '0x1 in poll () from /lib/libc.so.6',
                '0x2 in PMPI_Init (argc=...) from /l/libmpi.so.40',
                '0x3 in MPI_Init () from /w/libassay_witness.so',
                '0x4 in main (argc=...) at a.c:3',
            ],
            'in MPI_Init, called by main at a.c:3',
        ),
        # A stripped program.
        (['0x1 in MPI_Recv () from /w/libassay_witness.so', '0x2 in ?? ()'], 'in MPI_Recv'),
        # C++ outside MPI, in a library that it calls.
        (
            [
                '0x1 in dgemm_ () from /l/libopenblas.so.0',
                '0x2 in Solver::step(int, double const*) (this=...) at ../src/solver.cpp:9',
            ],
            'in Solver::step(int, double const*) at ../src/solver.cpp:9',
        ),
        # No frame of its own.
        (['0x1 in poll () from /lib/libc.so.6'], 'in poll'),
    ],
)
def test_where_a_rank_was(told, frames, where):
    assert told(stack('rank 3 on n2', *frames)) == (
        f'rank 3 on n2 was {where} (stacks: /stage/witness.json.stacks-n1)'
    )


def test_many_ranks_on_several_hosts(told):
    ranks = [stack(f'rank {rank} on n{1 + rank // 4}', 'main () at a.c:3') for rank in range(8)]
    seen = '; '.join(f'rank {rank} on n1 was in main at a.c:3' for rank in range(4))
    assert told(''.join(ranks[:4]), ''.join(ranks[4:])) == (
        f'{seen} (stacks: /stage/witness.json.stacks-*)'
    )


@pytest.mark.parametrize(
    'text',
    [
        '',
        '== rank 0 on n1, pid 7\nptrace: Operation not permitted.\n',
        '== rank 0 on n1, pid 7\n\nThread 1 (LWP 7):\n',
        stack('rank 0 on n1', '<signal handler called>'),
    ],
)
def test_no_stacks(told, text):
    assert told(text) is None


def test_none_were_taken(told):
    assert told() is None


@pytest.mark.parametrize(('limit', 'after'), [(10, 8), (60, 48), (300, 270), (21600, 21570)])
def test_when_they_are_taken(limit, after):
    assert seconds_until_stacks(limit) == after


def test_beside_the_report_of_any_launch_of_a_job(tmp_path):
    (tmp_path / '2x1-cache').mkdir()
    shutil.copy(GOLDEN / 'openmpi-ring', tmp_path / '2x1-cache' / 'witness.json.stacks-n1')
    assert innermost_calls(tmp_path).endswith('/2x1-cache/witness.json.stacks-n1)')
