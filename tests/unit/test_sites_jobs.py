"""What becomes of jobs as schedulers of real sites tell of them: :mod:`tests/sites/jobs`.

The folder of a site has what its commands print: ``2.squeue`` the second time that squeue is asked,
and each further time if there is no ``3.squeue``. What it prints on standard error is in
``2.squeue.err``; without a ``2.squeue`` beside it the command fails. ``expect`` is of:

``scheduler``
    ReFrame's name of it.
``every``
    Seconds from one look of ReFrame's at its jobs to the next, on a clock of its own.
``state``
    In which the job ends, and ``exit_code``; or
``fails``
    the sentence that its case fails with; and in any case
``after``
    seconds until then.
``says``
    What is said meanwhile: parts of sentences, in their order.
``verdict``
    ``judged`` by what it left, ``again`` if it is no evidence, or ``fail``.
``cancelled``
    Whether the job was cancelled.
``left``
    Files that the job has left by then. In outputs ``@WORK@`` stands for its folder.
"""

import os
import stat
import time

import pytest
import reframe.core.runtime as rt
from reframe.core.backends import getscheduler
from reframe.core.exceptions import JobError

from assay.job.ending import cut_short
from assay.machine import job_states
from assay.running import asking, pbs_jobs, schedulers, slurm_jobs
from sites import sites

# The n-th answer of a command, of those in $SITE, or the last that there is.
PLAY = """#!/bin/bash
command=${0##*/} count=$STATE/${0##*/} n=1
[[ -e $count ]] && n=$(($(<"$count") + 1))
echo $n >"$count"
echo "$command $*" >>"$STATE/calls"
while ((n > 1)) && [[ ! -e $SITE/$n.$command && ! -e $SITE/$n.$command.err ]]; do ((n--)); done
[[ ! -e $SITE/$n.$command.err ]] || echo "$(<"$SITE/$n.$command.err")" >&2
[[ -e $SITE/$n.$command || ! -e $SITE/$n.$command.err ]] || exit 1
[[ ! -s $SITE/$n.$command ]] || { told=$(<"$SITE/$n.$command") && echo "${told//@WORK@/$WORK}"; }
"""
COMMANDS = ('sbatch', 'squeue', 'sacct', 'scontrol', 'scancel', 'qsub', 'qstat', 'qdel')

#: Looks at a job after which it would go on for ever.
MOST = 400


class Clock:
    """The time, which passes when a test lets it."""

    def __init__(self):
        self.now = self.begun = time.time()

    def time(self):
        return self.now

    monotonic = time

    def sleep(self, seconds):
        self.now += seconds

    def __getattr__(self, name):
        return getattr(time, name)


class Site:
    """A scheduler whose commands print what a folder has."""

    def __init__(self, folder, programs, tmp_path, monkeypatch, name):
        self.state, self.work = tmp_path / 'state', tmp_path / 'work'
        for path in (self.state, self.work):
            path.mkdir()
        monkeypatch.setenv('PATH', f'{programs}:{os.environ["PATH"]}')
        monkeypatch.setenv('SITE', str(folder))
        monkeypatch.setenv('STATE', str(self.state))
        monkeypatch.setenv('WORK', str(self.work))
        self.clock, self.said = Clock(), []
        for module in (asking, slurm_jobs, pbs_jobs):
            if hasattr(module, 'time'):
                monkeypatch.setattr(module, 'time', self.clock)
            monkeypatch.setattr(module, 'say', self.said.append)
        monkeypatch.setattr('reframe.core.schedulers.pbs.time', self.clock)
        schedulers.begin()
        self.scheduler = getscheduler(name)(part_name='batch')
        self.job = self.scheduler.make_job(
            name='rfm_Ring', workdir=str(self.work), script_filename='rfm_job.sh'
        )
        self.job._scheduler = self.scheduler
        self.job.time_limit, self.job.max_pending_time = 300, 24 * 3600
        (self.work / 'rfm_job.sh').write_text('#!/bin/bash\n')
        monkeypatch.chdir(self.work)  # where ReFrame submits it

    @property
    def calls(self):
        return (self.state / 'calls').read_text().splitlines()

    def play(self, every):
        """Submit a job and look at it until it has ended; why its case fails, if it does."""
        try:
            self.job.submit()
            for _ in range(MOST):
                self.scheduler.poll(self.job, None)
                if self.job.finished():
                    return None
                self.clock.now += every
        except JobError as error:
            return str(error).removeprefix(f'[jobid={self.job.jobid}] ')
        raise AssertionError(f'it goes on for ever: {self.job.state}, {self.said}')


CONFIGURATION = """
site_configuration = {
    'systems': [{
        'name': 'made', 'hostnames': ['.*'],
        'partitions': [{
            'name': 'batch', 'scheduler': 'local', 'launcher': 'local', 'environs': ['builtin'],
        }],
    }],
}
"""


@pytest.fixture(scope='module')
def programs(tmp_path_factory):
    """Where a scheduler's commands are; ReFrame has a system meanwhile."""
    folder = tmp_path_factory.mktemp('scheduler')
    (folder / 'settings.py').write_text(CONFIGURATION)
    for command in COMMANDS:
        (folder / command).write_text(PLAY)
        (folder / command).chmod(stat.S_IRWXU)
    with rt.temp_runtime(str(folder / 'settings.py'), 'made'):
        yield folder


@pytest.fixture
def a_site(programs, tmp_path, monkeypatch):
    def made(folder, name='slurm'):
        return Site(folder, programs, tmp_path, monkeypatch, name)

    return made


@pytest.mark.parametrize('site', sites('jobs'), ids=str)
def test_a_job_ends_in_a_sentence(site, a_site):
    expect = dict(site.expect)
    one = a_site(site.folder, expect.pop('scheduler'))
    for name in expect.pop('left', ()):
        (one.work / name).touch()
    why = one.play(expect.pop('every'))
    job, state = one.job, one.job.state or ''
    found = {'after': round(one.clock.now - one.clock.begun)}
    if why:
        found |= {'fails': why, 'verdict': 'fail'}
    else:
        words = cut_short(state, one.work, one.work / job.stderr, job.nodelist)
        found['state'] = state
        found['verdict'] = 'fail' if words else 'judged'
        if state == job_states.PREEMPTED:
            found['verdict'] = 'again'
        if job.exitcode is not None:
            found['exit_code'] = job.exitcode
    if any(call.startswith(('scancel', 'qdel')) for call in one.calls):
        found['cancelled'] = True
    if one.said:
        found['says'] = one.said
    assert found == expect
