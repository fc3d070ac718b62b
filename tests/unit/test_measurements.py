"""The programs that measure Assay itself, which no test runs, load and explain themselves."""

import importlib
import runpy
import sys

import pytest

from assay import paths

MEASUREMENTS = paths.ROOT / 'measurements'
PROGRAMS = [path for path in sorted(MEASUREMENTS.glob('*.py')) if '__main__' in path.read_text()]


@pytest.mark.parametrize('program', PROGRAMS, ids=lambda path: path.stem)
def test_help(program, monkeypatch, capsys):
    """In this process, which has most of what they load."""
    monkeypatch.setattr(sys, 'argv', [str(program), '--help'])
    monkeypatch.setattr(sys, 'path', [*sys.path])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(program), run_name='__main__')
    assert ended.value.code == 0
    assert 'usage: ' in capsys.readouterr().out


@pytest.mark.parametrize('kind', ['hpl', 'minife', 'minighost', 'minimd', 'mpi', 'node'])
def test_wrong_kernels_are_of_the_sources_as_they_are(monkeypatch, kind):
    monkeypatch.syspath_prepend(MEASUREMENTS)
    mutants = importlib.import_module(f'wrong_kernels.{kind}').MUTANTS
    for one in mutants:
        text = (paths.ROOT / 'sources' / one.path).read_text()
        assert text.count(one.before) == 1, one
    assert len({(one.program, one.name) for one in mutants}) == len(mutants)
