"""Which jobs are measured again: golden ones, slowed down and disturbed by hand."""

import errno
import json
import math
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import reframe as rfm
from reframe.core.exceptions import PerformanceError, SanityError, UnexpectedSuccessError

from assay.checks import remeasure
from assay.config import references
from assay.results.cases import NO_EVIDENCE, is_no_evidence
from assay.results.reframe_report import case_of
from assay.running import runs
from assay.running.processes import Use
from assay.witness.disturbance import MOVED
from changing import changing
from checks import check_on
from golden_jobs import slow
from witnessed import disturbance

SUPPORT = Path(__file__).parents[1] / 'support'
GOLDEN = Path(__file__).parents[1] / 'golden' / 'jobs' / 'PointToPoint' / 'openmpi-shm'
QUIET, BUSY = disturbance(), disturbance(foreign=0.5)
FAILED = r'^\s*failed to meet reference'
JOB = 4711
WHO = 'python (process 12) for 2.0 s'


class Machine:
    """What others use of it, told to the check in place of what they really do.

    :param at_work: whether others have used it while a job ran.
    :param stay: how often one looks and they are still there.
    """

    def __init__(self, at_work=True, stay=1):
        self.at_work, self.stay = at_work, stay
        self.time = 0.0

    def others(self, sessions):
        began = self.time
        self.sessions = sessions
        return SimpleNamespace(use=lambda cpus=None: self.use(began, cpus))

    def use(self, began, cpus):
        if cpus is not None:
            self.cpus = cpus
        cpu = 2.0 if self.at_work else 0.0
        return Use(max(self.time - began, 5.0), cpu, (WHO,) if cpu else ())

    def pass_time(self):
        """Seconds pass, and others may leave."""
        self.time += 5
        self.stay -= 1
        if not self.stay:
            self.at_work = False


@pytest.fixture
def measure(tmp_path, monkeypatch):
    """A function that lets a check have its jobs until it has evidence; returns the check.

    :param jobs: what each leaves, as a function that changes the files of the golden job; the last
        is that of all that follow.
    :param states: in which they end, where it is not by themselves.
    """

    def run(
        *jobs,
        machine=None,
        system=SUPPORT / 'system.py',
        extras=None,
        local=True,
        wait=60.0,
        change=None,
        states=(),
    ):
        machine = machine or Machine()
        monkeypatch.setattr(remeasure, 'Others', machine.others)
        monkeypatch.setattr(remeasure.time, 'monotonic', lambda: machine.time)
        monkeypatch.setattr(remeasure, '_spent', run.spent)
        monkeypatch.setattr(remeasure, 'say', run.said.append)
        stage = tmp_path / 'stage'
        shutil.rmtree(stage, ignore_errors=True)
        stage.mkdir()
        (stage / 'input').touch()
        where = (system, 'golden:node', tmp_path / 'reframe', 'mpi/pt2pt', 'PointToPoint')
        chosen = {'fabric': 'shm', 'layout': 'packed', 'scale': '1_node'}
        with check_on(*where, 'openmpi', **chosen) as (check, partition, environ):
            if change:
                change(check)
            check.setup(partition, environ)
            partition._extras = {**partition.extras, **(extras or {})}
            monkeypatch.setattr(type(partition.scheduler), 'is_local', local)
            check.executable, check.wait_for_quiet = check.program, wait
            check._stagedir = str(stage)
            check._job = SimpleNamespace(
                stdout='rfm_job.out',
                stderr='rfm_job.err',
                exitcode=0,
                state='COMPLETED',
                nodelist=['n1'],
                jobid=str(JOB),
            )
            left, ends = list(jobs), list(states)

            def submit(check):
                check.started = getattr(check, 'started', 0) + 1
                if ends:
                    *before, check._job.state = ends.pop(0).split()
                    check._job.was_suspended = 'SUSPENDED' in before
                assert [one.name for one in stage.iterdir()] == ['input']
                shutil.copytree(GOLDEN, stage, dirs_exist_ok=True)
                (left.pop(0) if len(left) > 1 else left[0])(stage)

            monkeypatch.setattr(rfm.RunOnlyRegressionTest, 'run', submit)
            check.remember_how_it_began()
            submit(check)
            looks = 0
            while not check.is_settled():
                machine.pass_time()
                looks += 1
                assert looks < 100, 'it never ends'
            run.checks.append(check)
            for phase in ('sanity', 'performance'):
                getattr(check, phase)()
        return check

    run.checks, run.said, run.spent = [], [], remeasure._Spent()
    # What a test leaves there is for itself.
    (own := runs.RunFolder(tmp_path / 'run')).folder.mkdir()
    monkeypatch.setattr(runs, 'this_run', lambda: own)
    return run


