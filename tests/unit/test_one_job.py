"""Cases as steps of one allocation: which nodes they have, and how they end."""

import errno
import heapq
import json
import math
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
import reframe.core.runtime as rt
from reframe.core.exceptions import JobError, SkipTestError

from assay import AssayError, one_run, paths
from assay.machine import job_states, slurm
from assay.results.case_history import CaseHistory
from assay.running import (
    allocation,
    leftovers,
    reframe_options,
    reframe_plugin,
    runs,
    session,
    setting,
    steps,
)
from assay.running.node_plan import NodePlan, Want
from assay.running.selection import Listed
from command import call
from scheduler_sites import CONFIGURATION

# Which nodes ------------------------------------------------------------------------------------


def names(count):
    return [f'n{number}' for number in range(1, count + 1)]


def test_the_largest_is_first_and_holes_are_filled():
    plan = NodePlan(names(4))
    for case, count in (('small', 1), ('pair', 2), ('three', 3), ('all', 4)):
        plan.add(case, Want(count))
    assert plan.next() == ('all', names(4))
    assert plan.next() is None
    plan.has_ended(names(4))
    assert plan.next() == ('three', names(3))
    assert plan.next() == ('small', ['n4'])
    plan.has_ended(['n4'])
    assert plan.next() is None
    plan.has_ended(names(3))
    assert plan.next() == ('pair', names(2))


def test_nodes_that_a_case_asks_for():
    plan = NodePlan(names(4))
    plan.add('on n3', Want(1, frozenset({'n3'})))
    plan.add('also on n3', Want(1, frozenset({'n3', 'n9'})))
    plan.add('any', Want(1))
    assert [plan.next(), plan.next(), plan.next()] == [('on n3', ['n3']), ('any', ['n1']), None]
    plan.has_ended(['n3'])
    assert plan.next() == ('also on n3', ['n3'])


def test_one_at_a_time():
    plan = NodePlan(names(4), at_once=1)
    plan.add('a', Want(1))
    plan.add('b', Want(1))
    assert plan.next() == ('a', ['n1'])
    assert plan.next() is None
    plan.has_ended(['n1'])
    assert plan.next() == ('b', ['n1'])


def test_what_has_the_last_turn_waits_for_all_others():
    plan = NodePlan(names(4))
    plan.add('all, last', Want(4, is_last=True))
    plan.add('small, last', Want(1, is_last=True))
    plan.add('three', Want(3))
    plan.add('pair', Want(2))
    assert [plan.next(), plan.next()] == [('three', names(3)), None]
    plan.has_ended(names(3))
    assert [plan.next() for _ in range(3)] == [
        ('pair', ['n1', 'n2']),
        ('small, last', ['n3']),
        None,
    ]


def test_nodes_that_are_lost():
    plan = NodePlan(names(3))
    plan.add('running', Want(2))
    assert plan.next() == ('running', ['n1', 'n2'])
    plan.add('all', Want(3))
    plan.add('on n1', Want(1, frozenset({'n1'})))
    plan.add('pair', Want(2))
    plan.lose(['n1'])
    assert plan.too_large() == ['all', 'on n1']
    plan.has_ended(['n1', 'n2'])
    assert plan.next() == ('pair', ['n2', 'n3'])
    assert plan.waiting() == []


def test_a_thousand_nodes_and_ten_thousand_cases(monkeypatch):
    """On a clock of its own; the work is counted, and not timed."""
    looks = 0
    take = NodePlan._take

    def counted(self, want):
        nonlocal looks
        looks += 1
        return take(self, want)

    monkeypatch.setattr(NodePlan, '_take', counted)
    random = Random(37)
    plan, cases = NodePlan(names(1000)), range(10_000)
    sizes = {case: 2 ** random.randrange(11) if case % 50 == 0 else 1 + case % 4 for case in cases}
    sizes = {case: min(size, 1000) for case, size in sizes.items()}
    seconds = {case: random.uniform(5, 60) for case in cases}
    for case in cases:
        plan.add(case, Want(sizes[case]))
    now, running, busy, largest = 0.0, [], set(), []
    done = 0
    while done < len(cases):
        while found := plan.next():
            case, nodes = found
            assert len(nodes) == sizes[case] and busy.isdisjoint(nodes)
            busy.update(nodes)
            largest.append(sizes[case])
            heapq.heappush(running, (now + seconds[case], case, nodes))
        now, case, nodes = heapq.heappop(running)
        busy.difference_update(nodes)
        plan.has_ended(nodes)
        done += 1
    assert largest[0] == max(sizes.values())
    least = sum(seconds[case] * sizes[case] for case in cases) / 1000
    assert least <= now < 1.3 * least
    assert looks < 20 * len(cases)


# How they end -----------------------------------------------------------------------------------

SRUN = """#!/bin/bash
words=$*
while [[ $1 == --* ]]; do
    [[ $1 != --nodelist=* ]] || node=${1#*=}
    shift
done
[[ $1 == *step.sh ]] && echo "$words" >>"$STATE/sruns"
if [[ -e $STATE/refuses-once ]]; then
    cat "$STATE/refuses-once" >&2
    rm "$STATE/refuses-once"
    exit 1
fi
if [[ -e $STATE/refuses-$node ]]; then
    echo "srun: error: $node is bad" >&2
    cat "$STATE/refuses-$node" >&2
    exit 1
fi
export SLURM_STEP_ID=$$ SLURM_CPUS_ON_NODE=4 SLURM_JOB_ID=7 SLURM_NTASKS=1 SLURM_STEP_NODELIST=$node
echo "7.$$|$node" >"$STATE/step-$$"
"$@"
code=$?
rm -f "$STATE/step-$$"
[[ ! -e $STATE/dies-with-0 ]] || code=0
exit $code
"""
SQUEUE = """#!/bin/bash
if [[ $* == *--steps* ]]; then cat "$STATE"/step-* 2>/dev/null; exit 0; fi
[[ $* != *%A* ]] || number='7|'
[[ ! -e $STATE/job ]] || exec sed "s/^/$number/" "$STATE/job"
echo 'slurm_load_jobs error: Invalid job id specified' >&2
exit 1
"""
SINFO = """#!/bin/bash
cat "$STATE/nodes" 2>/dev/null
"""
SCANCEL = """#!/bin/bash
[[ ! -e $STATE/unkillable ]] || exit 0
for step; do
    echo "$step" >>"$STATE/cancelled"
    rm -f "$STATE/step-${step#7.}"
    kill -KILL -- "-${step#7.}"
done
"""

#: A step of a case that goes on when its script is killed, of a number that no process has.
STEP_LEFT = 'echo "7.999999999|n1" >"$STATE/step-999999999"; touch begun; sleep 98765'


