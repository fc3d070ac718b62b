"""A bundle is used where there is no network: a namespace with the loopback interface alone.

The checkout is a clone in which nothing was built, with an empty HOME; tests spoil its files, too.
"""

import json
import os
import re
import shutil
import subprocess

import pytest

from assay import paths
from command import assay, assert_good

pytestmark = pytest.mark.slow

NAMESPACE = ['unshare', '--net', 'bash', '-euc', 'ip link set lo up; exec "$@"', '-']


def can_close_the_network():
    if not all(map(shutil.which, ('unshare', 'ip'))):
        return False
    return subprocess.run([*NAMESPACE, 'true'], capture_output=True).returncode == 0


@pytest.fixture(scope='module')
def clone(tmp_path_factory):
    """A checkout that a bundle was cloned into, and a function that runs a command there.

    Without a network, if this user may make a namespace.
    """
    if not shutil.which('git'):
        pytest.skip('needs git')
    namespace = NAMESPACE if can_close_the_network() else []
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
            [*namespace, *command],
            cwd=folder / cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )

    ended = run('git', 'clone', 'a bundle/assay.git', 'assay', cwd='')
    assert ended.returncode == 0, ended.stderr
    ended = run('./assay', 'bundle', 'use', '../a bundle')
    assert ended.returncode == 0, ended.stderr
    return folder / 'assay', run


@pytest.fixture
def run_ring(clone):
    """Runs one check there, of which the first builds all that it needs."""
    _, run = clone
    check = ('-n', '^Ring%fabric=shm%layout=packed', '-p', '^mpich$', '--with', 'mpich')
    check += ('-S', 'wait_for_quiet=0', '--max-retries=2')
    return lambda *options: run('./assay', 'run', *check, *options)


@pytest.fixture
def edited(clone):
    """Replaces what an expression matches in a file there, ``count`` times, until the test ends."""
    root, _ = clone
    before = {}

    def edit(file, expression, text, count=1):
        path = root / file
        before[path] = path.read_text()
        after, found = re.subn(expression, text, before[path], count=count)
        assert found
        path.write_text(after)

    yield edit
    for path, text in before.items():
        path.write_text(text)


@pytest.mark.skipif(
    not can_close_the_network(),
    reason='needs unshare, ip and the right to make a network namespace',
)
def test_the_suite_runs_with_the_network_off(run_ring, tmp_path):
    report = tmp_path / 'report.json'
    ended = run_ring(f'--report-file={report}')
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


def test_an_impossible_reference(run_ring, edited):
    bad = "hop_latency_over_limit: [0.001, null, 0.5, '1']"
    edited('config/references/generic.yaml', 'hop_latency_over_limit: .*', bad, count=0)
    ended = run_ring()
    assert ended.returncode in (1, 3)  # by whether others disturb this machine
    said = r'(failed|disturbed): Ring .*: hop_latency_over_limit is [\d.]+ ?1?, but at most 0.0015'
    assert re.search(said, ended.stdout)


@pytest.mark.parametrize(
    ('file', 'good', 'bad', 'words'),
    [
        ('config/fabrics.yaml', 'reach: node', 'reach: moon', 'fabrics.shm.reach'),
        ('config/systems/generic.py', 'import os', 'import (', 'not valid Python'),
        ('config/references/generic.yaml', 'Ring:', 'Ring: [', 'generic.yaml'),
        ('checks/mpi/ring.py', 'import reframe', 'import (reframe', 'ring.py'),
    ],
)
def test_an_unreadable_file_is_named(run_ring, edited, file, good, bad, words):
    edited(file, good, bad)
    ended = run_ring()
    assert ended.returncode == 1
    assert words in ended.stderr
