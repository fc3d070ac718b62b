"""A short form of the soak: measurements/witness_soak.py does the long one."""

import subprocess

import pytest

from building import SANITIZED
from families import on_one_mpi
from running import YIELDING_COLLECTIVES
from soaking import compare

RANKS, PROGRAMS = 4, 40


@pytest.fixture
def soak(mpi, witnessed_in, compiled, tmp_path):
    """What the witness changes, or miscounts, in the programs from a first one on.

    Not with Intel MPI, which does not get to the end of them by itself.
    """
    if mpi.family == 'intelmpi':
        pytest.skip('Intel MPI hangs in them without the witness')
    program = compiled('soak')

    def run(first, programs, preload=None):
        def launch(arguments, folder, witnessed):
            return witnessed_in(
                folder,
                program,
                *arguments,
                ranks=RANKS,
                preload=preload if witnessed else '',
                env=YIELDING_COLLECTIVES,
            )

        verdict = compare(launch, first, programs, RANKS, tmp_path)
        if verdict.outcome == 'fails alone':
            pytest.skip(f'they fail on this MPI without the witness: {verdict.found}')
        return verdict.found

    return run


@pytest.mark.parametrize('first', [1, 2], ids=['alone', 'threads'])
def test_random_programs(soak, first):
    assert soak(first, PROGRAMS) == []


@pytest.mark.slow
@on_one_mpi
def test_random_programs_under_sanitizers(soak, build):
    find = ['gcc', '-print-file-name=libasan.so']
    runtime = subprocess.run(find, capture_output=True, text=True, check=True).stdout.strip()
    library = build('assay_witness', SANITIZED) / 'libassay_witness.so'
    assert soak(2, PROGRAMS, f'{runtime}:{library}') == []
