"""Ranks that differ: the script that gives each its threads, its cores and its program."""

import os
import subprocess

import pytest

from assay.layout.launchers import add_part_script, command_of_parts
from assay.machine.topology import this_machine
from assay.text import as_list
from machines import lay

#: Of this machine, those that this process may use.
CORES = [core for core in this_machine().cores if core & os.sched_getaffinity(0)]

SHOW = 'echo $OMP_NUM_THREADS; sed -n "s/^Cpus_allowed_list:\\s*//p" /proc/self/status'


def start(folder, widths, rank, variable='OMPI_COMM_WORLD_LOCAL_RANK', before=()):
    add_part_script(folder)
    (folder / 'show').write_text(f'#!/bin/bash\necho $(basename $0); {SHOW}\n')
    (folder / 'show').chmod(0o755)
    (folder / 'wide').symlink_to('show')
    env = {'PATH': os.environ['PATH'], variable: str(rank)}
    arguments = [*before, *command_of_parts(widths, './wide', './show')]
    return subprocess.run(arguments, cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.skipif(len(CORES) < 2, reason='needs two cores')
@pytest.mark.parametrize(
    'variable', ['OMPI_COMM_WORLD_LOCAL_RANK', 'MPI_LOCALRANKID', 'SLURM_LOCALID']
)
@pytest.mark.parametrize(('rank', 'program'), [(0, 'wide'), (1, 'show')])
def test_each_rank_has_cores_of_its_own(tmp_path, variable, rank, program):
    ran = start(tmp_path, (1, 1), rank, variable)
    assert ran.stdout.split() == [program, '1', as_list(CORES[rank])], ran.stderr


@pytest.mark.skipif(len(CORES) < 2, reason='needs two cores')
def test_a_wide_rank(tmp_path):
    two = as_list(CORES[0] | CORES[1])
    assert start(tmp_path, (2,), 0).stdout.split() == ['wide', '2', two]


def test_a_rank_without_a_part(tmp_path):
    ran = start(tmp_path, (1, 1), 2)
    assert ran.returncode == 2
    assert ran.stderr == "part: rank '2' of this node has no part among 2\n"


@pytest.mark.skipif(len(CORES) < 2, reason='needs two cores')
def test_a_cpu_that_is_offline(tmp_path):
    """It may stand in the list of those that a process may use, and is no core."""
    first, *others = [as_list(core) for core in CORES]
    off = '\n'.join(f'system/cpu/cpu[{cpus}]/online = 0' for cpus in others)
    cpus = f'system/cpu/cpu[{first}]/topology/core_cpus = {{}}\n{off}'
    folder = lay(cpus).write(tmp_path / 'laid') / 'sys/devices/system/cpu'
    mount = f'mount --bind {folder} /sys/devices/system/cpu'
    unshared = ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c']
    if subprocess.run([*unshared, mount], capture_output=True).returncode:
        pytest.skip('no file can be laid over /sys here')
    before = [*unshared, f'{mount} && exec "$@"', 'sh']
    ran = start(tmp_path, (1, 1), 0, before=before)
    assert ran.stderr == 'part: 1 core(s) may be used, and the ranks of this node need 2\n'
    assert ran.returncode == 2