class Cluster:
    """A Slurm whose steps are processes here."""

    def __init__(self, folder):
        self.folder, self.state = folder, folder / 'state'
        self.scheduler = steps.Steps(part_name='batch')
        self.jobs = []

    def has(self, nodes='n[1-4]'):
        (self.state / 'job').write_text(f'RUNNING|{nodes}|NO|all\n')

    def job(self, script, ranks=1, per_node=1, options='', known_as=('', '')):
        work = self.folder / f'case{len(self.jobs)}'
        work.mkdir()
        (work / 'rfm_job.sh').write_text(f'#!/bin/bash\n{options}\n{script}\n')
        (work / 'rfm_job.sh').chmod(stat.S_IRWXU)
        job = self.scheduler.make_job(
            name='rfm_Ring',
            workdir=str(work),
            script_filename='rfm_job.sh',
            stdout='rfm_job.out',
            stderr='rfm_job.err',
        )
        job._scheduler = self.scheduler
        job.num_tasks, job.num_tasks_per_node = ranks, per_node
        job.title, job.check = known_as
        self.jobs.append(job)
        before = os.getcwd()
        os.chdir(work)  # where ReFrame submits it
        try:
            job.submit()
        finally:
            os.chdir(before)
        return job

    def begun(self, then='exit 1', until='end', **about):
        """A job that has begun, and goes on until there is a file in its folder."""
        script = f'touch begun; while [[ ! -e {until} ]]; do sleep 0.05; done; {then}'
        job = self.job(script, **about)
        self.look(lambda: os.path.exists(f'{job.workdir}/begun'))
        return job

    def refuse(self, words=None):
        """No node starts a step from now on, and why; or each does again."""
        for node in names(4):
            path = self.state / f'refuses-{node}'
            path.unlink() if words is None else path.write_text(words)

    def look(self, until):
        deadline = time.monotonic() + 300
        while not until():
            assert time.monotonic() < deadline, [job.state for job in self.jobs]
            self.scheduler.poll(*self.jobs)
            time.sleep(0.01)

    def play(self):
        """To the end of all jobs."""
        self.look(lambda: all(self.scheduler.finished(job) for job in self.jobs))

    @staticmethod
    def said(job):
        return Path(job.workdir, 'rfm_job.out').read_text()


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """An allocation of four nodes."""
    (tmp_path / 'state').mkdir()
    commands = {'srun': SRUN, 'squeue': SQUEUE, 'sinfo': SINFO, 'scancel': SCANCEL}
    for name, text in commands.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')
    monkeypatch.setenv('STATE', str(tmp_path / 'state'))
    monkeypatch.setenv(allocation.VARIABLE, '7')
    monkeypatch.setattr(steps, 'AGAIN', 0)
    monkeypatch.setattr(paths, 'RUNS', tmp_path / 'runs')
    (tmp_path / 'settings.py').write_text(CONFIGURATION)
    (tmp_path / 'state' / 'job').write_text('RUNNING|n[1-4]|NO|all\n')
    steps._allocation.cache_clear()
    steps._warn_once.cache_clear()
    with rt.temp_runtime(str(tmp_path / 'settings.py'), 'made'):
        made = Cluster(tmp_path)
        yield made
        for job in made.jobs:
            if job.client and job.client.poll() is None:
                subprocess.run(['kill', '-KILL', '--', f'-{job.client.pid}'])
                job.client.wait()
    steps._allocation.cache_clear()


def test_a_script_sees_a_job_of_its_own_nodes(cluster, monkeypatch):
    monkeypatch.setenv('SLURM_CPU_BIND', 'of the job around')
    options = (
        '#SBATCH --nodelist=n[3-4]\n#SBATCH --threads-per-core=1\n#SBATCH --hint=nomultithread'
    )
    job = cluster.job('env | grep ^SLURM_ | sort', ranks=3, per_node=2, options=options)
    cluster.play()
    assert (job.state, job.exitcode, job.nodelist) == ('COMPLETED', 0, ['n3', 'n4'])
    assert job.jobid == f'7.{job.client.pid}'
    seen = dict(line.split('=', 1) for line in cluster.said(job).splitlines())
    assert seen == {
        'SLURM_CPUS_ON_NODE': '4',
        'SLURM_HINT': 'nomultithread',
        'SLURM_JOB_CPUS_PER_NODE': '4(x2)',
        'SLURM_JOB_ID': '7',
        'SLURM_JOB_NAME': 'rfm_Ring',
        'SLURM_JOB_NODELIST': 'n3,n4',
        'SLURM_JOB_NUM_NODES': '2',
        'SLURM_NNODES': '2',
        'SLURM_NODELIST': 'n3,n4',
        'SLURM_NPROCS': '3',
        'SLURM_NTASKS': '3',
        'SLURM_NTASKS_PER_NODE': '2',
        'SLURM_SUBMIT_DIR': job.workdir,
        'SLURM_TASKS_PER_NODE': '2,1',
        'SLURM_THREADS_PER_CORE': '1',
    }


def test_nodes_of_the_largest_machines_fit_into_a_variable():
    """Frontier has 9,408 nodes; ranges are at the ends of names alone."""
    large = [f'frontier{n:05}' for n in range(1, 9409) if n != 77]
    assert slurm.node_list(large) == 'frontier[00001-00076,00078-09408]'
    large = [f'x{n}c{n % 8}s0b0n{m}' for n in range(998, 6000) for m in (0, 1)]
    large += ['login', 'n008', 'n009', 'n010', 'n9']
    folded = slurm.node_list(large)
    assert folded.startswith('x998c6s0b0n[0-1],x999c7s0b0n[0-1],')
    assert folded.endswith(',login,n[008-010],n9')
    assert slurm.node_list(['r2i0n1', 'r1i0n1']) == 'r2i0n1,r1i0n1'


def test_a_script_does_not_take_itself_for_a_rank(cluster, monkeypatch):
    for name in ('PMI_RANK', 'PMIX_RANK', 'PMIX_MCA_gds'):
        monkeypatch.setenv(name, '0')
    job = cluster.job('env | grep ^PMI')
    cluster.play()
    assert cluster.said(job) == 'PMIX_MCA_gds=0\n'


def test_what_a_job_exports_and_which_limits_it_takes_along_its_step_does(cluster):
    options = '#SBATCH --export=ALL,KEY=value\n#SBATCH --propagate=NONE'
    for one in (options, ''):
        job = cluster.job('true', options=one)
        cluster.play()
        assert job.state == 'COMPLETED'
    first, second = (cluster.state / 'sruns').read_text().splitlines()
    assert ' --export=ALL,KEY=value --propagate=NONE ' in first
    assert '--export' not in second and '--propagate' not in second


def test_side_by_side_and_alone_on_their_nodes(cluster):
    """Each waits for the other, so both have to run at once; the third has to wait for both."""
    meet = 'touch ../{0}; for _ in $(seq 3000); do [[ -e ../{1} ]] && exit; sleep 0.1; done; exit 1'
    two = [cluster.job(meet.format(*names), ranks=2) for names in ('ab', 'ba')]
    small = cluster.job('true')
    cluster.play()
    assert [job.exitcode for job in (*two, small)] == [0, 0, 0]
    assert sorted(two[0].nodelist + two[1].nodelist) == names(4)
    assert small.began >= min(job.completion_time for job in two)


@pytest.fixture
def policy(cluster, monkeypatch):
    """ReFrame's, of which only this is known: the cases that it has been at work on, and how."""
    monkeypatch.setattr(steps, 'SOON', 0)
    made = object.__new__(reframe_plugin._Policy)
    made._schedulers, made.at_work = {'batch': cluster.scheduler}, []
    for name in ('startup', 'ready_run', 'running', 'completing'):
        monkeypatch.setattr(
            reframe_plugin.AsynchronousExecutionPolicy,
            f'_advance_{name}',
            lambda own, task: own.at_work.append(task),
        )
    return made


@pytest.mark.parametrize('work', ['startup', 'ready_run', 'completing'])
def test_nodes_do_not_wait_while_reframe_is_at_work_on_other_cases(cluster, policy, work):
    """It prepares and judges hundreds one after the other, for seconds."""
    first, second = (cluster.job('true', ranks=4) for _ in range(2))
    others = [SimpleNamespace() for _ in range(2)]
    policy._advance_startup(others[0])
    assert first.state == 'PENDING'  # the largest may be still to come
    cluster.scheduler.poll(first, second)
    first.client.wait()
    getattr(policy, f'_advance_{work}')(others[1])
    assert (first.state, second.state) == ('COMPLETED', 'RUNNING')
    assert policy.at_work == others


