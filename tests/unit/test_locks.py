"""Locks, and file systems without them: Lustre without ``flock``, NFS without a lock daemon."""

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from assay import AssayError, locks, paths

SOURCE = paths.ROOT / 'tests' / 'programs' / 'nolocks.c'

REMEDY = 'use a checkout on another file system'


@pytest.fixture(scope='module')
def no_locks(tmp_path_factory):
    """Variables with which a folder's file system has no locks."""
    library = tmp_path_factory.mktemp('preloaded') / 'nolocks.so'
    command = ['cc', '-shared', '-fPIC', '-o', library, SOURCE, '-ldl']
    subprocess.run(command, check=True)

    def variables(folder, number=errno.ENOSYS):
        return {
            **os.environ,
            'LD_PRELOAD': str(library),
            'NO_LOCKS': str(folder),
            'NO_LOCKS_ERROR': str(number),
        }

    return variables


def said(environment, script, *arguments):
    """What a script that ends in an error of ours says."""
    lines = ['import sys', 'from pathlib import Path', 'from assay import AssayError', 'try:']
    lines += [f'    {line}' for line in script.splitlines()]
    lines += ['except AssayError as error:', '    print(error)']
    told = subprocess.run(
        [sys.executable, '-c', '\n'.join(lines), *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert not told.stderr
    return told.stdout


@pytest.mark.parametrize('number', [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def test_a_checkout_without_locks_is_refused_with_what_to_do(no_locks, number):
    """Before anything is begun: the history and ReFrame's perflogs could not be written."""
    script = 'from assay.config import settings\nsettings.assert_writable()'
    words = said(no_locks(paths.ROOT, number), script)
    assert REMEDY in words
    assert os.strerror(number) in words


USES = [
    'from assay.locks import hold_lock\nwith hold_lock(Path(sys.argv[1]) / "lock"): pass',
    'from assay import paths\npaths.RUNS = Path(sys.argv[1])\nfrom assay.running import runs\n'
    'runs.begin_run()',
    'from assay.results import store\nwith store._locked(Path(sys.argv[1]) / "results.db"): pass',
    'from assay import paths\npaths.NIGHTS = Path(sys.argv[1])\n'
    'from assay.nights.night import Folder\nwith Folder("toy", "smoke").hold_lock(): pass',
    'from assay.acceptance import journal\nfile = Path(sys.argv[1], "journal")\nfile.touch()\n'
    'with journal._locked(file): pass',
]


@pytest.mark.parametrize('script', USES)
def test_each_lock_says_what_to_do(no_locks, tmp_path, script):
    assert REMEDY in said(no_locks(tmp_path), script, tmp_path)


def test_where_there_are_locks_nothing_is_said(tmp_path):
    scripts = ['from assay.config import settings\nsettings.assert_writable()', *USES]
    assert not said({**os.environ}, '\n'.join(scripts), tmp_path)


def test_the_launcher_says_what_to_do(no_locks, tmp_path):
    """Before it installs anything."""
    for name in ('assay', 'pyproject.toml', 'requirements.lock'):
        shutil.copy(paths.ROOT / name, tmp_path)
    told = subprocess.run(
        [tmp_path / 'assay', '--help'], env=no_locks(tmp_path), capture_output=True, text=True
    )
    assert told.returncode == 1
    assert REMEDY in told.stderr.replace('\nassay: ', ' ')
    assert 'installing' not in told.stderr


def test_who_has_a_lock_keeps_others_out(tmp_path):
    path = tmp_path / 'lock'
    with locks.hold_lock(path), pytest.raises(locks.LockedError), locks.hold_lock(path, wait=False):
        pass
    with locks.hold_lock(path, wait=False):
        pass


def test_a_file_that_cannot_be_opened(tmp_path):
    with (
        pytest.raises(AssayError, match='No such file'),
        locks.hold_lock(tmp_path / 'gone' / 'lock'),
    ):
        pass


def test_no_other_file_locks():
    """What a file system without locks says is told in one place."""
    own = [paths.ROOT / 'lib' / 'assay' / 'locks.py', paths.ROOT / 'lib/assay/vcluster/locks.py']
    others = [
        path
        for path in Path(paths.ROOT, 'lib').rglob('*.py')
        if path not in own and re.search(r'fcntl\.(flock|lockf)', path.read_text())
    ]
    assert not others
