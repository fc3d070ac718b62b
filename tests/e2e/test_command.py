"""The command from the outside: the launcher's first use, and whole runs with their exit codes.

The checks that are run here are tests/golden/reports/toys.py, on the generic system.
"""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from assay import paths
from checkouts import TREE, copy_of_the_checkout
from command import TOYS, assay, run_toy


@pytest.mark.parametrize(
    ('name', 'outputs', 'error'),
    [
        (
            '(NoFigures|Skipped)',
            ['passed without any figure', 'skipped: .*shm.*: this machine has no shm'],
            'nothing was measured',
        ),
        ('NoReference', ['have no reference'], 'were held to nothing'),
    ],
)
def test_a_run_that_shows_nothing_is_red(name, outputs, error):
    ended = run_toy(name)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    for output in outputs:
        assert re.search(output, ended.stdout)
    assert error in ended.stderr
    assert 'Traceback' not in ended.stderr


FAILURES = {
    'FailedReference': 'latency is 42.50 us, but at most 22.00 us is allowed',
    'FailedSanity': 'another fabric was used',
    'FailedBuild': r'toy.c:1:\d+: error: .x. undeclared',
    'NotANumber': 'latency is nan: not a number',
}


def test_each_case_that_failed_has_its_sentence():
    """All in one run, of which each has two cases."""
    ended = run_toy(f'({"|".join(FAILURES)})')
    assert ended.returncode == 1, ended.stdout + ended.stderr
    for words in FAILURES.values():
        assert re.search(rf'^failed: .*: {words}', ended.stdout, re.M), ended.stdout
    assert '8 of 8 cases failed' in ended.stderr
    assert 'Traceback' not in ended.stderr


def test_an_empty_selection_says_what_there_is():
    ended = assay('run', '-n', 'Rng%fabric=warp', '-p', '^mpi4py$', '-P', 'layout=packed')
    assert ended.returncode == 1
    assert 'FAILED: 0 passed' in ended.stdout
    assert 'no check was selected' in ended.stderr
    for kind, name in [('check', 'Rng'), ('fabric', 'warp'), ('environment', '^mpi4py$')]:
        assert f'assay: there is no {kind} {name!r} on this system.' in ended.stderr
    assert 'no layout' not in ended.stderr
    assert re.search(r'Environments: .*\bopenmpi\b', ended.stderr)
    assert re.search(r'Fabrics: .*\bshm\b', ended.stderr)
    assert re.search(r'Layouts: packed, spread', ended.stderr)
    assert 'Scales: 1_node\n' in ended.stderr
    assert re.search(r'Checks: .*\bRing\b', ended.stderr)
    assert 'Modes: smoke, maintenance, acceptance' in ended.stderr


def test_listing_is_reframes_own():
    ended = run_toy('Passed', '-l')
    assert ended.returncode == 0
    assert '- Passed %fabric=shm' in ended.stdout
    assert 'verdict' not in ended.stdout


