"""What runs that were killed left running is found and stopped by the next."""

import os
import signal
import subprocess

from assay.running import leftovers, runs


def test_what_a_killed_run_left_is_stopped_by_the_next(tmp_path, monkeypatch):
    """With what it left of each; a run under way keeps its own."""
    monkeypatch.setattr(runs.paths, 'RUNS', tmp_path)
    killed, idle, other = (runs.begin() for _ in range(3))
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