@changing
def edit(folder, name, change):
    report = json.loads((folder / name).read_text())
    change(report)
    (folder / name).write_text(json.dumps(report))


def witnessed(seen):
    return edit('witness.json', lambda report: report['hosts'][0].update(disturbance=seen))


@changing
def both(folder, *changes):
    for change in changes:
        change(folder)


GOOD = witnessed(QUIET)
SLOW = both(edit('result.json', slow), witnessed(QUIET))
DISTURBED = both(edit('result.json', slow), witnessed(BUSY))


def test_a_disturbed_job_is_measured_again_when_others_have_gone(measure):
    check = measure(DISTURBED, GOOD, machine=Machine(stay=3))
    assert (check.started, check.no_evidence) == (2, '')
    (why,) = check.replaced
    assert 'latency_over_limit is ' in why
    assert why.endswith(f"other processes took 50% of the time of the job's CPUs, {WHO}")
    assert measure.said == [f'{check.display_name}: {why}; measured again when they have gone']
    assert all(values[-1] != 'fail' for values in check.perfvalues.values())
    assert measure.spent == remeasure._Spent(jobs=1, waiting=15.0, sessions={JOB})


def test_a_preempted_job_is_measured_again(measure):
    check = measure(GOOD, local=False, states=['PREEMPTED', 'PREEMPTED', 'COMPLETED'])
    assert (check.started, check.no_evidence, len(check.replaced)) == (3, '', 2)
    assert 'preempted' in check.replaced[0]


def test_a_job_that_was_suspended_is_measured_again_if_it_misses(measure):
    states = ['SUSPENDED COMPLETED', 'COMPLETED']
    check = measure(SLOW, GOOD, local=False, states=states)
    assert (check.started, check.no_evidence) == (2, '')
    assert check.replaced[0].endswith(
        '; its job was suspended: the scheduler gave its nodes to others meanwhile'
    )
    assert measure(GOOD, local=False, states=states).started == 1


#: What names a case in a report.
NAME = {
    'display_name': 'Ring',
    'system': 'golden',
    'partition': 'node',
    'environ': 'mpich',
    'fixture': False,
}


def test_one_that_is_preempted_each_time_is_no_evidence(measure):
    """It is neither pass nor fail: others took its nodes."""
    with pytest.raises(SanityError) as error:
        measure(GOOD, local=False, states=3 * ['PREEMPTED'])
    check = measure.checks[-1]
    assert check.started == remeasure.JOBS
    case = NAME | {
        'result': 'fail',
        'fail_phase': 'sanity',
        'fail_reason': f'sanity error: {error.value}',
        'no_evidence': check.no_evidence,
        'perfvalues': {},
    }
    assert is_no_evidence(case_of(case))
    for name, value in (('result', 'pass'), ('fail_phase', 'run'), ('no_evidence', '')):
        assert not is_no_evidence(case_of(case | {name: value}))


def test_one_that_others_never_leave_alone_is_no_evidence(measure):
    with pytest.raises(PerformanceError) as error:
        measure(DISTURBED, machine=Machine(stay=-1))
    (check,) = measure.checks
    assert (check.started, check.replaced) == (1, [])
    assert check.no_evidence.endswith(f'; others did not leave within 60 s, at last {WHO}')
    assert str(error.value) == f'{NO_EVIDENCE}{check.no_evidence}'


