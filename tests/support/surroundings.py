"""What tests are started with: nothing that whoever starts them has set, and folders of their own.

It is imported before anything of Assay, which looks at the environment once.
"""

import os
import shutil
import socket
import sys
from contextlib import suppress
from pathlib import Path

#: For git within what tests make: no commit is signed, and no hook of a user runs.
GIT = {'commit.gpgsign': 'false', 'core.hooksPath': os.devnull}

#: Those that git sets for its hooks make it heed no other folder.
OF_GIT = ('GIT_DIR', 'GIT_WORK_TREE', 'GIT_INDEX_FILE', 'GIT_PREFIX')

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
    host = socket.gethostname()
    for earlier in FOLDERS.glob(f'{host}-*'):
        if not _is_alive(int(earlier.name.rpartition('-')[2])):
            shutil.rmtree(earlier, ignore_errors=True)
    os.environ['ASSAY_RESULTS'] = str(FOLDERS / f'{host}-{os.getpid()}')
    os.environ.pop('ASSAY_SYSTEMS', None)


def _is_alive(process):
    with suppress(PermissionError):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
    return True


def forget_surroundings():
    """Forget the job that tests run in, what a user prefers of Slurm and git, and proxies.

    ``SLURM_CONF`` stays: without it no command of Slurm may find its cluster.
    """
    for name in [*os.environ]:
        if (name.startswith(('SBATCH_', 'SLURM_')) and name != 'SLURM_CONF') or name in OF_GIT:
            del os.environ[name]
    given = int(os.environ.get('GIT_CONFIG_COUNT') or 0)
    os.environ['GIT_CONFIG_COUNT'] = str(given + len(GIT))
    for number, (key, value) in enumerate(GIT.items(), given):
        os.environ[f'GIT_CONFIG_KEY_{number}'] = key
        os.environ[f'GIT_CONFIG_VALUE_{number}'] = value
    for name in ('no_proxy', 'NO_PROXY'):  # servers of tests are on this machine
        os.environ[name] = ','.join(filter(None, (os.environ.get(name), '127.0.0.1,localhost')))


leave_in_folders_of_our_own()
