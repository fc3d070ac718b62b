"""A real Spack builds what checks run: SPACK_ROOT names one, and it must have been set up."""

import json
import os
import re

import pytest

from assay import paths
from command import assay, assert_good

pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def log():
    """The log of all that Spack is asked, after our package was installed for MPICH's wheel."""
    if 'SPACK_ROOT' not in os.environ:
        pytest.skip('needs SPACK_ROOT, a Spack of at least version 1.0')
    if not (paths.SPACK_CONFIG / 'generic' / 'packages.yaml').exists():
        pytest.skip('needs `assay spack setup`')
    if not (paths.MPI_PREFIXES / 'mpich').exists():
        pytest.skip('needs the mpich wheel')
    ended = run_ring()
    assert_good(ended)
    return paths.LOGS / 'spack.log'


def run_ring(*arguments, **env):
    return assay(
        *('run', '--with', 'spack', '-n', '^Ring%fabric=shm%layout=packed', '-p', '^mpich$'),
        *arguments,
        env=env,
        seconds=1200,
    )


def test_a_figure_tells_what_was_built(log, tmp_path):
    report = tmp_path / 'report.json'
    ended = run_ring(f'--report-file={report}')
    assert_good(ended)
    cases = json.loads(report.read_text())['runs'][0]['testcases']
    (ring,) = [case for case in cases if not case['fixture']]
    assert ring['built_by'] == 'spack'
    assert re.fullmatch(r'assay@0\.1\.0 .* sources=\w{16} \^mpich@[\d.]+', ring['built_spec'])
    assert re.fullmatch(r'[a-z2-7]{32}', ring['built_hash'])
    assert ring['built_compiler'] and ring['built_blas'] and ring['built_target']
    assert ring['built_mpi'].startswith('mpich@')
    assert ring['executable'].startswith(str(paths.SPACK))


def test_what_is_installed_needs_no_spack_but_its_version(log, tmp_path):
    before = log.stat().st_size
    ended = run_ring(f'--report-file={tmp_path}/report.json')
    assert 'Spack installs' not in ended.stderr
    assert log.stat().st_size == before


def test_without_spack_no_job_runs(log):
    ended = run_ring(SPACK_ROOT=str(paths.ROOT))
    assert ended.returncode == 1
    assert re.match(r'assay: SPACK_ROOT is .* is not a command', ended.stderr)
    assert 'Ring' not in ended.stdout