@pytest.mark.parametrize(('left', 'jobs'), [(0.2, 2), (0.3, 1)])
def test_one_that_most_others_leave_alone_is_measured_again(measure, left, jobs):
    """Some services are never quiet."""

    class Served(Machine):
        def use(self, began, cpus):
            use = super().use(began, cpus)
            share = 0.5 if self.time == 0 else 0.5 * left
            return replace(use, cpu=share * use.seconds * len(os.sched_getaffinity(0)))

    with suppress(PerformanceError):
        measure(DISTURBED, GOOD, machine=Served(stay=-1))
    (check,) = measure.checks
    assert check.started == jobs
    assert bool(check.no_evidence) == (jobs == 1)
    assert measure.spent.waiting == 60


class Returning(Machine):
    """Others are there whenever a job runs, and have gone when the check looks for them."""

    def __init__(self, looks=0):
        super().__init__()
        self.looks = looks

    def others(self, sessions):
        self.looks += 1
        cpu = 2.0 if self.looks % 2 else 0.0
        return SimpleNamespace(use=lambda cpus=None: Use(5.0, cpu, (WHO,)))


def test_one_that_is_disturbed_each_time_has_three_jobs(measure):
    with pytest.raises(PerformanceError, match=f'^{NO_EVIDENCE}'):
        measure(DISTURBED, machine=Returning())
    (check,) = measure.checks
    assert (check.started, len(check.replaced)) == (3, 2) == (remeasure.JOBS, remeasure.JOBS - 1)


def wrong_answer(folder):
    (folder / 'result.json').write_text('{"program": "pt2pt"}')


def another_fabric(folder):
    path = folder / 'rfm_job.out'
    path.write_text(path.read_text().replace('sm', 'tcp'))


def both_on_core_0(report):
    for process in report['processes']:
        process.update(cpus='0', cores='0')


@pytest.mark.parametrize(
    ('left', 'error', 'words'),
    [
        (SLOW, PerformanceError, FAILED),
        (both(DISTURBED, wrong_answer), SanityError, 'not a complete report'),
        (both(DISTURBED, another_fabric), SanityError, 'fabric shm was asked for'),
        (both(DISTURBED, edit('witness.json', both_on_core_0)), SanityError, 'share core 0'),
        # Too many threads of its own, a quota.
        (both(SLOW, witnessed(disturbance(waited=0.5))), PerformanceError, FAILED),
        (both(SLOW, witnessed(disturbance(foreign=0.5, throttled=0.3))), PerformanceError, FAILED),
    ],
)
def test_what_is_wrong_with_the_job_itself_fails_at_once(measure, left, error, words):
    with pytest.raises(error, match=words):
        measure(left, GOOD)
    (check,) = measure.checks
    assert (check.started, check.no_evidence, check.replaced) == (1, '', [])


def test_others_are_none_if_what_the_witness_saw_is_of_this_run(measure):
    """As processes that the job itself has left beside its ranks."""
    with pytest.raises(PerformanceError, match=FAILED):
        measure(DISTURBED, GOOD, machine=Machine(at_work=False))
    # That is told by their sessions too, and those on other CPUs are not to blame.
    machine = Machine()
    measure(DISTURBED, GOOD, machine=machine)
    assert (machine.sessions, machine.cpus) == ({JOB}, {0, 1})
    # What a hypervisor takes is never a process of this run.
    stolen = both(edit('result.json', slow), witnessed(disturbance(steal=0.5)))
    assert measure(stolen, GOOD, machine=Machine(at_work=False)).started == 2


def test_a_job_is_of_this_run_whatever_a_user_sets(tmp_path, monkeypatch):
    monkeypatch.setenv(runs.VARIABLE, '/of this/run')
    where = (SUPPORT / 'system.py', 'golden:node', tmp_path, 'mpi/pt2pt', 'PointToPoint')
    with check_on(*where, 'openmpi', fabric='shm', layout='packed') as (check, *node):
        check.build = SimpleNamespace(product=str)
        check.env_vars = {runs.VARIABLE: 'x'}
        check.setup(*node)
        check.preload_witness()
        assert check.env_vars[runs.VARIABLE] == "'/of this/run'"


def test_a_figure_that_is_to_be_exact_changes_for_no_others(measure):
    """As a number of messages."""

    def be_exact(check):
        figures = check.figures
        check.figures = lambda: {
            name: replace(figure, better='exact' if name == 'latency_over_limit' else figure.better)
            for name, figure in figures().items()
        }

    with pytest.raises(PerformanceError, match=FAILED):
        measure(DISTURBED, GOOD, change=be_exact)
    assert measure.checks[-1].started == 1


