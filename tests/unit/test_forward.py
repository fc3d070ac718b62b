"""The program that carries the packets of a node that was disturbed."""

import shutil
import subprocess

import pytest

from assay.vcluster.link import COMPILE, SOURCE


@pytest.mark.skipif(not shutil.which('cc'), reason='needs a C compiler')
def test_it_compiles_without_a_warning(tmp_path):
    command = [*COMPILE, '-Werror', '-o', tmp_path / SOURCE.stem, SOURCE]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
