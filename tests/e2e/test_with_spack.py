"""A real Spack builds what checks run: SPACK_ROOT names one, and it must have been set up."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from assay import paths
from assay.spack import tool
from command import assay, assert_good

pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def log():
    """The log of all that Spack is asked, after our package was installed for MPICH's wheel."""
    if 'SPACK_ROOT' not in os.environ:
        pytest.skip('needs SPACK_ROOT, a Spack of at least version 1.0')
    if not (paths.SPACK_CONFIG / 'generic' / 'found' / 'packages.yaml').exists():
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
    assert re.match(r'assay@[\d.]+ .* sources=\w{16} \^.* \^mpich@[\d.]+', ring['built_spec'])
    assert '-O' in ring['built_flags']
    assert re.fullmatch(r'[a-z2-7]{32}', ring['built_hash'])
    assert ring['built_compiler'] and ring['built_blas'] and ring['built_target']
    assert ring['built_mpi'].startswith('mpich@')
    assert ring['executable'].startswith(str(paths.SPACK))


def test_what_is_installed_needs_no_spack_but_its_version(log, tmp_path):
    def said():
        return log.read_bytes() if log.exists() else b''  # none, if all was installed before

    before = said()
    ended = run_ring(f'--report-file={tmp_path}/report.json')
    assert 'Spack installs' not in ended.stderr
    assert said() == before


def test_nothing_of_the_site_is_written(log):
    """What production has for its own users is not for us: neither its tree nor its modules."""
    root = Path(os.environ['SPACK_ROOT'])

    def state():
        return {path: path.lstat().st_mtime_ns for path in root.rglob('*')}

    before = state()
    shutil.rmtree(tool.find_spack().state / 'environments', ignore_errors=True)
    assert_good(run_ring())
    assert state() == before


def test_a_plain_spack_reads_the_environment_in_a_fresh_clone(tmp_path):
    """With nothing of ours but what Git has: what `assay spack setup` writes is not there."""
    if 'SPACK_ROOT' not in os.environ:
        pytest.skip('needs SPACK_ROOT, a Spack of at least version 1.0')
    clone = tmp_path / 'clone'
    subprocess.run(['git', 'clone', '--quiet', paths.ROOT, clone], check=True)
    used = tool.find_spack()
    used.configure()  # what a site requires of all packages is not what is tried here

    def spack(*arguments):
        return subprocess.run(
            [used.own / 'bin' / 'spack', *arguments],
            cwd=clone,
            env=used.variables,
            capture_output=True,
            text=True,
            timeout=1200,
        )

    # Else Spack writes those that it finds into the environment.
    assert spack('compiler', 'find').returncode == 0
    created = spack('env', 'create', '-d', '../created', 'spack.yaml')
    assert created.returncode == 0, created.stderr
    for folder in ('.', '../created'):
        listed = spack('-e', folder, 'repo', 'list')
        assert re.search(r'\bassay\b.*spack_repo/assay', listed.stdout), listed.stderr
    solved = spack('-e', '.', 'concretize')
    assert solved.returncode == 0, solved.stderr
    changed = ['git', 'status', '--porcelain']
    assert subprocess.check_output(changed, cwd=clone, text=True) == ''


def test_without_spack_no_job_runs(log):
    ended = run_ring(SPACK_ROOT=str(paths.ROOT))
    assert ended.returncode == 1
    assert re.match(r'assay: SPACK_ROOT is .* is not a command', ended.stderr)
    assert 'Ring' not in ended.stdout
