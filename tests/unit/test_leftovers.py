"""What runs that were killed left running is found and stopped by the next."""

import os
import signal
import subprocess

from assay.running import leftovers, runs


def test_what_a_killed_run_left_is_stopped_by_the_next(tmp_path, monkeypatch):
    """With what it left of each; a run under way keeps its own."""
    monkeypatch.setattr(runs.paths, 'RUNS', tmp_path)
    killed, idle, other = (runs.begin_run() for _ in range(3))
    os.close(killed.handle), os.close(idle.handle)
    jobs = [
        subprocess.Popen(['sleep', '600'], env={**os.environ, runs.VARIABLE: str(run.folder)})
        for run in (killed, other)
    ]
    said = []
    monkeypatch.setattr(leftovers, 'say', said.append)
    try:
        leftovers.stop_what_was_left()
        assert jobs[0].wait(timeout=300) == -signal.SIGTERM
        assert jobs[1].poll() is None
        assert said == [f'stopped 1 process(es) that the run {killed.folder.name} had left behind']
    finally:
        for job in jobs:
            job.kill()
            job.wait()
        os.close(other.handle)


def test_a_job_that_slurm_clears_up_after_is_not_left_behind(tmp_path, monkeypatch):
    """Accounting tells of its end, and a site's epilog may go on for minutes."""
    run = runs.RunFolder(tmp_path / 'run')
    states = {1: 'RUNNING', 2: 'PENDING', 3: 'COMPLETING', 4: 'STAGE_OUT'}
    jobs = ''.join(f'{job}|{state}|None|{run.folder}/stage\n' for job, state in states.items())
    (tmp_path / 'jobs').write_text(jobs)
    scripts = {'squeue': f'cat {tmp_path}/jobs', 'scancel': f'echo "$*" >{tmp_path}/cancelled'}
    for name, script in scripts.items():
        (tmp_path / name).write_text(f'#!/bin/bash\n{script}\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')
    assert leftovers.stop_jobs(run) == '2 job(s) in Slurm'
    assert (tmp_path / 'cancelled').read_text() == '1 2\n'
