"""What tests are started with: nothing that whoever starts them has set, and folders of their own.

It is imported before anything of Assay, which looks at the environment once.
"""

import os
import re
import shutil
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

#: For git within what tests make: no commit is signed, and no hook of a user runs.
GIT = {'commit.gpgsign': 'false', 'core.hooksPath': os.devnull}

#: Those that git sets for its hooks make it heed no other folder.
OF_GIT = ('GIT_DIR', 'GIT_WORK_TREE', 'GIT_INDEX_FILE', 'GIT_PREFIX')

#: What is printed is wide and plain, as for a program that reads it; pytest-xdist sets the first.
OF_WINDOWS = ('COLUMNS', 'LINES', 'NO_COLOR', 'FORCE_COLOR', 'CLICOLOR', 'CLICOLOR_FORCE')
OF_WINDOWS += ('PY_COLORS', 'TTY_COMPATIBLE', 'TTY_INTERACTIVE', 'GITHUB_ACTIONS')

#: Paths that scripts and lists of paths can hold, and sockets: 108 bytes with what tests append.
HOLDABLE = re.compile(r'[\w/.+@=-]{1,40}', re.ASCII)

#: A folder for each `./assay test` of this checkout, which all nodes of a virtual cluster have.
FOLDERS = Path(__file__).resolve().parents[2] / '.assay' / 'tests'


def leave_in_folders_of_our_own():
    """Nothing that a test runs is in the history of the user, nor any file in a folder of theirs.

    What is built and installed is shared with them. What the newest tests left stays, to be looked
    at; a worker of pytest-xdist has the folder of the process that started it.
    """
    assert 'assay.paths' not in sys.modules, 'the folders of the checkout are already chosen'
    if 'PYTEST_XDIST_WORKER' in os.environ:
        return
    for earlier in FOLDERS.glob('[0-9]*-*'):
        process, _, host = earlier.name.partition('-')
        if host == socket.gethostname() and not _is_alive(int(process)):
            shutil.rmtree(earlier, ignore_errors=True)
    own = FOLDERS / f'{os.getpid()}-{socket.gethostname()}'
    os.environ['ASSAY_RESULTS'] = str(own)
    os.environ.pop('ASSAY_SYSTEMS', None)
    _have_a_home(own / 'home')
    if not HOLDABLE.fullmatch(tempfile.gettempdir()):
        # Checkouts and MPIs that tests make there are where nobody can have one. What such a
        # folder is to a run is a test of its own.
        os.environ['TMPDIR'] = tempfile.tempdir = '/tmp'


def _have_a_home(folder):
    """A HOME with nothing in it that steers MPI, Slurm or ReFrame; pip and git keep what they had.

    ReFrame writes there what it finds out of a machine.
    """
    users = Path(os.environ.get('HOME') or '/nowhere')
    for name, kept in (
        ('PIP_CACHE_DIR', '.cache/pip'),
        ('PIP_CONFIG_FILE', '.config/pip/pip.conf'),
        ('GIT_CONFIG_GLOBAL', '.gitconfig'),
    ):
        if (users / kept).exists():
            os.environ.setdefault(name, str(users / kept))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ['HOME'] = str(folder)


def _is_alive(process):
    with suppress(PermissionError):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
    return True


def forget_surroundings():
    """Forget the job that tests run in, what steers MPIs, threads and BLAS, what git is told.

    ``SLURM_CONF`` stays: without it no command of Slurm may find its cluster. Servers of tests are
    asked without a proxy.
    """
    from assay.witness.variables import STEERING  # the folders of the checkout are chosen by now

    for name in [*os.environ]:
        if name.startswith(('SBATCH_', 'SLURM_', *STEERING)) and name != 'SLURM_CONF':
            del os.environ[name]
    for name in OF_GIT:
        os.environ.pop(name, None)
    given = int(os.environ.get('GIT_CONFIG_COUNT') or 0)
    os.environ['GIT_CONFIG_COUNT'] = str(given + len(GIT))
    for number, (key, value) in enumerate(GIT.items(), given):
        os.environ[f'GIT_CONFIG_KEY_{number}'] = key
        os.environ[f'GIT_CONFIG_VALUE_{number}'] = value
    for name in ('no_proxy', 'NO_PROXY'):
        os.environ[name] = ','.join(filter(None, (os.environ.get(name), '127.0.0.1,localhost')))


def forget_the_window():
    """Forget how wide and colourful it is; some libraries look when they are imported."""
    for name in OF_WINDOWS:
        os.environ.pop(name, None)


forget_the_window()
leave_in_folders_of_our_own()
