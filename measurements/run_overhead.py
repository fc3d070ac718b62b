"""What `assay run` costs beside the jobs themselves: its wall time over the sum of theirs.

    .venv/bin/python measurements/run_overhead.py

A job lasts from the moment when ReFrame has written its script, just before it starts it, to the
last byte that it or its launcher writes. Everything else is overhead: loading, preparing, building
the benchmarks for each MPI, waiting to see that a job has ended, and the table.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from assay import paths
from assay.results.reframe_report import read_reframe_report
from assay.running import runs


def job_seconds(stage: Path) -> float:
    """Wall seconds of the job whose stage folder is kept."""
    written = [stage / name for name in ('rfm_job.out', 'rfm_job.err', 'result.json')]
    return max(p.stat().st_mtime for p in written) - (stage / 'rfm_job.sh').stat().st_mtime


def measure(arguments: list[str]) -> tuple[float, float, int]:
    """Wall seconds of a run, the sum over its jobs, and the number of jobs."""
    command = [paths.ROOT / 'assay', 'run', '--keep-stage-files', *arguments]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    wall = time.monotonic() - start
    if done.returncode:
        sys.exit(f'{done.stdout[-2000:]}{done.stderr}\nthe run failed: nothing to compare with')
    cases = read_reframe_report(runs.newest_report()).last_cases
    jobs = [job_seconds(Path(case.files.stage)) for case in cases if not case.is_fixture]
    return wall, sum(jobs), len(jobs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--runs', type=int, default=3)
    options, arguments = parser.parse_known_args()
    ratios = []
    print('| run | jobs | sum of the jobs, s | wall, s | ratio |')
    print('|---:|---:|---:|---:|---:|')
    for number in range(options.runs):
        wall, jobs, count = measure(arguments)
        ratios.append(wall / jobs)
        print(
            f'| {number + 1} | {count} | {jobs:.1f} | {wall:.1f} | {ratios[-1]:.2f} |', flush=True
        )
    print(f'\nMedian ratio: {statistics.median(ratios):.2f}')


if __name__ == '__main__':
    main()
