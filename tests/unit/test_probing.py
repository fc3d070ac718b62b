"""The job of `assay init`: what it leaves, also where it ended early."""

import json
import os
import subprocess
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from assay.config.fabrics import load_catalogue
from assay.discovery import init, probing
from assay.discovery.partitions import see
from assay.discovery.probing import HERE, _Job, probe
from assay.results.cases import Case
from found import MPICH, OPENMPI, facts
from slurms import commands_of_slurm, node, partition


@pytest.fixture
def seen(tmp_path, monkeypatch):
    """What a Slurm of four nodes tells."""
    slurm = commands_of_slurm(tmp_path, monkeypatch)
    slurm([node(f'n{i}') for i in range(1, 5)], [partition('all', 'n[1-4]', 4, 'YES')])
    return see([], [])


@pytest.fixture
def job(seen, tmp_path, monkeypatch):
    """A job of two nodes that is not submitted, and that nobody waits for."""
    monkeypatch.setattr(probing, 'LATENCY', 0)
    return _Job('toy', tmp_path / 'job', seen.partitions[0], seen, [MPICH, OPENMPI], tmp_path)


def left(job, *nodes, done=True, **files):
    for rank, name in enumerate(nodes):
        (job.folder / f'node-{rank}.json').write_text(json.dumps(asdict(facts(name))))
    for name, text in files.items():
        (job.folder / name.replace('__', '.')).write_text(text)
    if done:
        (job.folder / 'done').touch()
    return job.result([MPICH, OPENMPI], {})


def test_ways_that_work_and_that_do_not(job):
    words = {'mpich__started': 'pmi2\n', f'{OPENMPI.name}__pmix__out': 'assay: rank 0 of 1, and 1'}
    found = left(job, 'n1', 'n2', **words, **{f'{OPENMPI.name}__mpirun__out': ''})
    assert [one.name for one in found.facts] == ['n1', 'n2']
    assert found.ways == {'mpich': 'pmi2'}
    assert found.faults == {
        OPENMPI.name: 'mpirun: it printed nothing; srun --mpi=pmix: each process is a rank 0 of 1'
    }


