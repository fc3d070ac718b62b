"""Tests in surroundings that no developer has: what goes red there is for somebody red for nothing.

They are those that such surroundings have made red before, and the quickest of their kinds.
"""

import os
import subprocess
import sys

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__

from assay import paths

TESTS = [
    'test_acceptance_power.py::test_better_machines_pass_more_often',
    'test_bundle.py::test_a_checkout_without_git',
    'test_diff.py::test_an_upgrade_that_makes_a_fabric_worse_is_one_group',
    'test_retention.py::test_days_are_counted_back_from_now',
    'test_httpjson.py::test_a_server_gets_each_figure',
    'test_nightly.py::test_the_partition_of_a_job',
    'test_progress.py::test_a_failure_is_told_by_the_sentence_of_the_end',
    'test_terminal.py::test_what_a_job_printed_obeys_no_terminal',
]


def other_language():
    """A language of this machine that is not English; that of C if there is none."""
    said = subprocess.run(['locale', '-a'], capture_output=True, text=True).stdout.split()
    others = [name for name in said if not name.startswith(('C', 'POSIX', 'en'))]
    return min(others, key=lambda name: not name.startswith('tr'), default='C')


def test_what_surrounds_tests_does_not_matter(tmp_path):
    """One CPU without its special instructions, a window, no HOME, and little that others read."""
    awkward = tmp_path / 'with a blank'
    awkward.mkdir()
    surroundings = {
        name: value for name, value in os.environ.items() if not name.startswith('PYTEST_')
    } | {
        'OPENBLAS_CORETYPE': 'Prescott',
        'NPY_DISABLE_CPU_FEATURES': ' '.join(__cpu_dispatch__),
        'PYTHONHASHSEED': '1',
        'LC_ALL': other_language(),
        'TZ': 'Asia/Kathmandu',
        'HOME': '/proc/nowhere',
        'TMPDIR': str(awkward),
        'COLUMNS': '40',
        'FORCE_COLOR': '1',
        'GITHUB_ACTIONS': 'true',
        'SLURM_JOB_ID': '1',
    }

    def confine():
        os.umask(0o077)
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    command = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider']
    ended = subprocess.run(
        [*command, *(f'tests/unit/{name}' for name in TESTS)],
        cwd=paths.ROOT,
        env=surroundings,
        preexec_fn=confine,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == pytest.ExitCode.OK, ended.stdout[-4000:] + ended.stderr