@pytest.mark.parametrize(
    ('excused', 'jobs'), [('bidirectional_over_one_way', 1), ('latency_over_limit', 2)]
)
def test_a_reference_that_is_met_unexpectedly_is_not_hidden(measure, monkeypatch, excused, jobs):
    """Beside a figure that others made worse; what misses its reference as announced is fine."""
    merge = references.merge

    def with_excuse(*given):
        held = merge(*given)
        return held | {excused: replace(held[excused], excuse='as announced')}

    monkeypatch.setattr(references, 'merge', with_excuse)
    with pytest.raises((PerformanceError, UnexpectedSuccessError)):
        measure(DISTURBED, GOOD)
    (check,) = measure.checks
    assert (check.started, check.no_evidence) == (jobs, '')


def test_a_figure_in_its_bounds_is_evidence_whoever_disturbed(measure):
    check = measure(witnessed(BUSY))
    assert (check.started, check.no_evidence, check.replaced) == (1, '', [])


def test_a_scheduler_may_find_another_node_at_once(measure):
    check = measure(DISTURBED, GOOD, machine=Machine(at_work=False), local=False)
    assert check.started == 2 and measure.said[0].endswith('; measured again')
    assert 'python' not in check.replaced[0]


def test_nodes_that_share_this_machine_disturb_each_other(measure):
    with pytest.raises(PerformanceError, match=FAILED):
        measure(DISTURBED, GOOD, local=False, extras={'on_this_machine': True})


def test_a_run_has_no_more_than_some_jobs_and_some_patience(measure):
    for spent in (
        remeasure._Spent(jobs=remeasure.MORE_JOBS),
        remeasure._Spent(waiting=remeasure.WAITING),
    ):
        measure.spent = spent
        with pytest.raises(PerformanceError, match=f'^{NO_EVIDENCE}'):
            measure(DISTURBED, GOOD)
        assert measure.checks[-1].started == 1
    measure.spent = remeasure._Spent(waiting=remeasure.WAITING - 7)
    with pytest.raises(PerformanceError, match='did not leave within 10 s'):
        measure(DISTURBED, GOOD, machine=Machine(stay=-1))


def test_with_a_budget_cases_wait_no_longer_than_it_leaves(measure):
    patience = runs.this_run().patience
    patience.write_text('7.0')
    with pytest.raises(PerformanceError, match='did not leave within 10 s'):
        measure(DISTURBED, GOOD, machine=Machine(stay=-1))
    patience.write_text('0.0')
    with pytest.raises(PerformanceError, match=f'^{NO_EVIDENCE}'):
        measure(DISTURBED, GOOD)
    assert measure.checks[-1].started == 1


def test_a_user_may_want_no_second_job(measure):
    with pytest.raises(PerformanceError, match=f'^{NO_EVIDENCE}'):
        measure(DISTURBED, GOOD, wait=0.0)
    assert measure.checks[-1].started == 1


def test_what_cannot_be_removed_is_left_as_it_was(measure, monkeypatch):
    """As a file on NFS that a process still has open."""
    rename = Path.rename

    def refuse(path, to):
        if path.name == 'witness.json':
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))
        return rename(path, to)

    monkeypatch.setattr(Path, 'rename', refuse)
    with pytest.raises(PerformanceError, match=f'^{NO_EVIDENCE}.*; not measured again: .*busy'):
        measure(DISTURBED, GOOD)
    (check,) = measure.checks
    assert (check.started, check.replaced) == (1, [])
    stage = Path(check.stagedir)
    assert {one.name for one in stage.iterdir()} > {'input', 'result.json', 'witness.json'}
    assert [*stage.parent.glob(f'.{stage.name}.*')] == []


