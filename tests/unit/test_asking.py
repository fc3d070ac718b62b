"""How often schedulers are asked for jobs, and that no job goes on for ever."""

import os
import subprocess
import sys

import pytest
from reframe.core.exceptions import SpawnedProcessError

from assay import paths
from assay.machine import job_states
from assay.running import asking

#: All that Slurm 25.05 has, of its manual of squeue.
SLURM = [
    'BOOT_FAIL',
    'CANCELLED',
    'COMPLETED',
    'CONFIGURING',
    'COMPLETING',
    'DEADLINE',
    'FAILED',
    'LAUNCH_FAILED',
    'NODE_FAIL',
    'OUT_OF_MEMORY',
    'PENDING',
    'POWER_UP_NODE',
    'PREEMPTED',
    'RECONFIG_FAIL',
    'RUNNING',
    'RESV_DEL_HOLD',
    'REQUEUE_FED',
    'REQUEUE_HOLD',
    'REQUEUED',
    'RESIZING',
    'REVOKED',
    'SIGNALING',
    'SPECIAL_EXIT',
    'STAGE_OUT',
    'STOPPED',
    'SUSPENDED',
    'TIMEOUT',
    'EXPEDITING',
]

#: All that PBS Professional, OpenPBS and Torque have.
PBS = 'BCEFHMQRSTUWX'


@pytest.mark.parametrize('state', [*SLURM, 'NEVER_HEARD_OF'])
def test_every_state_of_slurm_comes_to_an_end(a_site, tmp_path, state):
    (tmp_path / '1.sbatch').write_text('Submitted batch job 7\n')
    (tmp_path / '1.sacct').write_text(f'7|{state}|0:0|Unknown|n1\n')
    (tmp_path / '1.squeue').write_text(f'7|{state}|n1|None\n')
    one = a_site(tmp_path, 'slurm')
    why = one.play(25 * 3600)
    assert bool(why) != (one.job.state in job_states.ENDED)
    assert why is None or any('scancel' in call for call in one.calls)


@pytest.mark.parametrize('letter', PBS)
@pytest.mark.parametrize('scheduler', ['pbspro', 'torque'])
def test_every_state_of_pbs_comes_to_an_end(a_site, tmp_path, scheduler, letter):
    (tmp_path / '1.qsub').write_text('7.pbs\n')
    (tmp_path / '1.qstat').write_text(f'Job Id: 7.pbs\n    job_state = {letter}\n')
    one = a_site(tmp_path, scheduler)
    for name in (one.job.stdout, one.job.stderr):
        (one.work / name).touch()
    why = one.play(25 * 3600)
    assert bool(why) != (one.job.state in job_states.ENDED)


def asks(one):
    return sum('squeue' in call for call in one.calls)


def test_a_job_that_waits_is_asked_for_ever_less_often(a_site, tmp_path):
    """However often ReFrame looks: ten times a second."""
    (tmp_path / '1.sbatch').write_text('Submitted batch job 7\n')
    (tmp_path / '1.squeue').write_text('7|PENDING||Priority\n')
    one = a_site(tmp_path, 'squeue')
    one.job.submit()
    seen = []
    for _ in range(6000):
        one.scheduler.poll(one.job)
        one.clock.now += 0.1
        seen.append(asks(one))
    first, last = seen[599], seen[-1] - seen[-3001]
    assert first <= 12
    assert last <= 300 / asking.SELDOM + 1


def test_a_change_is_looked_for_soon(a_site, tmp_path):
    (tmp_path / '1.sbatch').write_text('Submitted batch job 7\n')
    (tmp_path / '1.squeue').write_text('7|PENDING||Priority\n')
    (tmp_path / '3.squeue').write_text('7|RUNNING|n1|None\n')
    one = a_site(tmp_path, 'squeue')
    one.job.submit()
    one.scheduler.poll(one.job)
    for _ in range(2):
        one.clock.now += 1000
        one.scheduler.poll(one.job)
    assert (asks(one), one.job.state) == (3, 'RUNNING')
    one.clock.now += asking.SOON
    one.scheduler.poll(one.job)
    assert asks(one) == 4


def test_a_run_that_is_stopped_does_not_wait_for_jobs_that_do_not_end(a_site, tmp_path):
    """ReFrame waits for one after the other before it writes its report."""
    (tmp_path / '1.sbatch').write_text('Submitted batch job 7\n')
    (tmp_path / '1.squeue').write_text('7|COMPLETING|n1|None\n')
    one = a_site(tmp_path, 'squeue')
    for _ in range(40):
        one.job.submit()
        one.job.cancel()
        one.job.wait()
    assert one.clock.now - one.clock.begun < 2 * asking.STOPPING


@pytest.mark.parametrize('name', ['squeue', 'pbspro'])
def test_a_job_that_nobody_cancelled_is_waited_for_to_its_end(a_site, tmp_path, name):
    """ReFrame waits so for builds of a serial run, and for what asks a node for its processor."""
    (tmp_path / '1.sbatch').write_text('Submitted batch job 7\n')
    (tmp_path / '1.squeue').write_text('7|RUNNING|n1|None\n')
    (tmp_path / '20.squeue').write_text('7|COMPLETED|n1|None\n')
    (tmp_path / '1.qsub').write_text('7\n')
    (tmp_path / '1.qstat').write_text('Job Id: 7\n    job_state = R\n')
    (tmp_path / '20.qstat').write_text('Job Id: 7\n    job_state = F\n    Exit_status = 0\n')
    one = a_site(tmp_path, name)
    for output in (one.job.stdout, one.job.stderr):
        (one.work / output).touch()
    one.job.submit()
    one.job.wait()
    assert one.job.state == 'COMPLETED'
    assert one.clock.now - one.clock.begun > 2 * asking.STOPPING


