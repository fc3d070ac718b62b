"""Find and stop what a run leaves behind: its jobs in Slurm, and its local processes."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from assay import AssayError, say
from assay.machine.job_states import ENDING
from assay.machine.slurm import query
from assay.running import runs
from assay.running.processes import pids, run_of
from assay.running.runs import RunFolder
from assay.tools import ask

#: Seconds that a process which was left behind has to end once it was told to.
PATIENCE = 5
#: Likewise that Slurm has to tell its jobs: those of a run that was stopped are not to stay.
SLURM_PATIENCE = 60.0


def stop_jobs(run: RunFolder) -> str:
    """Stop what a run whose ReFrame has ended left running; what that was, or nothing."""
    # One that Slurm clears up after is at its end: that can take as long as the site's epilog.
    jobs = [job for job, state, _ in slurm_jobs(run) if state not in ENDING]
    if jobs:
        ask(['scancel', *jobs])
    found = _stop_processes(run)
    kinds = [(len(jobs), 'job(s) in Slurm'), (found, 'process(es)')]
    return ' and '.join(f'{count} {what}' for count, what in kinds if count)


def stop_what_was_left() -> None:
    """Stop what runs left running that were killed, ReFrame and all."""
    # Asked once for all of them: a scheduler has better things to do.
    jobs = _all_slurm_jobs()
    at_work = {*_marked().values(), *(str(p) for *_, f in jobs for p in f.parents)}
    allocations = [(job, at) for job, state, _, at in jobs if state not in ENDING]
    for run in runs.ended_runs():
        for job in (job for job, at in allocations if at == run.folder):
            ask(['scancel', job])
            say(f'cancelled the job {job} of all cases of the run {run.folder.name}')
        if str(run.folder) in at_work and (left := stop_jobs(run)):
            say(f'stopped {left} that the run {run.folder.name} had left behind')


def slurm_jobs(run: RunFolder) -> list[tuple[str, str, str]]:
    """Id, state and reason of the run's jobs in Slurm, by the folders that they run in."""
    jobs = _all_slurm_jobs()
    return [(job, state, why) for job, state, why, at in jobs if run.folder in at.parents]


def _all_slurm_jobs() -> list[tuple[str, str, str, Path]]:
    """Id, state, reason and folder of each job of ours; none where there is no Slurm."""
    columns = ['--noheader', '--format=%i|%T|%r|%Z']
    try:
        answer = query('squeue', f'--user={os.getuid()}', *columns, patience=SLURM_PATIENCE)
    except AssayError:
        return []
    found = []
    for line in answer.splitlines():
        job, state, reason, folder = [*line.split('|', 3), '', '', ''][:4]
        found.append((job, state, reason, Path(folder)))
    return found


def _stop_processes(run: RunFolder) -> int:
    """End the local processes of a run; how many there were."""
    at_first = _processes(run)
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + PATIENCE
        for pid in _processes(run):
            _signal(pid, run, number)
        while _processes(run) and time.monotonic() < deadline:
            time.sleep(0.05)
    return len(at_first)


def _processes(run: RunFolder) -> list[int]:
    """The processes of ours, but for this one, that were started for the run."""
    return [pid for pid, folder in _marked().items() if folder == str(run.folder)]


def _marked() -> dict[int, str]:
    """The folder of the run that each process of ours, but for this one, was started for."""
    folders = {pid: run_of(pid) for pid in pids() if pid != os.getpid()}
    return {pid: folder for pid, folder in folders.items() if folder}


def _signal(pid: int, run: RunFolder, number: signal.Signals) -> None:
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if run_of(pid) == str(run.folder):  # still: the number may be another's by now
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)
