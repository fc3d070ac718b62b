"""The cases of a mode job by job and in one job, in turn: verdicts, times and gaps of both.

    ./assay cluster up --size 4
    .venv/bin/python measurements/one_job_both_ways.py --system vcluster:srun --parts 0-7 --of 8
    ./assay cluster down

The checks are dealt to parts like cards. Each part runs both ways, and which way comes first takes
turns. What was measured stays in ``--keep``, and a part that is in it is not measured again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from assay import paths
from assay.running import turn

WAYS = {'a job per case': [], 'one job': ['--one-job']}
ASSAY = str(paths.ROOT / 'assay')


def checks_of(mode: str, system: str, without: str) -> list[str]:
    """The hashes of the checks that the mode selects, as ``-n`` takes them.

    :param without: a regular expression of names of checks that are left out.
    """
    command = [ASSAY, 'run', '--mode', mode, '--system', system, '-l']
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r'^- (.*) (/[0-9a-f]{8})$', listed, re.MULTILINE)
    return [check for name, check in found if not re.search(without, name)]


def seconds_of(stage: Path) -> tuple[float, float] | None:
    """When a job's output was made and its last run ended, Unix time; nothing if it did not run.

    The later runs of a sweep have folders of their own, in which they leave their exit codes.
    """
    output = stage / 'rfm_job.out'
    if not output.exists():
        return None
    told = subprocess.run(
        ['stat', '-c', '%.6W', output], capture_output=True, text=True, check=True
    )
    ended = max(path.stat().st_mtime for path in (output, *stage.glob('*/exit_code')))
    return float(told.stdout), ended


def measure(way: str, mode: str, system: str, checks: list[str]) -> dict[str, Any]:
    """One run: the seconds it took, its last line, and of each case the result, begin and end."""
    command = [ASSAY, 'run', '--mode', mode, '--system', system, '--keep-stage-files', *WAYS[way]]
    for check in checks:
        command += ['-n', check]
    # The login node of a virtual cluster has a /tmp of its own.
    with tempfile.TemporaryDirectory(dir=paths.STATE) as folder:
        path = Path(folder, 'report.json')
        began = time.time()
        done = subprocess.run(
            [*command, f'--report-file={path}'],
            env={**os.environ, turn.VARIABLE: 'yes'},
            capture_output=True,
            text=True,
        )
        took = time.time() - began
        if not path.exists():
            raise SystemExit(f'{done.stdout}\n{done.stderr}\nno run was made: {" ".join(command)}')
        report = json.loads(path.read_text())
    cases = {}
    for case in report['runs'][-1]['testcases']:
        if not case['unique_name'].startswith('Build'):
            times = seconds_of(Path(case['stagedir']))
            name = f'{case["display_name"]} {case["environ"]}'
            cases[name] = {'result': case['result'], 'times': times, 'why': case['fail_reason']}
    return {'took': took, 'last': done.stdout.strip().splitlines()[-1], 'cases': cases}


def gaps(cases: dict[str, Any]) -> list[float]:
    """Seconds from the end of each script to the begin of the next."""
    times = sorted(case['times'] for case in cases.values() if case['times'])
    return [after[0] - before[1] for before, after in itertools.pairwise(times)]


def table(parts: list[dict[str, Any]]) -> None:
    for way in WAYS:
        runs = [part[way] for part in parts]
        between = [gap for run in runs for gap in gaps(run['cases'])]
        busy = sum(
            case['times'][1] - case['times'][0]
            for run in runs
            for case in run['cases'].values()
            if case['times']
        )
        results = [case['result'] for run in runs for case in run['cases'].values()]
        counts = ', '.join(f'{results.count(one)} {one}' for one in sorted(set(results)))
        deciles = statistics.quantiles(between, n=10)
        print(
            f'{way}: {sum(run["took"] for run in runs):.0f} s, of which the scripts {busy:.0f} s;'
            f' gap: median {deciles[4]:.2f} s, lowest and highest tenth {deciles[0]:.2f} and'
            f' {deciles[8]:.2f} s, longest {max(between):.2f} s; {counts}'
        )
    first, second = WAYS
    for number, part in enumerate(parts):
        for name, case in part[first]['cases'].items():
            other = part[second]['cases'].get(name, {'result': 'none', 'why': ''})
            if case['result'] != other['result']:
                print(f'part {number}: {name}: {case["result"]} and {other["result"]}')
                print(f'    {case["why"] or other["why"]}')


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    options.add_argument('--system', required=True)
    options.add_argument('--mode', default='maintenance')
    options.add_argument('--without', default='^$', help='a pattern of checks to leave out')
    options.add_argument('--parts', default='0-7', help='the first and the last part')
    options.add_argument('--of', type=int, default=8, help='parts in all')
    options.add_argument('--keep', type=Path, default=Path('one_job_both_ways.json'))
    given = options.parse_args()
    kept = json.loads(given.keep.read_text()) if given.keep.exists() else {}
    first, last = map(int, given.parts.split('-'))
    checks = checks_of(given.mode, given.system, given.without)
    handle = turn.take('measurement of one job both ways', print)
    for part in range(first, last + 1):
        if str(part) in kept:
            continue
        ways = list(WAYS) if part % 2 else list(WAYS)[::-1]
        chosen = checks[part :: given.of]
        kept[str(part)] = {way: measure(way, given.mode, given.system, chosen) for way in ways}
        given.keep.write_text(json.dumps(kept))
        for way in WAYS:
            print(f'part {part}, {way}: {kept[str(part)][way]["last"]}', flush=True)
    os.close(handle)
    table([kept[number] for number in sorted(kept, key=int)])


if __name__ == '__main__':
    main()
