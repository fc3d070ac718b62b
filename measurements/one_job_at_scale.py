"""What the cases of one allocation cost the process that starts them, with steps that only sleep.

    .venv/bin/python measurements/one_job_at_scale.py --nodes 1000 --cases 10000 --seconds 1

ReFrame runs checks of 1 to all nodes, one in fifty of them large, as `--one-job` has it. Slurm is
three scripts: its srun sleeps in place of the case's script.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from assay import paths
from assay.running import allocation, events, runs

SCRIPTS = {
    'srun': (
        '[ "$1" != --version ] || exit; echo "assay-step $$"; sleep {seconds}; echo "assay-exit 0"'
    ),
    'squeue': 'case "$*" in *--steps*) ;; *) echo "RUNNING|n[1-{nodes}]|NO|all" ;; esac',
    'scancel': ':',
}

SETTINGS = """
import atexit, json, resource, time
from assay.running import node_plan, reframe_plugin, schedulers, steps

schedulers.use_own_schedulers()
reframe_plugin.send_events()
seconds = {{'plan': 0.0, 'all': 0.0}}

def count(owner, name, what):
    plain = getattr(owner, name)
    def counted(*args):
        began = time.process_time()
        try:
            return plain(*args)
        finally:
            seconds[what] += time.process_time() - began
    setattr(owner, name, counted)

for name in ('add', 'next', 'has_ended', 'too_large', 'lose'):
    count(node_plan.NodePlan, name, 'plan')
for name in ('submit', 'poll'):
    count(steps._Allocation, name, 'all')

@atexit.register
def tell():
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    whole = {{'process': time.process_time(), 'memory': memory}}
    open('{told}', 'w').write(json.dumps(seconds | whole))

site_configuration = {{
    'systems': [{{
        'name': 'made', 'hostnames': ['.*'],
        'partitions': [{{
            'name': 'batch', 'scheduler': 'squeue', 'launcher': 'srun', 'environs': ['builtin'],
        }}],
    }}],
    # As Assay has it: ReFrame's default costs more than all else.
    'logging': [{{
        'level': 'info',
        'handlers': [{{'type': 'file', 'name': '{told}.log', 'level': 'info'}}],
        'handlers_perflog': [],
    }}],
}}
"""

CHECK = """
import reframe as rfm
from reframe.core.builtins import parameter, run_after, sanity_function

@rfm.simple_test
class Sleeps(rfm.RunOnlyRegressionTest):
    number = parameter(range({cases}))
    valid_systems = valid_prog_environs = ['*']
    executable = 'true'
    num_tasks_per_node = 1

    @run_after('init')
    def choose_size(self):
        n = self.number
        self.num_tasks = min({nodes}, 2 ** (n // 50 % 11)) if n % 50 == 0 else 1 + n % 4

    @sanity_function
    def has_slept(self):
        return True
"""


def measure(nodes: int, cases: int, seconds: float) -> dict[str, float]:
    """CPU seconds of the planner, of all that starts and ends steps and of the process; its MiB."""
    with tempfile.TemporaryDirectory(prefix='one-job-') as name:
        folder, told = Path(name), Path(name, 'told')
        for script, text in SCRIPTS.items():
            (folder / script).write_text(
                f'#!/bin/sh\n{text.format(nodes=nodes, seconds=seconds)}\n'
            )
            (folder / script).chmod(0o755)
        (folder / 'settings.py').write_text(SETTINGS.format(told=told))
        (folder / 'check.py').write_text(CHECK.format(nodes=nodes, cases=cases))
        own = {
            'PATH': f'{folder}:{os.environ["PATH"]}',
            'PYTHONPATH': str(paths.ROOT / 'lib'),
            allocation.VARIABLE: '7',
            runs.VARIABLE: str(folder),
            'RFM_CONFIG_FILES': str(folder / 'settings.py'),
            'RFM_PREFIX': str(folder),
            'RFM_ENABLE_RESULTS_STORAGE': 'no',
        }
        with open(os.devnull, 'w') as nobody:
            subprocess.run(
                [
                    *(Path(sys.executable).with_name('reframe'), '--system=made', '-r'),
                    *('-c', folder / 'check.py', f'--report-file={folder / "report.json"}'),
                ],
                env={**os.environ, **own, events.VARIABLE: str(nobody.fileno())},
                stdout=subprocess.DEVNULL,
                cwd=folder,
                pass_fds=[nobody.fileno()],
                check=True,
            )
        found: dict[str, float] = json.loads(told.read_text())
        (run,) = json.loads((folder / 'report.json').read_text())['runs']
        passed = sum(case['result'] == 'pass' for case in run['testcases'])
        if passed != cases:
            raise SystemExit(f'{passed} of {cases} cases passed')
        return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    options.add_argument('--nodes', type=int, default=1000)
    options.add_argument('--cases', type=int, default=10_000)
    options.add_argument('--seconds', type=float, default=1.0, help='that each step sleeps')
    given = options.parse_args()
    found = measure(given.nodes, given.cases, given.seconds)
    print('| nodes | cases | planner, s | all steps, s | whole process, s | memory, MiB |')
    print('|---:|---:|---:|---:|---:|---:|')
    print(
        f'| {given.nodes} | {given.cases} | {found["plan"]:.2f} | {found["all"]:.2f} | '
        f'{found["process"]:.0f} | {found["memory"]:.0f} |'
    )


if __name__ == '__main__':
    main()