def test_a_plain_reframe_works_with_the_exports(tmp_path):
    script = f"""
        eval "$({paths.ROOT}/assay env)"
        reframe -r -t '^smoke$' -c {TOYS} -n '^Passed' -p '^openmpi$'
    """
    ended = subprocess.run(
        ['bash', '-euc', script], capture_output=True, text=True, cwd=tmp_path, timeout=600
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"'{paths.RESULTS_DATABASE}'" in ended.stdout
    assert list(tmp_path.iterdir()) == [], 'nothing is left where it was called'


def test_a_broken_mpi_on_path_is_red_in_a_plain_reframe_too(tmp_path):
    for name, words in [('mpicc', 'mpicc: Open MPI 5.0.8'), ('mpirun', 'libhwloc.so.15: gone')]:
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{words}"\nexit {name == "mpirun":d}\n')
        (tmp_path / name).chmod(0o755)
    script = f"""
        eval "$({paths.ROOT}/assay env)"
        reframe -r -c {paths.CHECKS}/mpi/ring.py -n '^Ring%fabric=shm' -p '^openmpi-path$'
    """
    ended = subprocess.run(
        ['bash', '-euc', script],
        env={**os.environ, 'PATH': f'{tmp_path}:{os.environ["PATH"]}'},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    reason = 'does not answer: mpirun --version: libhwloc.so.15: gone (exit code 1)'
    assert f'Open MPI in {tmp_path} {reason}' in ended.stdout


def test_a_run_that_passed_leaves_perflog_lines_with_what_a_reader_needs():
    log = paths.PERFLOGS / 'generic' / 'node' / 'Passed.log'
    log.unlink(missing_ok=True)
    ended = run_toy('Passed')
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert 'PASSED: 2 passed' in ended.stdout
    assert 'Traceback' not in ended.stderr
    head, *rows = (line.split('|') for line in log.read_text().splitlines())
    lines = [dict(zip(head, row, strict=True)) for row in rows]
    line = min(lines, key=lambda line: line['display_name'])  # cases end in no certain order
    assert line['display_name'] == 'Passed %fabric=shm %layout=packed'
    assert (line['system'], line['partition'], line['environ']) == ('generic', 'node', 'openmpi')
    assert (line['perf_var'], line['perf_value'], line['perf_unit']) == ('latency', '42.5', 'us')
    assert (line['perf_ref'], line['perf_lower_thres'], line['perf_upper_thres']) == (
        '42',
        '-0.1',
        '0.1',
    )


# The launcher's first use, in a copy of the checkout ----------------------------------------------


@pytest.fixture
def checkout(tmp_path):
    return copy_of_the_checkout(tmp_path)


NO_NETWORK = {
    'PIP_INDEX_URL': 'http://127.0.0.1:9/simple',
    'PIP_FIND_LINKS': '',
    'PIP_NO_CACHE_DIR': '1',
    'PIP_RETRIES': '0',
}


def test_no_network_on_first_use(checkout):
    ended = assay('env', root=checkout, env=NO_NETWORK)
    assert ended.returncode == 1
    assert re.search(r'assay: cannot fetch \S+==\S+: first use needs a package index', ended.stderr)
    assert 'PIP_INDEX_URL' in ended.stderr
    assert (checkout / '.assay' / 'logs' / 'install.log').is_file()


@pytest.mark.slow
def test_of_two_first_uses_one_installs_and_the_other_waits(first_uses):
    root, errors = first_uses
    assert sum('installing' in error for error in errors) == 1
    assert 'installing' not in assay('env', root=root).stderr


@pytest.mark.slow
def test_no_network_for_the_mpis(first_uses):
    root, _ = first_uses
    ended = assay('run', '--with', 'intelmpi', root=root, env=NO_NETWORK)
    assert ended.returncode == 1
    assert re.search(r'assay: cannot fetch [\w-]+==', ended.stderr)
    assert 'Traceback' not in ended.stderr


@pytest.mark.slow
def test_a_moved_checkout_installs_again(first_uses):
    root, _ = first_uses
    moved = root.rename(root.with_name('moved'))
    try:
        ended = assay('env', root=moved, env=NO_NETWORK)
    finally:
        moved.rename(root)
    assert 'installing' in ended.stderr
    assert re.search(r'assay: cannot fetch \S+==', ended.stderr)


@pytest.mark.parametrize('name', ['a b', "a'b", 'a"b', 'a$b', 'a:b', 'a%b', 'a\nb', 'a,b', 'a*'])
def test_a_path_that_jobs_cannot_hold_is_one_sentence(tmp_path, name):
    (tmp_path / name).mkdir()
    shutil.copy2(paths.ROOT / 'assay', tmp_path / name)
    ended = assay('run', root=tmp_path / name)
    assert ended.returncode == 1
    assert ended.stderr.startswith("assay: the checkout's path has a character that")
    assert [child.name for child in (tmp_path / name).iterdir()] == ['assay']


@pytest.mark.parametrize('name', ['ASSAY_RESULTS', 'ASSAY_SYSTEMS'])
def test_a_folder_that_jobs_cannot_hold_is_one_sentence(name):
    ended = assay('run', env={name: '/a folder'})
    assert ended.returncode == 1
    assert ended.stderr.startswith(f'assay: {name} has a character that')


@pytest.fixture
def ready(tmp_path):
    """A checkout whose environment is as good as installed: its command is a shell script."""
    root = tmp_path / 'checkout'
    root.mkdir()
    shutil.copy2(paths.ROOT / 'assay', root)
    for name in ('pyproject.toml', 'requirements.lock'):
        (root / name).touch()
    return root


def environment_of(root, command):
    """Make the environment that the launcher looks for; returns it."""
    script = (root / 'assay').read_text()
    of_script = script[script.index('# What a finished') : script.index('if [[ ${*:1:2}')]
    ask = f'root={root}\n{of_script}\nvenv=$venvs/$name-test; echo "$venv"'
    venv = Path(subprocess.check_output(['bash', '-euc', ask], text=True).strip())
    (venv / 'bin').mkdir(parents=True)
    (venv / 'bin' / 'python').symlink_to('/bin/sh')
    (venv / 'in-use').touch()
    stamp = subprocess.check_output(
        ['bash', '-euc', f'{ask}; fingerprint requirements.lock'], text=True
    ).splitlines()[1]
    (venv / 'requirements.lock.stamp').write_text(f'{stamp}\n')
    (venv / 'bin' / 'assay').write_text(f'#!/bin/sh\n{command}\n')
    (venv / 'bin' / 'assay').chmod(0o755)
    return venv


def test_an_environment_is_kept_while_it_runs_and_removed_after(ready):
    venv = environment_of(ready, 'echo started; read line')
    clean = f'venvs={venv.parent}; made_from=of-another-lock; {remove_outdated(ready)}'
    with subprocess.Popen(
        [ready / 'assay', 'env'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout.readline() == 'started\n'
        subprocess.run(['bash', '-euc', clean], check=True)
        assert venv.exists()
        running.communicate('\n')
    assert running.returncode == 0
    subprocess.run(['bash', '-euc', clean], check=True)
    assert not venv.exists()


@pytest.mark.parametrize('home', [{}, {'HOME': ''}])
def test_who_has_no_home_gets_theirs(ready, home):
    """Without it Open MPI's launcher ends at once."""
    environment_of(ready, 'echo "$HOME"')
    others = {name: value for name, value in os.environ.items() if name != 'HOME'}
    said = subprocess.check_output([ready / 'assay', 'env'], env=others | home, text=True)
    assert said == f'{pwd.getpwuid(os.geteuid()).pw_dir}\n'


def remove_outdated(root):
    """The launcher's function of that name, called."""
    function = re.search(
        r'^remove_outdated\(\) \{.*?^\}', (root / 'assay').read_text(), re.M | re.S
    )
    return f'{function[0]}\nremove_outdated'


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can be somebody else')
def test_a_checkout_of_somebody_else_without_an_environment_is_one_sentence():
    with tempfile.TemporaryDirectory(dir='/tmp') as folder:
        os.chmod(folder, 0o755)
        for name in TREE[:3]:
            shutil.copy2(paths.ROOT / name, folder)
        ended = subprocess.run(
            [f'{folder}/assay', 'run'], user=65534, capture_output=True, text=True, timeout=600
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith(f'assay: you may not write to {folder}, ')
    assert len(ended.stderr.splitlines()) == 2


def test_no_python_that_is_new_enough(checkout, tmp_path):
    bindir = tmp_path / 'bin'
    bindir.mkdir()
    names = ['bash', 'env', 'readlink', 'dirname', 'cat', 'sha256sum', 'mkdir', 'flock', 'uname']
    for name in names:
        (bindir / name).symlink_to(shutil.which(name))
    ended = assay('env', root=checkout, env={'PATH': str(bindir)})
    assert ended.returncode == 1
    assert 'no Python 3.10 or newer' in ended.stderr
    assert 'apt install python3' in ended.stderr

    python = bindir / 'python3'
    python.write_text('#!/bin/bash\n[[ $2 != *ensurepip* ]]\n')
    python.chmod(0o755)
    ended = assay('env', root=checkout, env={'PATH': str(bindir)})
    assert ended.returncode == 1
    assert 'apt install python3-venv' in ended.stderr


def test_locks_agree_and_name_no_index():
    pins = {}
    for name in ('requirements.lock', 'requirements-test.lock'):
        text = (paths.ROOT / name).read_text()
        assert 'http' not in text
        # An extra that only the tests need makes no other version.
        pins[name] = set(re.findall(r'^([\w.-]+)(?:\[[\w,]+\])?(==.*)$', text, re.MULTILINE))
    assert pins['requirements.lock'] < pins['requirements-test.lock']
