"""The same cases as jobs of their own and as steps of one job: verdicts, jobs, seconds and gaps.

    .venv/bin/python measurements/one_job_both_ways.py --system vcluster:srun --mode maintenance

Other options are those of `assay run`. A gap is from the last byte that a job's script writes to
the launcher of the next, by the witness's report; cases without that report have none. It is one
case at a time on the virtual cluster; elsewhere cases side by side make gaps negative.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

from assay import paths
from assay.results.cases import Case, is_no_evidence
from assay.results.failures import is_good
from assay.results.reframe_report import read_report
from assay.running import runs

WAYS = {'a job per case': [], '`--one-job`': ['--one-job']}


def span(stage: Path) -> tuple[float, float] | None:
    """When the launcher of a job began and its script ended, in seconds since 1970."""
    report = stage / 'witness.json'
    if not report.exists():
        return None
    rank = json.loads(report.read_text())['processes'][0]
    startup = rank.get('startup') or {}
    before = rank['wall'] + startup.get('init', 0.0) + (startup.get('main') or 0.0)
    written = [stage / name for name in ('rfm_job.out', 'rfm_job.err', 'witness.json')]
    return report.stat().st_mtime - before, max(path.stat().st_mtime for path in written)


def verdict(case: Case) -> str:
    if is_no_evidence(case):
        return 'disturbed'
    return 'skipped' if case.result == 'skip' else 'passed' if is_good(case) else 'failed'


def measure(way: str, arguments: list[str]) -> dict[str, str]:
    """Run the cases in a way, and print its row.

    :returns: the verdict of each case, by its title.
    """
    command = [paths.ROOT / 'assay', 'run', '--keep-stage-files', *WAYS[way], *arguments]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    wall = time.monotonic() - began
    path = runs.newest_report()
    if str(path.parent) not in done.stdout:
        sys.exit(f'{done.stdout[-2000:]}{done.stderr}\nthere was no run')
    cases = read_report(path).own_cases
    jobs = {case.job.id.partition('.')[0] for case in cases if case.job.id}
    spans = sorted(filter(None, (span(Path(case.files.stage)) for case in cases)))
    gaps = [later - end for (_, end), (later, _) in pairwise(spans)]
    found = {case.title: verdict(case) for case in cases}
    counts = ', '.join(
        f'{[*found.values()].count(word)} {word}'
        for word in ('passed', 'failed', 'disturbed', 'skipped')
    )
    busy = sum(end - begin for begin, end in spans)
    print(
        f'| {way} | {len({one.partition("+")[0] for one in jobs})} | {wall:.1f} s | {busy:.1f} s | '
        f'{statistics.median(gaps):.2f} s ({min(gaps):.2f} to {max(gaps):.2f} s) | {counts} |',
        flush=True,
    )
    return found


def main() -> None:
    if not sys.argv[1:] or '-h' in sys.argv or '--help' in sys.argv:
        sys.exit(__doc__)
    print('| way | jobs | whole run | sum of the steps | gap: median (range) | verdicts |')
    print('|---|---|---|---|---|---|', flush=True)
    found = [measure(way, sys.argv[1:]) for way in WAYS]
    titles = sorted(found[0].keys() | found[1].keys())
    differing = [title for title in titles if found[0].get(title) != found[1].get(title)]
    print(f'\n{len(titles) - len(differing)} of {len(titles)} cases had the same verdict.')
    for title in differing:
        print(f'- {title}: {found[0].get(title)}, {found[1].get(title)}')


if __name__ == '__main__':
    main()
