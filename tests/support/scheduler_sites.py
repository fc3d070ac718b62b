"""A scheduler whose commands print what a folder of tests/sites/jobs has."""

import os
import time

from reframe.core.backends import getscheduler
from reframe.core.exceptions import JobError

from assay.running import asking, pbs_jobs, schedulers, slurm_jobs

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
        schedulers.use_own_schedulers()
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