def test_reframe_is_not_at_work_on_cases_that_go_on(cluster, policy):
    first, second = (cluster.job('true', ranks=4) for _ in range(2))
    tasks = [SimpleNamespace(check=SimpleNamespace(job=job)) for job in (first, second)]
    cluster.scheduler.poll(first, second)
    assert [policy._advance_running(task) for task in tasks] == [0, 0] and not policy.at_work
    cluster.play()
    for task in tasks:
        policy._advance_running(task)
    assert policy.at_work == tasks


@pytest.mark.parametrize(
    ('script', 'state', 'code'),
    [('exit 7', 'FAILED', 7), ('kill -KILL $$', 'FAILED', 137), ('exit 0', 'COMPLETED', 0)],
)
def test_exit_codes_and_signals(cluster, script, state, code):
    job = cluster.job(script)
    cluster.play()
    assert (job.state, job.exitcode) == (state, code)


def test_a_script_that_srun_says_nothing_of_has_not_passed(cluster):
    """As srun of Slurm 22.05 ends with 0 when the node of a step has died."""
    (cluster.state / 'dies-with-0').touch()
    job = cluster.job('kill -KILL $PPID')
    cluster.play()
    assert (job.state, job.exitcode) == ('CANCELLED', None)


def test_what_outlives_a_time_limit_is_stopped(cluster):
    """A program of the case is a step of its own, which does not end with that of the script."""
    script = 'setsid srun --nodelist=n1 sleep 98765 & touch begun; wait'
    job = cluster.job(script)
    job.time_limit = 98765
    cluster.look(lambda: os.path.exists(f'{job.workdir}/begun') and len(own_steps(cluster)) == 2)
    begun = {step.read_text().partition('|')[0] for step in own_steps(cluster)}
    job.time_limit = 0.001
    cluster.play()
    assert (job.state, job.exitcode) == ('TIMEOUT', None)
    assert {*(cluster.state / 'cancelled').read_text().split()} == begun


def own_steps(cluster):
    return [path for path in cluster.state.glob('step-*') if path.read_text()]


def test_a_dead_node_costs_its_own_cases(cluster):
    """Also the one that needs more nodes than are left, and no other."""
    died = cluster.begun(ranks=2)
    others = [cluster.job('true') for _ in range(2)]
    cluster.has('n[1,3-4]')
    large = cluster.job('true', ranks=4)
    Path(died.workdir, 'end').touch()
    cluster.look(lambda: all(cluster.scheduler.finished(job) for job in (died, *others)))
    assert (died.state, died.nodelist) == ('NODE_FAIL', ['n1', 'n2'])
    assert 'Node failure on n2\n' in Path(died.workdir, 'rfm_job.err').read_text()
    assert [job.state for job in others] == ['COMPLETED'] * 2
    with pytest.raises(JobError, match='it needs 4 nodes, and the job 7 has 3 left for it'):
        large.finished()
    after = [cluster.job('true') for _ in range(3)]
    cluster.play()
    assert {job.nodelist[0] for job in after} == {'n1', 'n3', 'n4'}


def test_a_case_that_dies_and_whose_files_are_gone(cluster):
    """It says how it ended, and the others go on."""
    died = cluster.begun(until='../end', ranks=2)
    other = cluster.job('true')
    shutil.rmtree(died.workdir)
    cluster.has('n[1,3-4]')
    (cluster.folder / 'end').touch()
    cluster.play()
    assert (died.state, other.state) == ('NODE_FAIL', 'COMPLETED')
    words = r'a node of its job died \(n2\); /\S+/rfm_job.err: No such file or directory'
    with pytest.raises(JobError, match=words):
        died.finished()


def test_a_case_whose_folder_is_gone_before_it_starts(cluster):
    """It fails, and its nodes are for others."""
    first = cluster.begun(then='exit 0', ranks=4)
    lost, other = cluster.job('true', ranks=4), cluster.job('true', ranks=4)
    shutil.rmtree(lost.workdir)
    Path(first.workdir, 'end').touch()
    cluster.play()
    assert [job.state for job in (first, other)] == ['COMPLETED'] * 2
    words = r'this host could not start its job: /\S+/rfm_job.out: No such file or directory'
    with pytest.raises(JobError, match=words):
        lost.finished()


def test_a_host_without_room_for_one_more_process(cluster, monkeypatch):
    """A case waits until another has ended; if there is none it fails."""
    start = subprocess.Popen

    def refuse(*args, **more):
        if args[0][0] != 'srun' or (cluster.folder / 'room').exists():
            return start(*args, **more)
        raise BlockingIOError(errno.EAGAIN, 'Resource temporarily unavailable')

    first = cluster.begun(then='exit 0', until='../room')
    monkeypatch.setattr(subprocess, 'Popen', refuse)
    second = cluster.job('true')
    for _ in range(5):
        cluster.scheduler.poll(first, second)
    assert second.state == 'PENDING'
    (cluster.folder / 'room').touch()
    cluster.play()
    assert [job.state for job in (first, second)] == ['COMPLETED'] * 2
    (cluster.folder / 'room').unlink()
    alone = cluster.job('true')
    cluster.play()
    with pytest.raises(JobError, match='this host could not start its job: Resource temporarily'):
        alone.finished()


@pytest.fixture
def aside(cluster, monkeypatch):
    """A case for n1 and the next that has failed, a step of which cannot be ended."""
    monkeypatch.setattr(steps, 'PATIENCE', 0)
    monkeypatch.setattr(steps, 'LOOK', 0)
    (cluster.state / 'unkillable').touch()
    failed = cluster.job(STEP_LEFT.replace('sleep 98765', 'exit 1'), ranks=2)
    cluster.look(lambda: cluster.scheduler.finished(failed))
    assert (failed.state, failed.nodelist) == ('FAILED', ['n1', 'n2'])


def test_a_node_whose_steps_do_not_end_is_set_aside_until_they_do(cluster, aside):
    large = cluster.job('true', ranks=4)
    small = [cluster.job('true') for _ in range(4)]
    cluster.look(lambda: all(cluster.scheduler.finished(job) for job in small))
    assert 'n1' not in {job.nodelist[0] for job in small}
    assert 'n2' in {job.nodelist[0] for job in small}
    assert large.state == 'PENDING'
    (cluster.state / 'unkillable').unlink()
    cluster.play()
    assert (large.state, large.nodelist) == ('COMPLETED', names(4))


def test_a_node_that_is_set_aside_may_die(cluster, aside):
    large, rest = cluster.job('true', ranks=4), cluster.job('true', ranks=3)
    cluster.has('n[2-4]')
    (cluster.state / 'step-999999999').unlink()
    cluster.play()
    assert (rest.state, rest.nodelist) == ('COMPLETED', ['n2', 'n3', 'n4'])
    with pytest.raises(JobError, match='it needs 4 nodes, and the job 7 has 3 left for it'):
        large.finished()


def test_a_node_is_not_set_aside_for_ever(cluster, aside, monkeypatch):
    large = cluster.job('true', ranks=4)
    monkeypatch.setattr(steps, 'OUTAGE', 0)
    cluster.play()
    with pytest.raises(JobError, match='it needs 4 nodes, and the job 7 has 3 left for it'):
        large.finished()


def test_an_allocation_that_ends_while_all_wait_for_a_node(cluster, aside):
    large = cluster.job('true', ranks=4)
    (cluster.state / 'job').unlink()
    cluster.play()
    with pytest.raises(SkipTestError, match='not run: the job 7 has ended'):
        large.finished()


def test_a_node_that_starts_no_step_gets_no_more(cluster):
    (cluster.state / 'refuses-n1').touch()
    jobs = [cluster.job('true') for _ in range(6)]
    cluster.play()
    assert {job.state for job in jobs} == {'COMPLETED'}
    assert 'n1' not in {job.nodelist[0] for job in jobs}


