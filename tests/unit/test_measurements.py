"""The programs that measure Assay itself, which no test runs, load and explain themselves."""

import importlib
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


@pytest.mark.parametrize('kind', ['hpl', 'minife', 'minighost', 'minimd', 'mpi', 'node'])
def test_wrong_kernels_are_of_the_sources_as_they_are(monkeypatch, kind):
    monkeypatch.syspath_prepend(MEASUREMENTS)
    mutants = importlib.import_module(f'wrong_kernels.{kind}').MUTANTS
    for one in mutants:
        text = (paths.ROOT / 'sources' / one.path).read_text()
        assert text.count(one.before) == 1, one
    assert len({(one.program, one.name) for one in mutants}) == len(mutants)