def test_what_cannot_be_started_is_not_said_to_take_long(tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', str(tmp_path))
    why = probing._build(MPICH, tmp_path)
    assert why.endswith(': bash: No such file or directory')


def test_a_job_that_ended_early_keeps_what_it_found(job):
    end = 'slurmstepd: error: *** JOB 5 CANCELLED DUE TO TIME LIMIT ***'
    found = left(job, 'n1', 'n2', done=False, mpich__started='pmi2\n', job__out=end)
    assert found.ways == {'mpich': 'pmi2'}
    assert found.faults == {OPENMPI.name: f'the job ended before it was started: {end}'}


def test_a_node_that_told_nothing(job):
    said = left(job, 'n1', job__out='srun: error: n2: task 1: Exited with exit code 127\n')
    assert said == (
        '1 of 2 nodes of its job told something: srun: error: n2: task 1: Exited with exit code 127'
    )


def test_a_folder_that_the_nodes_have_not(job):
    said = left(job, done=False)
    assert said == (
        f'0 of 2 nodes of its job told something: it left nothing in {job.folder}, which its nodes '
        f'have to have as well'
    )


def test_jobs_that_cannot_be_cancelled_are_named(seen, tmp_path, monkeypatch, capsys):
    scripts = {
        'sbatch': 'echo 5',
        'squeue': 'exit 0',
        'scancel': f'echo "$@" >>{tmp_path}/cancelled\n'
        f'[ $(wc -l <{tmp_path}/cancelled) = 1 ] || '
        '{ echo "Unable to contact slurm controller" >&2; exit 1; }',
    }
    for name, script in scripts.items():
        (tmp_path / name).write_text(f'#!/bin/sh\n{script}\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(probing, 'LATENCY', 0)
    probe(seen, [], tmp_path / 'init', 10)
    said = capsys.readouterr().err
    away = 'Slurm does not answer scancel: Unable to contact slurm controller'
    assert f'jobs may be left ({away}). To cancel them: scancel' in said
    # Before the jobs those of one that was killed, and after them what is left.
    before, after = (tmp_path / 'cancelled').read_text().splitlines()
    assert before == after and before.startswith(f'--user={os.getuid()} --name=assay-init-')
    assert f'scancel {after}' in said


def test_what_a_job_waits_for_is_told_as_slurm_writes_it(monkeypatch, capsys):
    monkeypatch.setattr(probing, 'INTERVAL', 0)
    job = SimpleNamespace(number='7', problem=None, state='PENDING JobHeldAdmin')
    probing._wait([job], 0)
    assert capsys.readouterr().err == 'Assay: job 7: pending JobHeldAdmin\n'
    assert 'PENDING JobHeldAdmin' in job.problem


# The script of the job ----------------------------------------------------------------------------

SRUN = """\
#!/usr/bin/env bash
# Each PMI that a program of an MPI is started by, in turn.
case $SLURM_MPI_TYPE in
    '') printf '%s\\n' $INTERFACES | while read -r one; do echo "$one" >interface-$((n++)); done ;;
    pmix) printf 'assay: rank %s of 2, and 2 answered\\n' 0 1; env >environment ;;
    pmi2) echo pmi2 >>tried; sleep 600 ;;
    *) echo "$SLURM_MPI_TYPE" >>tried ;;
esac
"""


def run_probe(job, tmp_path, interfaces):
    (tmp_path / 'srun').write_text(SRUN)
    (tmp_path / 'srun').chmod(0o755)
    numbers = [str(job.nodes), str(job.ranks), '1']
    environment = {**os.environ, 'INTERFACES': interfaces}
    environment.pop('SLURM_MPI_TYPE', None)
    subprocess.run(
        ['bash', HERE / 'probe.sh', *numbers, 'python'],
        cwd=job.folder,
        env=environment,
        check=True,
        timeout=300,
    )


def test_ways_are_tried_once_each_until_one_works(job, tmp_path):
    (job.folder / f'{OPENMPI.name}.env').unlink()
    run_probe(job, tmp_path, 'eth0 eth0')
    # MPICH is usually built for PMI-2, which comes first; here it hangs.
    assert (job.folder / 'tried').read_text().split() == ['pmi2', 'cray_shasta']
    assert (job.folder / 'mpich.started').read_text() == 'pmix\n'
    assert (job.folder / 'mpich.pmi2.out').read_text() == 'it has not ended in 1 s\n'
    assert 'HYDRA_IFACE=eth0' in (job.folder / 'environment').read_text().splitlines()
    assert not (job.folder / 'mpich.mpirun.out').exists()


def test_interfaces_that_differ_steer_no_mpi(job, tmp_path):
    (job.folder / f'{OPENMPI.name}.env').unlink()
    run_probe(job, tmp_path, 'eth0 ib0')
    environment = (job.folder / 'environment').read_text()
    assert 'IFACE=' not in environment


# The cases that confirm ---------------------------------------------------------------------------


@pytest.mark.parametrize(('fabric', 'nodes'), [('tcp', 'two nodes'), ('shm', 'one node')])
def test_why_there_was_no_case(fabric, nodes):
    assert load_catalogue().fabrics[fabric].crosses_nodes is (fabric == 'tcp')
    assert f'takes a job of {nodes}' in init._why(None, fabric, {}, {})


def test_a_build_that_sbatch_refuses_is_why_its_cases_did_not_run():
    where = {'system': 's', 'partition': 'all', 'environment': 'mpich', 'is_fixture': False}
    case = Case(display_name='PointToPoint', **where, result='fail', figures=())
    refused = 'the scheduler refused its job: Time limit specification required'
    builds = {('all', 'mpich'): refused}
    assert init._why(case, 'shm', {}, builds) == f'its build failed: {refused}'


def test_sbatch_that_does_not_say_a_number(seen, tmp_path):
    (tmp_path / 'scancel').write_text('#!/bin/sh\n')
    (tmp_path / 'scancel').chmod(0o755)
    (tmp_path / 'sbatch').write_text('#!/bin/sh\necho welcome\n')
    found = probe(seen, [], tmp_path / 'init', 10)
    assert found == {'all': 'sbatch does not say the number of a job: welcome'}