def test_the_node_that_srun_names_is_set_aside_and_no_other(cluster):
    words = 'srun: error: Task launch for StepId=7.0 failed on node n2: Communication failure'
    (cluster.state / 'refuses-once').write_text(words)
    job = cluster.job('true', ranks=2)
    cluster.play()
    assert (job.state, job.nodelist, job.tries) == ('COMPLETED', ['n1', 'n3'], 1)


@pytest.mark.parametrize(
    ('words', 'ranks_before'),
    [
        ('Step limit reached for this job', [4]),
        ('unrecognized option', [4]),
        # As long as no node has started a step, it may be no node's fault.
        ('', []),
    ],
)
def test_what_is_no_node_s_fault_costs_none(cluster, monkeypatch, words, ranks_before):
    monkeypatch.setattr(steps, 'LOOK', 0)
    done = [cluster.job('true', ranks=ranks) for ranks in ranks_before]
    cluster.play()
    cluster.refuse(words)
    job = cluster.job('true')
    cluster.play()
    with pytest.raises(JobError, match=words or 'is bad'):
        job.finished()
    cluster.refuse(None)
    large = cluster.job('true', ranks=4)
    cluster.play()
    assert {one.state for one in (*done, large)} == {'COMPLETED'}


def test_more_nodes_than_the_job_ever_had(cluster):
    job = cluster.job('true', ranks=5)
    with pytest.raises(SkipTestError, match='it needs 5 nodes, and the job 7 has 4 for it'):
        job.finished()
    assert job.jobid == ''  # or it would count as one that only lacked time


@pytest.mark.parametrize(
    ('count', 'others', 'why'),
    [
        (5, {'n5': 'drained'}, ', all that are up (n5 cannot be used)'),
        (6, {'n5': 'drained', 'n6': 'down*'}, ', all that are up (n[5-6] cannot be used)'),
        (5, {'n5': 'idle'}, None),  # somebody asked for four
        (5, {'n5': 'idle', 'n6': 'down*'}, None),
        (6, {'n5': 'drained'}, ', all that are up (n5 cannot be used)'),
        (6, {'n5': 'idle', 'n6': 'down*'}, '; no job can have more than 5 (n6 cannot be used)'),
        (6, {'n5': 'idle'}, '; no job can have more than 5'),
    ],
)
def test_a_case_that_no_job_has_the_nodes_for(cluster, count, others, why):
    """It is as wrong as in a job of its own."""
    states = dict.fromkeys(names(4), 'allocated') | others
    lines = [f'all*|{node}|{state}|none\n' for node, state in states.items()]
    (cluster.state / 'nodes').write_text(''.join(lines))
    job = cluster.job('true', ranks=count)
    words = re.escape(f'it needs {count} nodes, and the job 7 has 4 for it{why or ""}')
    with pytest.raises(JobError if why else SkipTestError, match=f'{words}$'):
        job.finished()


@pytest.mark.parametrize(
    ('options', 'why'),
    [
        (['--reservation R'], ', all that are up (n4 cannot be used)'),
        (['--reservation=R', '--exclude=n4'], ', all that are up'),
        (['-p', 'small'], ', all that are up'),
        (['--constraint=big'], ', all that are up (n4 cannot be used)'),
        (['-C', '[big|small]'], None),
        ([], None),
    ],
)
def test_the_nodes_that_options_of_a_job_leave(cluster, monkeypatch, options, why):
    states = dict.fromkeys(names(9), 'idle') | {'n4': 'drained'}
    monkeypatch.setattr(
        allocation,
        'node_states',
        lambda partitions: {
            node: state
            for node, state in states.items()
            if partitions != ['small'] or node in names(3)
        },
    )
    monkeypatch.setattr(allocation, 'reserved_nodes', lambda name: {*names(4)})
    big = [{'NodeName': name, 'AvailableFeatures': 'big'} for name in names(4)]
    monkeypatch.setattr(slurm, 'records', lambda what: big)
    monkeypatch.setattr(steps._Job, 'cli_options', options)
    cluster.has('n[1-3]')
    job = cluster.job('true', ranks=4)
    words = re.escape(f'it needs 4 nodes, and the job 7 has 3 for it{why or ""}')
    with pytest.raises(JobError if why else SkipTestError, match=f'{words}$'):
        job.finished()


@pytest.mark.parametrize(
    ('options', 'error'), [('', JobError), ('#SBATCH --nodelist=n[1-4]', SkipTestError)]
)
def test_a_job_that_was_to_be_large_enough(cluster, monkeypatch, options, error):
    """A case fails also if it is not known why; a user who names nodes chooses how many."""
    monkeypatch.setenv(allocation.SIZED, '7')
    job = cluster.job('true', ranks=5, options=options)
    words = 'needs 5 nodes, and the job 7 has 4 for it(; to ask for more: -J nodes=5)?$'
    with pytest.raises(error, match=words):
        job.finished()


def test_a_named_node_that_cannot_be_used(cluster):
    lines = [f'all*|{node}|idle|none\n' for node in names(9) if node != 'n5']
    (cluster.state / 'nodes').write_text(''.join([*lines, 'all*|n5|drained|none\n']))
    job = cluster.job('true', ranks=2, options='#SBATCH --nodelist=n[4-5]')
    with pytest.raises(JobError, match=r'7 has 1 for it \(n5 cannot be used\)$'):
        job.finished()


@pytest.mark.parametrize(
    ('state', 'drained', 'words'),
    [
        ('CANCELLED', '12', r'\(cancelled, n\[1-2\] are drained: Prolog error\)'),
        ('CANCELLED', '2', r'\(cancelled, n2 is drained: Prolog error\)'),
        ('CANCELLED', '5', r'\(cancelled\)'),  # none of its nodes
        ('TIMEOUT', '2', r'\(timeout\)'),
        ('COMPLETING', '2', ''),  # Slurm has no better word
        ('RUNNING|n[1-4]|NO|all|0:00', '2', r'\(timeout\)'),
    ],
)
def test_how_an_allocation_ended(cluster, state, drained, words):
    lines = ''.join(f'all*|n{number}|drained|Prolog error\n' for number in drained)
    well = 'all*|n1|reserved|none\nall*|n3|powered_down|none\nall*|n4|idle|none\n'
    (cluster.state / 'nodes').write_text(well + lines)
    cut = cluster.begun()
    (cluster.state / 'job').write_text(f'{state}|||')
    Path(cut.workdir, 'end').touch()
    cluster.play()
    with pytest.raises(SkipTestError, match=f'the job 7 has ended ?{words}$'):
        cut.finished()


def test_an_allocation_that_ends(cluster):
    """What had ended counts; what had not was not run, and nothing of it is wrong."""
    done = cluster.job('true', ranks=4)
    cut = cluster.begun(ranks=3)
    waits = cluster.job('true', ranks=3)
    (cluster.state / 'job').unlink()
    Path(cut.workdir, 'end').touch()
    cluster.play()
    late = cluster.job('true')
    cluster.play()
    assert done.finished() and done.state == 'COMPLETED'
    for job in (cut, waits, late):
        with pytest.raises(SkipTestError, match='not run: the job 7 has ended'):
            job.finished()


@pytest.fixture
def timed(cluster, monkeypatch):
    """Tells the time left of the job, which is asked for whenever a case may be too late."""
    times = cluster.folder / 'times.json'
    times.write_text('{"steps": {"long": 90000}, "jobs": {"short": 1, "long": 1}}')
    monkeypatch.setenv(allocation.TIMES, str(times))
    monkeypatch.setattr(steps, 'LOOK', -1)

    def tell(left):
        (cluster.state / 'job').write_text(f'RUNNING|n[1-4]|NO|all|{left}\n')

    tell('1-00:00:00')
    return tell


