"""The witness in programs with threads, under ThreadSanitizer, and in others under the rest."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.machine.mpi import Mpi
from building import SANITIZED
from counted import Expected, recorded
from running import UNDER_THREAD_SANITIZER, Run

SENTENCE = 'WARNING: ThreadSanitizer'
THREADS, SHARED, ROUNDS = 4, 8, 40


@pytest.fixture
def threads(
    build: Callable[..., Path], compiled: Callable[..., Path], witnessed: Callable[..., Run]
) -> Callable[..., Run]:
    """Runs tests/programs/witness/threads.c, linked with the witness, both under ThreadSanitizer.

    It cannot be preloaded: the sanitizer's library would have to come first.
    """
    if not shutil.which('setarch'):
        pytest.skip('needs setarch: ThreadSanitizer wants its addresses at fixed places')
    folder = build('assay_witness', 'thread')
    links = (f'-L{folder}', f'-Wl,-rpath,{folder}', '-Wl,--no-as-needed', '-lassay_witness')
    program = compiled('threads', '-fsanitize=thread', *links)

    def threads(*arguments: str) -> Run:
        return witnessed(
            'setarch', '-R', str(program), *arguments, env=UNDER_THREAD_SANITIZER, preload=''
        )

    return threads


def expected_of_threads() -> Expected:
    """Two ranks: all messages go to the other one, but for those of handles that come and go."""
    expected = Expected(ranks=2)
    both = range(2)
    made = THREADS * ROUNDS // 8
    for rank in both:
        other = 1 - rank
        for thread in range(THREADS):
            expected.send(rank, 'MPI_Isend', other, 4 * (1 + thread), times=ROUNDS)
            if rank == 0:
                expected.send(0, 'MPI_Send', 1, 4 * (1 + thread), times=ROUNDS // 8)
            else:
                expected.call(1, 'MPI_Recv', 4 * (1 + thread), times=ROUNDS // 8)
        expected.send(rank, 'MPI_Sendrecv', other, 4 * 4, times=THREADS * ROUNDS)
        expected.send(rank, 'MPI_Send', other, 0, times=THREADS * ROUNDS // 2)
        expected.send(rank, 'MPI_Send', other, 4 * 8, times=THREADS * ROUNDS // 2)
        expected.send(rank, 'MPI_Send', other, 4, times=THREADS)
    expected.call(both, 'MPI_Irecv', 4 * 8, times=THREADS * ROUNDS)
    expected.call(both, 'MPI_Irecv', 4, times=THREADS)
    expected.call(both, 'MPI_Recv', 4 * 8, times=THREADS * ROUNDS)
    expected.call(both, 'MPI_Waitall', times=THREADS * ROUNDS)
    expected.call(both, 'MPI_Wait', times=THREADS)
    expected.call(both, 'MPI_Allreduce', 4, times=THREADS * ROUNDS // 4)
    expected.call(both, 'MPI_Comm_dup', times=THREADS)
    expected.call(both, 'MPI_Comm_split', times=SHARED + made)
    expected.call(both, 'MPI_Comm_free', times=SHARED + made + THREADS)
    return expected


def test_threads_do_not_race(threads):
    run = threads()
    assert SENTENCE not in run.err + run.out, run.err
    assert recorded(run) == expected_of_threads().processes()
    for process in run.report['processes']:
        assert process['mpi_threads'] == 1 + THREADS


def test_a_race_would_be_seen(threads):
    run = threads('race')
    assert SENTENCE in run.err + run.out
    assert run.code != 0


PROGRAMS = {
    'messages': 'blocking nonblocking complete wildcards exchange probes persistent special '
    'datatypes large requests orphans',
    'communicators': 'split groups inter grid graph star',
    'collectives': 'rooted unrooted nonblocking alone pairs large',
    'one_sided': 'fence lock post windows',
    'later': 'exchange partitioned persistent files',
    'performance': 'list communicators kinds switched sessions wrong end',
    'harmless': 'null-types nobody neighbours sides wrong cancelled failed-waits communicators',
}


@pytest.mark.slow
@pytest.mark.parametrize('program', PROGRAMS)
def test_all_calls_under_the_other_sanitizers(
    build: Callable[..., Path],
    compiled: Callable[..., Path],
    witnessed: Callable[..., Run],
    mpi: Mpi,
    program: str,
):
    """Addresses, leaks and undefined behaviour; each sanitizer ends the program if it finds any."""
    find = ['gcc', '-print-file-name=libasan.so']
    runtime = subprocess.run(find, capture_output=True, text=True, check=True).stdout.strip()
    preload = f'{runtime}:{build("assay_witness", SANITIZED) / "libassay_witness.so"}'
    binary = compiled(program, '-lm')
    run = witnessed(binary, *PROGRAMS[program].split(), ranks=4, preload=preload)
    assert 'Sanitizer' not in run.err, run.err
    assert 'runtime error' not in run.err, run.err
    assert run.code == 0, run.err
    assert run.report['complete']
