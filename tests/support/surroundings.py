"""What who starts the tests has set, and none of them is about."""

import os

#: For git within what tests make: no commit is signed, and no hook of a user runs.
GIT = {'commit.gpgsign': 'false', 'core.hooksPath': os.devnull}

#: Those that git sets for its hooks make it heed no other folder.
OF_GIT = ('GIT_DIR', 'GIT_WORK_TREE', 'GIT_INDEX_FILE', 'GIT_PREFIX')


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