@pytest.mark.parametrize(
    ('known_as', 'hours', 'left', 'starts'),
    [
        (('short', 'Pairs'), 48, '1:00:00', True),
        (('long', 'Ring'), 1, '1-00:00:00', False),
        (('long', 'Ring'), 1, '1-07:15:00', False),  # a quarter longer, and 5 s
        (('long', 'Ring'), 1, '1-07:16:00', True),
        (('new', 'Ring'), 10, '5:30:00', True),  # half of its limit
        (('new', 'Ring'), 10, '4:30:00', False),
        (('new', 'Ring'), 99, '12:30:00', True),  # half of what there was
        (('new', 'Ring'), 99, '11:30:00', False),
        (('new', 'Ring'), None, '11:30:00', False),
        (('long', 'Ring'), 1, 'UNLIMITED', True),
    ],
)
def test_a_case_that_the_time_left_is_too_short_for(cluster, timed, known_as, hours, left, starts):
    """It is skipped, and the run is none the worse; smaller ones go on."""
    first = cluster.job('true')
    cluster.play()
    timed(left)
    late = cluster.job('true', ranks=4, known_as=known_as)
    other = cluster.job('true', known_as=('short', 'Ring'))
    late.time_limit = hours and 3600 * hours
    steps._allocation()._until = time.monotonic()  # which Slurm is asked about again
    cluster.play()
    assert [job.state for job in (first, other)] == ['COMPLETED'] * 2
    if starts:
        assert late.state == 'COMPLETED'
        return
    with pytest.raises(SkipTestError, match=r'not run: the job 7 had too little time left$'):
        late.finished()


def test_time_that_somebody_takes_away_is_seen(cluster, timed, monkeypatch):
    monkeypatch.setattr(steps, 'LIMIT_HOLDS', -1)
    cluster.job('true')
    cluster.play()
    timed('1:00:00')
    late = cluster.job('true', known_as=('new', 'Ring'))
    late.time_limit = 36000
    cluster.play()
    with pytest.raises(SkipTestError, match='had too little time left'):
        late.finished()


def test_how_long_cases_of_a_check_take_is_learned(cluster, timed):
    cluster.job('true', known_as=('first', 'Ring'))
    cluster.play()
    timed('1:00:00')
    steps._allocation()._until = time.monotonic()
    second = cluster.job('true', known_as=('second', 'Ring'))
    other = cluster.job('true', known_as=('other', 'Pairs'))
    longer = cluster.job('true', known_as=('longer', 'Ring'))
    longer.time_limit = 86400
    cluster.play()
    assert [job.state for job in (second, other, longer)] == ['COMPLETED', *['CANCELLED'] * 2]


def test_what_is_to_come_first_does(cluster, timed):
    """And what is built for all, which has no title."""
    (cluster.folder / 'times.json').write_text('{"steps": {}, "first": ["small"]}')
    jobs = [
        cluster.job('true', ranks=ranks, known_as=(name, 'Ring'))
        for name, ranks in (('large', 4), ('small', 1), ('', 3))
    ]
    timed('0:00:30')
    jobs[2].time_limit = 1800
    cluster.play()
    assert jobs[2].began < jobs[1].began < jobs[0].began


def test_without_known_times_no_case_is_too_late(cluster, timed, monkeypatch):
    monkeypatch.delenv(allocation.TIMES)
    timed('0:01')
    job = cluster.job('true')
    job.time_limit = 3600
    cluster.play()
    assert job.state == 'COMPLETED'


def test_what_a_case_is_known_as(monkeypatch):
    monkeypatch.setattr(steps.RegressionTask, 'run', lambda task: None)
    job, check = SimpleNamespace(), case(1)
    task = object.__new__(steps._Task)
    task._case = SimpleNamespace(
        check=SimpleNamespace(job=job, display_name='Ring %fabric=tcp'),
        partition=SimpleNamespace(fullname=check.partition),
        environ=SimpleNamespace(name=check.environment),
    )
    task.run()
    assert (job.title, job.check) == ('Ring %fabric=tcp @made:a+openmpi', 'SimpleNamespace')


def test_an_allocation_that_has_ended_before(cluster):
    (cluster.state / 'job').unlink()
    job = cluster.job('true')
    with pytest.raises(SkipTestError, match='not run: the job 7 does not run'):
        job.finished()


def test_a_case_that_is_cancelled(cluster):
    runs, waits = (cluster.job('sleep 98765', ranks=4) for _ in range(2))
    cluster.look(lambda: own_steps(cluster))
    cluster.scheduler.cancel_many([runs, waits])
    cluster.play()
    assert [job.state for job in (runs, waits)] == ['CANCELLED'] * 2
    assert own_steps(cluster) == []


def test_a_run_that_is_stopped_starts_nothing_more(cluster):
    """ReFrame cancels one job after the other, and waits for each."""
    runs = [cluster.job('sleep 98765', ranks=2) for _ in range(2)]
    waits = [cluster.job('sleep 98765', ranks=2) for _ in range(3)]
    cluster.look(lambda: len(own_steps(cluster)) == 2)
    cluster.scheduler.cancel_many([runs[0]])
    cluster.scheduler.wait(runs[0])
    cluster.look(lambda: cluster.scheduler.finished(runs[1]))
    assert [job.client for job in waits] == [None] * 3
    cluster.scheduler.cancel_many(waits)
    cluster.play()
    assert {job.state for job in cluster.jobs} == {'CANCELLED'}


def test_jobs_that_do_not_end_have_one_time_to_do_so(cluster, monkeypatch):
    (cluster.state / 'unkillable').touch()
    monkeypatch.setattr(steps, 'STOPPING', 0.5)
    runs = [cluster.job(STEP_LEFT, ranks=2) for _ in range(2)]
    cluster.look(lambda: len(own_steps(cluster)) == 3)
    cluster.scheduler.cancel_many(runs[:1])
    cluster.scheduler.wait(runs[0])
    with monkeypatch.context() as patch:
        patch.setattr(time, 'sleep', lambda seconds: pytest.fail('it is waited once more'))
        cluster.scheduler.cancel_many(runs[1:])
        cluster.scheduler.wait(runs[1])
    (cluster.state / 'unkillable').unlink()
    cluster.play()


def test_what_somebody_runs_by_hand_there_is_left_alone(cluster, capsys):
    (cluster.state / 'step-1').write_text('7.1|n1\n6_0.1|n9\n')
    job = cluster.job('exit 1')
    cluster.play()
    assert job.nodelist == ['n1']
    assert not (cluster.state / 'cancelled').exists()
    told = capsys.readouterr().err
    assert '7.1 go on in the job 7' in told and '6_0.1' not in told