def test_a_scheduler_that_is_away_keeps_no_run_from_its_end(a_site, tmp_path):
    (tmp_path / '1.sbatch').write_text('Submitted batch job 7\n')
    error = 'error: Unable to contact slurm controller (connect failure)\n'
    (tmp_path / '1.squeue.err').write_text(f'slurm_load_jobs {error}')
    (tmp_path / '1.scancel.err').write_text(f'scancel: {error}')
    one = a_site(tmp_path, 'squeue')
    for _ in range(40):
        one.job.submit()
        one.job.cancel()
        one.job.wait()
    assert one.clock.now - one.clock.begun < 2 * asking.STOPPING
    assert sum('scancel' in call for call in one.calls) == 1
    assert 'scancel 7' in one.said[-1]


def test_an_earlier_job_of_a_case_is_not_taken_for_one_that_was_not_submitted(
    a_site,
    tmp_path,
):
    (tmp_path / '1.sbatch').write_text('Submitted batch job 7\n')
    (tmp_path / '2.sbatch.err').write_text('sbatch: error: Socket timed out on send/recv\n')
    (tmp_path / '3.sbatch').write_text('Submitted batch job 8\n')
    (tmp_path / '1.squeue').write_text('7|RUNNING|n1|None\n')
    (tmp_path / '2.squeue').write_text('7|@WORK@\n')
    one = a_site(tmp_path, 'squeue')
    one.job.submit()
    one.scheduler.poll(one.job)
    one.job.submit()
    assert one.job.jobid == '8'


def test_where_there_is_no_sacct_squeue_is_asked(a_site, tmp_path):
    (tmp_path / '1.sbatch').write_text('Submitted batch job 7\n')
    (tmp_path / '1.squeue').write_text('7|RUNNING|n1|None\n')
    (tmp_path / '2.squeue.err').write_text('slurm_load_jobs error: Invalid job id specified\n')
    one = a_site(tmp_path)
    one.scheduler._sacct = 'no-sacct'
    assert one.play(60) is None
    assert one.job.state == 'COMPLETED'
    (said,) = one.said
    assert said.startswith('no-sacct: No such file or directory, so squeue is asked: write')


@pytest.mark.parametrize(
    'words',
    [
        'Please try again with --account',
        'You need to retry with a constraint, as inter-node communication is slow otherwise',
        'Requested wall time out of range',
    ],
)
def test_a_refusal_is_told_at_once(a_site, tmp_path, words):
    (tmp_path / '1.sbatch.err').write_text(f'sbatch: error: {words}\n')
    one = a_site(tmp_path, 'squeue')
    with pytest.raises(SpawnedProcessError, match=words):
        one.job.submit()
    assert one.clock.now == one.clock.begun


def test_a_plain_reframe_has_them_too(tmp_path):
    script = (
        'import runpy, sys; runpy.run_path(sys.argv[1]); '
        'from reframe.core.backends import getscheduler as get; '
        "print(*(get(name).__module__ for name in ('slurm', 'squeue', 'pbs', 'pbspro', 'torque')))"
    )
    told = subprocess.run(
        [sys.executable, '-c', script, paths.CONFIG / 'common.py'],
        env={**os.environ, 'ASSAY_RUN': str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert {one.rpartition('.')[0] for one in told.split()} == {'assay.running'}


PASSES = """
None
Resources
Priority
BeginTime
Dependency
Licenses
Prolog
Cleaning
AssocGrpCpuLimit
AssocGrpCPURunMinutesLimit
AssocGrpNodeLimit
AssocMaxJobsLimit
QOSGrpNodeLimit
QOSMaxJobsPerUserLimit
QOSMaxCpuPerUserLimit
QOSJobLimit
ReqNodeNotAvail, Reserved for maintenance
PartitionDown
PartitionInactive
Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions
Not Running: Node is in an ineligible state: down
"""

WAITS_FOR_SOMEBODY = """
PartitionTimeLimit
PartitionNodeLimit
MaxMemPerLimit
QOSMaxWallDurationPerJobLimit
QOSMaxCpuPerJobLimit
QOSGrpCPUMinutesLimit
QOSMinCpuNotSatisfied
AssocGrpBillingMinutes
AssocMaxCpuMinutesPerJobLimit
AccountNotAllowed
BadConstraints
InvalidAccount
InvalidQOS
JobHeldAdmin
JobHeldUser
(launch failed requeued held)
job_launch_failed_requeued_held
user_env_retrieval_failed_requeued_held
DependencyNeverSatisfied
MaxRequeue
"""


def test_which_reasons_pass_by_themselves():
    assert not [one for one in PASSES.strip().splitlines() if job_states.for_good(one)]
    waits = WAITS_FOR_SOMEBODY.strip().splitlines()
    assert not [one for one in waits if not job_states.for_good(one)]