def test_a_check_and_the_verdict_mean_the_same(measure):
    with pytest.raises(PerformanceError) as error:
        measure(DISTURBED, wait=0.0)
    case = NAME | {
        'result': 'fail',
        'fail_phase': 'performance',
        'fail_reason': f'performance error: {error.value}',
        'no_evidence': measure.checks[-1].no_evidence,
        'perfvalues': dict(measure.checks[-1].perfvalues),
    }
    assert is_no_evidence(case_of(case))
    for name, value in (
        ('result', 'pass'),
        ('fail_phase', 'sanity'),
        ('fail_reason', 'performance error: failed to meet reference(s)'),
        ('fail_reason', f'sanity error: {error.value}'),
        ('fail_reason', None),
        ('no_evidence', ''),
        ('perfvalues', {'golden:node:latency': [math.nan, 1, None, 1, 'us', 'fail']}),
        ('perfvalues', {'golden:node:latency': [1.0, 1, None, 1, 'us', 'xpass']}),
    ):
        assert not is_no_evidence(case_of(case | {name: value}))


NEAR, FAR = 40e-9, 155e-9


def at(least, most):
    """A good job between whose cores a cache line took so many seconds."""
    return witnessed(disturbance(least_core_latency=least, most_core_latency=most))


@pytest.fixture
def compared(measure):
    """In a run that will be compared with others, of which nothing is known yet."""
    runs.this_run().distances.write_text('{}')


def test_where_each_job_counts_none_is_measured_again_for_its_cores(measure):
    assert measure(at(NEAR, FAR)).started == 1


@pytest.mark.usefixtures('compared')
def test_a_job_whose_cores_were_moved_is_measured_again(measure):
    check = measure(at(NEAR, FAR), at(NEAR, NEAR))
    assert (check.started, check.no_evidence, check.replaced) == (2, '', [MOVED])
    assert measure.said == [f'{check.display_name}: {MOVED}; measured again in 2 s']


@pytest.mark.usefixtures('compared')
def test_one_whose_cores_are_farther_apart_than_those_of_other_jobs_is_too(measure):
    assert measure(at(FAR, FAR)).started == 1, 'of others nothing is known'
    assert measure(at(NEAR, NEAR)).started == 1
    assert measure(at(1.4 * NEAR, 1.5 * NEAR)).started == 1, 'as far, by chance'
    check = measure(at(FAR, FAR), at(FAR, FAR), at(1.1 * NEAR, 1.2 * NEAR))
    assert (check.started, check.no_evidence, len(check.replaced)) == (3, '', 2)


def test_so_it_is_if_only_earlier_runs_had_them_nearer(measure):
    name = measure(at(FAR, FAR)).display_name
    known = {'openmpi on n1': 40.0, 'openmpi on n2': 9.0, 'mpich on n1': 9.0}
    known = {f'{name} @golden:node+{place}': distance for place, distance in known.items()}
    runs.this_run().distances.write_text(json.dumps(known))
    check = measure(at(FAR, FAR), at(1.1 * NEAR, 1.1 * NEAR))
    assert (check.started, check.no_evidence, len(check.replaced)) == (2, '', 1)


@pytest.mark.usefixtures('compared')
def test_cores_that_stay_far_apart_are_measured_as_they_are(measure):
    measure(at(NEAR, NEAR))
    check = measure(at(FAR, FAR))
    assert (check.started, check.no_evidence) == (remeasure.JOBS_ELSEWHERE, '')
    measure.spent.elsewhere = remeasure.ELSEWHERE - 1
    assert measure(at(FAR, FAR)).started == 1, 'the run has waited long enough'
    measure.spent.elsewhere = 0.0
    assert measure(at(FAR, FAR), wait=0.0).started == 1, 'who asks for that wants one job'
    runs.this_run().patience.write_text('1.0')
    assert measure(at(FAR, FAR)).started == 1, 'no longer than a budget leaves'


@pytest.mark.usefixtures('compared')
def test_cores_excuse_nothing(measure):
    measure(at(NEAR, NEAR))
    for left, error in (
        (edit('result.json', slow), PerformanceError),
        (wrong_answer, SanityError),
    ):
        with pytest.raises(error):
            measure(both(left, at(FAR, FAR)), GOOD)
        assert measure.checks[-1].started == 1


@pytest.mark.usefixtures('compared')
def test_others_may_disturb_as_often_after_cores_were_moved(measure):
    jobs = [at(NEAR, FAR), DISTURBED, DISTURBED, GOOD]
    check = measure(*jobs, machine=Returning(looks=1))
    assert (check.started, check.no_evidence) == (4, '')