def test_srun_is_kept_to_the_nodes_of_a_case():
    """As the configuration registers it, for a plain ReFrame as well."""
    program = (
        'from assay.running.schedulers import use_own_schedulers as use; use(); use();'
        'from reframe.core.backends import getlauncher, getscheduler; from types import '
        'SimpleNamespace as Job; print(getscheduler("slurm").__module__, '
        '*getlauncher("srun")().command(Job(num_cpus_per_task=1)))'
    )
    said = subprocess.run(
        [sys.executable, '-c', program],
        env={**os.environ, allocation.VARIABLE: '7'},
        cwd=paths.ROOT / 'lib',
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.startswith('assay.running.steps srun ')
    assert said.endswith(' --nodes=$SLURM_NNODES --nodelist="$SLURM_JOB_NODELIST"\n')


# What is asked for ------------------------------------------------------------------------------


def site(*partitions, reasons=('ReqNodeNotAvail',)):
    return {
        'systems/0/partitions': [
            {'name': 'a', 'scheduler': 'slurm', 'access': ['-p all'], 'max_jobs': 2, **one}
            for one in partitions
        ],
        **{
            f'systems/0/partitions/@{name}/sched_options/slurm_job_cancel_reasons': own
            for name, own in (('a', reasons), ('b', ['Priority']))
        },
    }


def case(nodes, partition='a'):
    return Listed('Ring', f'made:{partition}', 'openmpi', nodes=nodes)


@pytest.fixture
def idle(monkeypatch):
    states = dict.fromkeys(names(6), 'idle') | {
        'n7': 'mixed',
        'n8': 'down*: mended',
        'n9': 'drained',
        'n10': 'idle*',
        'n11': 'mixed*: Not responding',
    }
    monkeypatch.setattr(allocation, 'node_states', lambda partitions: states)
    monkeypatch.setattr(allocation, 'most_nodes', lambda partitions: math.inf)


@pytest.mark.parametrize(
    ('cases', 'nodes'),
    [
        ([2, 2, 2], 4),  # as many at once as the site lets run
        ([4, 2, 2], 6),
        ([4, 4, 2], 7),  # all that there are
        ([16, 4], 4),  # the others go on
        ([9, 2], 7),  # four of eleven are out: no job can have all
        ([16], 16),  # Slurm says why not
        ([0], 6),  # a screening has all that are idle
    ],
)
def test_nodes_that_are_asked_for(idle, cases, nodes):
    asked = allocation.request(site({}), [case(count) for count in cases], [], None)
    assert asked == ['--exclusive', f'--nodes={nodes}', '-p', 'all']


@pytest.mark.parametrize(
    ('access', 'nodes'),
    [('-p all', 6), ('-p debug', 2), ('-p debug,few', 4), ('', 4), ('-p gone', 6)],
)
def test_no_more_nodes_are_asked_for_than_a_job_may_have(idle, monkeypatch, access, nodes):
    sizes = 'all|1-infinite\ndebug|1-2\ndebug|1-2\nfew*|4\n'
    monkeypatch.setattr(slurm, 'query', lambda *command: sizes)
    monkeypatch.setattr(allocation, 'most_nodes', slurm.most_nodes)
    asked = allocation.request(site({'access': [access]}), [case(4), case(2), case(2)], [], None)
    assert f'--nodes={nodes}' in asked


#: The states of nodes, three of which are in a reservation, and one in another.
RESERVED = {'n1': 'idle', 'n2': 'maint', 'n3': 'reserved', 'n4': 'mixed', 'n5': 'reserved'}


@pytest.fixture
def reserved(monkeypatch):
    found = [
        {'ReservationName': 'repair', 'Nodes': 'n[2-4,9]'},
        {'ReservationName': 'others', 'Nodes': 'n5'},
        {'ReservationName': 'licences', 'Nodes': '(null)'},
    ]
    monkeypatch.setattr(allocation, 'node_states', lambda partitions: RESERVED)
    monkeypatch.setattr(allocation, 'most_nodes', lambda partitions: math.inf)
    monkeypatch.setattr(slurm, 'records', lambda what: found)


@pytest.mark.parametrize(
    ('jobs', 'nodes'),
    [
        ([], 1),
        (['reservation=repair'], 2),
        (['reservation=repair', 'exclude=n3'], 1),
        (['reservation=repair,others'], 3),
        (['reservation=unknown'], 1),  # Slurm says why not
    ],
)
def test_a_screening_in_a_reservation_has_its_nodes(reserved, jobs, nodes):
    assert allocation.request(site({}), [case(0)], jobs, None)[1] == f'--nodes={nodes}'


def test_cases_in_a_reservation_have_its_nodes(reserved):
    for jobs, nodes in (([], 2), (['reservation=repair'], 3), (['reservation=others'], 1)):
        asked = allocation.request(site({'max_jobs': 9}), [case(1)] * 9, jobs, None)
        assert asked[1] == f'--nodes={nodes}'


def test_what_else_is_asked_for(idle):
    jobs = ['nodes=3', 't=10', '--qos=high']
    asked = allocation.request(site({}), [case(2)], jobs, 1200)
    assert asked == [
        *('--exclusive', '--nodes=2', '--time=25', '-p', 'all'),
        *('--nodes=3', '-t', '10', '--qos=high'),
    ]


def test_what_salloc_does_not_know_is_not_asked_for(idle):
    access = '-p all --export=NONE --no-requeue -o log --error=log --requeue --qos=high'
    access += ' --propagate=MEMLOCK --get-user-env --parsable -W --quiet --input=none --batch=big'
    access += ' --propagate --kill-on-invalid-dep=yes --ignore-pbs --export-file=x'
    asked = allocation.request(site({'access': [access]}), [case(1)], ['output=x'], None)
    assert asked == ['--exclusive', '--nodes=1', '-p', 'all', '--qos=high']


SALLOC = """#!/bin/bash
pwd >"$STATE/folder"
env >"$STATE/environment"
echo "$@" >"$STATE/asked"
echo 'salloc: Pending job allocation 12'
source "$STATE/then"
"""
GRANTED = "echo 'salloc: Granted job allocation 12'"
REFUSED = "echo 'salloc: error: Job submit/allocate failed: Invalid account'; exit 1"
#: A step that shares its CPUs with those of the cases.
OVERLAPS = {'SLURM_STEP_ID': '0', 'SLURM_OVERLAP': '1'}
#: It waits until it is told to end.
WAITS = "trap 'exit 1' TERM; touch $STATE/waits; for _ in $(seq 3000); do sleep 0.1; done"
STOPPED = """
trap 'echo "salloc: Job allocation 12 has been revoked."; exit 1' TERM
kill -TERM $PPID
for _ in $(seq 3000); do sleep 0.1; done
"""


@pytest.fixture
def salloc(cluster, monkeypatch):
    """Lets salloc go on so after it has asked."""
    program = cluster.folder / 'salloc'
    program.write_text(SALLOC)
    program.chmod(stat.S_IRWXU)
    monkeypatch.setattr(allocation, 'release', lambda job: (cluster.state / 'free').write_text(job))
    return lambda then: (cluster.state / 'then').write_text(then)


def test_a_job_is_obtained_and_given_back(cluster, salloc):
    salloc(GRANTED)
    with allocation.one_job(None, ['--nodes=4'], cluster.folder) as number:
        assert number == '12'
        assert not (cluster.state / 'free').exists()
    assert (cluster.state / 'free').read_text() == '12'
    assert (cluster.state / 'folder').read_text() == f'{cluster.folder}\n'
    asked = '--no-shell --no-kill --wait-all-nodes=1 --job-name=assay --nodes=4\n'
    assert (cluster.state / 'asked').read_text() == asked


def test_a_user_s_defaults_for_salloc_and_srun_do_not_count(cluster, salloc, monkeypatch):
    defaults = {'SALLOC_PARTITION': 'small', 'SRUN_CPUS_PER_TASK': '2'}
    for name, value in defaults.items():
        monkeypatch.setenv(name, value)
    salloc(GRANTED)
    with allocation.one_job(None, ['-p', 'all'], cluster.folder):
        seen = (cluster.state / 'environment').read_text()
    assert not any(f'{name}=' in seen for name in defaults)


def test_a_job_of_other_nodes_is_given_back(cluster, salloc):
    salloc(GRANTED)
    with pytest.raises(AssayError, match="in Slurm's partition all, and the cases are for small"):
        allocation.one_job(None, ['-p', 'small'], cluster.folder).__enter__()
    assert (cluster.state / 'free').read_text() == '12'


def test_a_job_that_is_refused(cluster, salloc):
    salloc(REFUSED)
    with pytest.raises(AssayError, match=r'no job for all cases: .*: Invalid account'):
        allocation.obtain([], cluster.folder)


def test_a_command_that_is_stopped_while_it_waits(cluster, salloc):
    salloc(STOPPED)
    with pytest.raises(allocation.SignalledError) as stopped:
        allocation.obtain([], cluster.folder)
    assert stopped.value.args == (signal.SIGTERM,)
    assert (cluster.state / 'free').read_text() == '12'


@pytest.mark.parametrize(
    ('reason', 'words'),
    [
        ('PartitionNodeLimit', 'asks for more nodes than the partition allows'),
        ('PartitionDown', r'PartitionDown: a reason .*slurm_job_cancel_reasons'),
        ('ReqNodeNotAvail, UnavailableNodes:n2', r'n2: nodes have been unavailable for'),
    ],
)
def test_a_job_that_no_waiting_helps(cluster, salloc, monkeypatch, reason, words):
    monkeypatch.setattr(allocation, 'LOOK', 0)
    monkeypatch.setattr(job_states, 'UNAVAILABLE', 0.0)
    (cluster.state / 'job').write_text(f'{reason}\n')
    salloc(WAITS)
    own = site(**({'reasons': ['PartitionDown']} if 'Down' in reason else {}))
    given_up = allocation.cancel_reasons(own, [case(1)])
    with pytest.raises(AssayError, match=f'{words}.*--nodes=9.*-J nodes='):
        allocation.obtain(['--nodes=9'], cluster.folder, given_up)
    assert (cluster.state / 'free').read_text() == '12'


OF_OWN_JOBS = """#!/bin/bash
[[ $* == *--me* ]] || exec echo QOSMaxNodePerUserLimit
[[ -e $STATE/looks ]] || echo 3
echo >>"$STATE/looks"
"""


def test_a_job_beyond_a_limit_on_all_jobs_of_its_user(cluster, salloc, monkeypatch):
    """It is given up once none of them has nodes, and not before."""
    monkeypatch.setattr(allocation, 'LOOK', 0)
    (cluster.folder / 'squeue').write_text(OF_OWN_JOBS)
    salloc(WAITS)
    with pytest.raises(AssayError, match='UserLimit: it asks for more than the QOS allows all of'):
        allocation.obtain(['--nodes=9'], cluster.folder)
    assert (cluster.state / 'looks').read_text() == (1 + allocation.ALONE) * '\n'


@pytest.mark.parametrize(
    ('reason', 'seconds', 'reasons', 'ends'),
    [
        ('ReqNodeNotAvail, UnavailableNodes:', 9999, ['ReqNodeNotAvail', 'Priority'], False),
        ('ReqNodeNotAvail, UnavailableNodes:n2', 1700, ['ReqNodeNotAvail'], False),
        ('ReqNodeNotAvail, UnavailableNodes:n2', 1900, ['ReqNodeNotAvail'], True),
        ('ReqNodeNotAvail, UnavailableNodes:n2', 1, ['ReqNodeNotAvail', 'Priority'], True),
        ('ReqNodeNotAvail, UnavailableNodes:n2', 9999, [], False),
        ('Priority', 9999, ['ReqNodeNotAvail'], False),
        ('Priority', 1, ['Priority'], True),
    ],
)
def test_how_long_a_job_is_waited_for(reason, seconds, reasons, ends):
    assert bool(job_states.in_vain(reason, seconds, reasons)) == ends


def test_reasons_are_those_of_the_partitions_of_the_cases():
    assert allocation.cancel_reasons(site({}), [case(1)]) == {'ReqNodeNotAvail'}
    assert allocation.cancel_reasons(site({}), [case(1, 'b')]) == {'Priority'}


def test_the_number_of_a_job_among_words_of_a_site(cluster, salloc):
    salloc("echo 'salloc: lua: job 3 of 5 today; queued job allocation 4'; " + GRANTED)
    assert allocation.obtain([], cluster.folder) == '12'


@pytest.mark.parametrize('variables', [{}, {'SLURM_STEP_ID': '4294967290'}, OVERLAPS])
def test_a_job_around_that_has_its_cpus(monkeypatch, variables):
    for name, value in {'SLURM_JOB_ID': '7', **variables}.items():
        monkeypatch.setenv(name, value)
    assert allocation.leave() == '7'
    assert 'SLURM_JOB_ID' not in os.environ


def test_a_step_around_that_holds_the_cpus(monkeypatch):
    monkeypatch.setenv('SLURM_JOB_ID', '7')
    monkeypatch.setenv('SLURM_STEP_ID', '0')
    monkeypatch.delenv('SLURM_OVERLAP', raising=False)
    with pytest.raises(AssayError, match=r'runs in the step 7\.0, which holds CPUs'):
        allocation.leave()


def test_two_runs_in_one_job(cluster):
    """A lock keeps others out until its process ends, or closes it."""
    handle = steps._allocation().handle
    steps._allocation.cache_clear()
    job = cluster.job('true')
    with pytest.raises(SkipTestError, match='not run: another run has its cases in the job 7'):
        job.finished()
    os.close(handle)
    steps._allocation.cache_clear()
    job = cluster.job('true')
    cluster.play()
    assert job.state == 'COMPLETED'


def test_what_a_killed_run_left_is_cancelled_by_the_next(cluster, monkeypatch):
    """A run under way keeps its own."""
    monkeypatch.setattr(runs.paths, 'RUNS', cluster.folder)
    killed, other = runs.begin_run(), runs.begin_run()
    os.close(killed.handle)
    jobs = {5: ('RUNNING', killed), 6: ('COMPLETING', killed), 7: ('RUNNING', other)}
    lines = [f'{job}|{state}|None|{run.folder}\n' for job, (state, run) in jobs.items()]
    (cluster.state / 'job').write_text(''.join(lines))
    (cluster.folder / 'scancel').write_text('#!/bin/bash\necho "$@" >>"$STATE/cancelled"\n')
    monkeypatch.setattr(leftovers, 'say', [].append)
    try:
        leftovers.stop_what_was_left()
    finally:
        os.close(other.handle)
    assert (cluster.state / 'cancelled').read_text() == '5\n'


def test_a_job_around_this_command(cluster):
    with allocation.one_job('7', ['--partition=all,big'], cluster.folder) as number:
        assert number == '7'
    with pytest.raises(AssayError, match="in Slurm's partition all, and the cases are for small"):
        allocation.one_job('7', ['-p', 'small'], cluster.folder).__enter__()
    (cluster.state / 'job').unlink()
    with pytest.raises(AssayError, match='the job 7 does not run'):
        allocation.one_job('7', [], cluster.folder).__enter__()


BOOTS = """#!/bin/bash
[[ $* != *--steps* ]] || exit 0
echo >>"$STATE/asked"
(($(wc -l <"$STATE/asked") < 3)) || state=RUNNING
echo "7|${state-CONFIGURING}|n[1-4]|NO|all"
"""


def test_a_job_whose_nodes_boot_is_waited_for(cluster, monkeypatch):
    monkeypatch.setattr(allocation, 'AGAIN', 0)
    (cluster.folder / 'squeue').write_text(BOOTS)
    with allocation.one_job('7', [], cluster.folder):
        assert (cluster.state / 'asked').read_text() == '\n' * 3
    (cluster.state / 'asked').unlink()
    assert steps._allocation().nodes == {*names(4)}
    assert (cluster.state / 'asked').read_text() == '\n' * 3


#: What Slurm tells by the number of one job: of all of an array, of all components of a job.
FAMILIES = {
    'array': '9|TIMEOUT|n[7-8]|NO|all|0:00\n7|RUNNING|n[1-4]|NO|all|1:00\n',
    'heterogeneous': '7|RUNNING|n[1-4]|NO|all|1:00\n8|RUNNING|n[5-6]|OK|big|UNLIMITED\n',
}


@pytest.mark.parametrize('family', FAMILIES)
def test_a_job_of_several_that_slurm_tells_together(cluster, family):
    (cluster.folder / 'squeue').write_text(f'#!/bin/bash\necho -n "{FAMILIES[family]}"\n')
    found = allocation.ask_standing('7')
    assert found == allocation.Standing(True, tuple(names(4)), False, 'all', False, 'RUNNING', 60)


def test_steps_of_a_job_of_an_array(cluster):
    """Not those of Slurm itself, and of a batch script."""
    (cluster.state / 'step-1').write_text('6_1.0|n[1-2]\n6_1.batch|n1\n6_1.extern|n[1-4]\n7.3|n4\n')
    assert allocation.running_steps('7') == {'6_1.0': {'n1', 'n2'}, '7.3': {'n4'}}


@pytest.mark.parametrize(
    ('other', 'words'),
    [
        ({'name': 'b', 'scheduler': 'local'}, 'the scheduler of b is local'),
        ({'name': 'b', 'access': ['-p small']}, 'the nodes of a and b, whose access differs'),
    ],
)
def test_what_one_job_cannot_have(idle, other, words):
    with pytest.raises(AssayError, match=words):
        allocation.request(site({}, other), [case(2), case(2, 'b')], [], None)


def test_a_partition_s_constraint_and_that_of_a_run(idle, monkeypatch):
    able = [{'NodeName': name, 'AvailableFeatures': 'hdr,c5.xlarge'} for name in names(3)]
    monkeypatch.setattr(slurm, 'records', lambda what: able)
    for access, jobs, word in (
        ('-C hdr', ['constraint=c5.xlarge'], '(hdr)&(c5.xlarge)'),
        ('--constraint=hdr', [], 'hdr'),
        ('', ['C=hdr'], 'hdr'),
    ):
        asked = allocation.request(site({'access': [access]}), [case(2)] * 9, jobs, None)
        assert asked == ['--exclusive', '--nodes=3', f'--constraint={word}']


def test_the_nodes_that_a_constraint_leaves_are_told(idle, monkeypatch, capsys):
    able = [{'NodeName': name, 'AvailableFeatures': 'hdr'} for name in ('n1', 'n7', 'n8', 'n9')]
    monkeypatch.setattr(slurm, 'records', lambda what: able)
    allocation.request(site({}), [case(2)], ['constraint=hdr'], None)
    assert 'Assay: 2 nodes can be used with hdr: n[1,7]' in capsys.readouterr().err


def test_an_option_without_its_value(idle):
    with pytest.raises(AssayError, match=r'options of jobs: .*expected one argument'):
        allocation.request(site({}), [case(2)], ['constraint'], None)


def test_a_constraint_that_only_slurm_understands(idle):
    with pytest.raises(AssayError, match=r'only Slurm can tell .*: give the number as -J nodes=N'):
        allocation.request(site({}), [case(2)], ['constraint=[a|b]'], None)


CONTRACT = paths.ROOT / 'docs' / 'contract.yaml'


@pytest.mark.parametrize(
    'words',
    [
        ['run'],
        ['nightly'],
        ['compare-settings', 'openmpi', 'mpich'],
        ['screen'],
        ['accept', 'run', CONTRACT, '--folder', paths.ROOT / 'acceptance'],
    ],
    ids=lambda words: words[0],
)
def test_each_command_that_measures_can_have_one_job(monkeypatch, words):
    asked = []

    def suite(*arguments):
        asked.append(arguments[-1])
        raise SystemExit(7)

    monkeypatch.setattr(session, 'suite', suite)
    assert [call(*words, *more).exit_code for more in ([], ['--one-job'])] == [7, 7]
    assert asked == [False, True]


@pytest.fixture
def suite(cluster, idle, monkeypatch):
    """One whose sessions are to have one job."""
    monkeypatch.setattr(session, 'list_cases', lambda *_: [case(2)])
    monkeypatch.setattr(runs.paths, 'RUNS', cluster.folder)
    own = runs.begin_run()
    yield session.Suite(own, 'made', 'smoke', (), {}, is_one_job=True)
    os.close(own.handle)


@pytest.mark.parametrize(('size', 'sized'), [([], '12'), (['-J', 'nodes=3'], '')])
def test_the_sessions_of_a_command_have_one_job(cluster, salloc, suite, size, sized):
    salloc(GRANTED)
    given = reframe_options.read_options(['-J', 'time=5', *size])
    with suite.in_one_job(site({}), given, []):
        assert suite.environment == {allocation.VARIABLE: '12', allocation.SIZED: sized}
    asked = (cluster.state / 'asked').read_text()
    assert ' --exclusive --nodes=2 -p all --time=5' in asked
    assert (cluster.state / 'free').read_text() == '12'


#: A case that took 60 s once, 100 s otherwise, and once as long because it waited in a queue.
HISTORY = CaseHistory(
    datetime(2026, 11, 1, tzinfo=timezone.utc),
    seconds=[100.0, 60.0, 100.0, 100.0],
    seconds_of_steps=[60.0, 100.0],
)


@pytest.fixture
def first(cluster, salloc, suite, monkeypatch):
    """How many of four cases, each on two nodes of four, come first in so much time."""
    cases = [Listed(f'Ring %fabric={one}', 'made:a', 'openmpi', nodes=2) for one in 'abcd']
    monkeypatch.setattr(one_run, 'list_cases', lambda *_: cases)
    monkeypatch.setattr(one_run, 'load_history', lambda: None)
    salloc(GRANTED)

    def order(left, own=None, chosen=None, known=cases):
        monkeypatch.setattr(
            one_run, 'case_histories', lambda *_: {one.title: HISTORY for one in known}
        )
        (cluster.state / 'job').write_text(f'RUNNING|n[1-4]|NO|all|{left}\n')
        choice = chosen and SimpleNamespace(listed=cases[:chosen])
        given = reframe_options.read_options([])
        request = one_run.RunRequest(suite, site(own or {}), given, None, [])
        with one_run.in_ordered_job(request, choice, None):
            pass
        told = json.loads(Path(suite.environment[allocation.TIMES]).read_text())
        assert told[allocation.STEPS] == {one.title: 100.0 for one in known}
        assert told[allocation.JOBS] == {one.title: 60.0 for one in known}
        return len(told[allocation.FIRST]) if allocation.FIRST in told else None

    return order


@pytest.mark.parametrize(
    ('left', 'count', 'more'),
    [
        ('3:30', None, {}),  # two at a time, so there is time for all
        ('1:50', 2, {}),
        ('1:50', 1, {'own': {'extras': {'on_this_machine': True}}}),
        ('1:50', None, {'known': []}),
        ('UNLIMITED', None, {}),
        ('1:50', None, {'chosen': 2}),
        ('1:50', 2, {'chosen': 3}),
        ('0:08', None, {}),
    ],
)
def test_the_time_left_of_the_job_is_a_budget(first, left, count, more):
    assert first(left, **more) == count


def test_a_command_that_is_stopped_before_its_sessions(salloc, suite):
    salloc(STOPPED)
    with pytest.raises(SystemExit) as stopped:
        suite.in_one_job(site({}), reframe_options.read_options([]), [], [case(1)]).__enter__()
    assert stopped.value.code == 143


def test_the_nodes_of_both_sides_are_of_one_job(idle):
    sides = setting.read_settings(['nodes=n[1-3]'], ['nodes=n[3-5]'])
    given = setting.with_nodes(reframe_options.read_options([]), sides)
    asked = allocation.request(site({}), [case(2)], given.jobs, None)
    assert asked[:2] == ['--exclusive', '--nodes=5']
    assert asked[-1] == '--nodelist=n[1-3],n[3-5]'
    assert setting.with_nodes(given, setting.read_settings([], ['OMP_X=1'])) == given
