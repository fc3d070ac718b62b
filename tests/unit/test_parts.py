"""Ranks that differ: the script that gives each its threads, its cores and its program."""

import os
import subprocess

import pytest

from assay.cpus import as_list
from assay.layout.parts import add_to, command

SHOW = 'echo $OMP_NUM_THREADS; sed -n "s/^Cpus_allowed_list:\\s*//p" /proc/self/status'


def start(folder, widths, rank, variable='OMPI_COMM_WORLD_LOCAL_RANK'):
    add_to(folder)
    (folder / 'show').write_text(f'#!/bin/bash\necho $(basename $0); {SHOW}\n')
    (folder / 'show').chmod(0o755)
    (folder / 'wide').symlink_to('show')
    env = {'PATH': os.environ['PATH'], variable: str(rank)}
    arguments = command(widths, './wide', './show')
    return subprocess.run(arguments, cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason='needs two cores')
@pytest.mark.parametrize(
    'variable', ['OMPI_COMM_WORLD_LOCAL_RANK', 'MPI_LOCALRANKID', 'SLURM_LOCALID']
)
@pytest.mark.parametrize(('rank', 'program'), [(0, 'wide'), (1, 'show')])
def test_each_rank_has_cores_of_its_own(tmp_path, variable, rank, program):
    first, second = sorted(os.sched_getaffinity(0))[:2]
    ran = start(tmp_path, (1, 1), rank, variable)
    assert ran.stdout.split() == [program, '1', str((first, second)[rank])], ran.stderr


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason='needs two cores')
def test_a_wide_rank(tmp_path):
    two = as_list(sorted(os.sched_getaffinity(0))[:2])
    assert start(tmp_path, (2,), 0).stdout.split() == ['wide', '2', two]


def test_a_rank_without_a_part(tmp_path):
    ran = start(tmp_path, (1, 1), 2)
    assert ran.returncode == 2
    assert ran.stderr == "part: rank '2' of this node has no part among 2\n"
