"""The programs that measure Assay itself, which no test runs, load and explain themselves."""

import subprocess
import sys

import pytest

from assay import paths

MEASUREMENTS = paths.ROOT / 'measurements'
PROGRAMS = [path for path in sorted(MEASUREMENTS.glob('*.py')) if '__main__' in path.read_text()]


@pytest.mark.parametrize('program', PROGRAMS, ids=lambda path: path.stem)
def test_help(program):
    shown = subprocess.run(
        [sys.executable, program, '--help'], capture_output=True, text=True, timeout=300
    )
    assert shown.returncode == 0, shown.stderr
    assert 'usage: ' in shown.stdout
