"""A bundle is used where there is no network: a namespace with the loopback interface alone."""

import json
import os
import shutil
import subprocess

import pytest

from assay import paths
from command import assay, assert_good

pytestmark = pytest.mark.slow

NAMESPACE = ['unshare', '--net', 'bash', '-euc', 'ip link set lo up; exec "$@"', '-']


@pytest.fixture(scope='module')
def other_side(tmp_path_factory):
    """Runs a command in a checkout that a bundle was cloned into, with nothing but that bundle."""
    for command in ('git', 'unshare', 'ip'):
        if not shutil.which(command):
            pytest.skip(f'needs {command}')
    if subprocess.run([*NAMESPACE, 'true'], capture_output=True).returncode:
        pytest.skip('needs the right to make a network namespace')
    folder = tmp_path_factory.mktemp('site')
    ended = assay('bundle', 'create', folder / 'a bundle', seconds=600)
    if 'cannot fetch' in ended.stderr:
        pytest.skip('needs a package index')
    if 'what is committed' in ended.stderr:
        pytest.skip('needs a checkout with everything committed')
    assert ended.returncode == 0, ended.stderr
    home = folder / 'home'
    home.mkdir()
    environment = {'PATH': os.environ['PATH'], 'HOME': str(home)}

    def run(*command, cwd='assay'):
        return subprocess.run(
            [*NAMESPACE, *command],
            cwd=folder / cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )

    ended = run('git', 'clone', 'a bundle/assay.git', 'assay', cwd='')
    assert ended.returncode == 0, ended.stderr
    return run


def test_the_suite_runs_with_the_network_off(other_side, tmp_path):
    ended = other_side('./assay', 'bundle', 'use', '../a bundle')
    assert ended.returncode == 0, ended.stderr
    report = tmp_path / 'report.json'
    check = ('-n', '^Ring%fabric=shm%layout=packed', '-p', '^mpich$', '--with', 'mpich')
    check += ('-S', 'wait_for_quiet=0', '--max-retries=2')
    ended = other_side('./assay', 'run', *check, f'--report-file={report}')
    assert_good(ended)
    (ring,) = (
        case
        for case in json.loads(report.read_text())['runs'][0]['testcases']
        if not case['fixture']
    )
    # On a machine that others use as well a figure may miss its reference.
    assert ring['fail_phase'] in (None, 'performance'), ring['fail_reason']
    head = subprocess.check_output(['git', 'rev-parse', 'HEAD'], cwd=paths.ROOT, text=True)
    assert ring['suite_commit'] == head.strip()
