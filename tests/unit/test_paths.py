"""Folders in the place of those of the checkout, and what keeps tests out of a user's."""

import os
import subprocess

import pytest

from assay import paths
from untouched import Watch

LEFT = (
    *('RUNS', 'INIT', 'LOGS', 'PERFLOGS', 'RESULTS_DATABASE', 'SCREENINGS', 'NIGHTS'),
    'CULPRITS',
)
SHARED = ('BUILDS', 'MPI_PREFIXES', 'SPACK', 'BUNDLE', 'CHECKS', 'REFERENCES')


def folders(**variables):
    """The folders of a Python that is started with some variables."""
    names = [*LEFT, *SHARED, 'SYSTEMS']
    script = f'from assay import paths\nfor name in {names}: print(getattr(paths, name))'
    others = {
        name: value
        for name, value in os.environ.items()
        if name not in (paths.RESULTS_VARIABLE, paths.SYSTEMS_VARIABLE)
    }
    said = subprocess.check_output(
        [paths.VENV_BIN / 'python', '-c', script], env=others | variables, text=True
    )
    return dict(zip(names, said.splitlines(), strict=True))


def test_what_runs_leave_goes_where_a_variable_says(tmp_path):
    usual = folders(ASSAY_RESULTS='', ASSAY_SYSTEMS='')
    assert usual == folders()
    assert all(path.startswith(f'{paths.ROOT}/') for path in usual.values())
    other = folders(ASSAY_RESULTS=str(tmp_path / 'left'), ASSAY_SYSTEMS=str(tmp_path / 'systems'))
    assert all(other[name].startswith(f'{tmp_path}/left/') for name in LEFT)
    assert all(other[name] == usual[name] for name in SHARED)
    assert other['SYSTEMS'] == f'{tmp_path}/systems'


def test_a_plain_reframe_is_told_of_these_folders(tmp_path):
    ended = subprocess.run(
        [paths.VENV_BIN / 'assay', 'env'],
        env={**os.environ, 'ASSAY_RESULTS': 'here'},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert f'export ASSAY_RESULTS={tmp_path}/here\n' in ended.stdout
    assert f'export RFM_PERFLOG_DIR={tmp_path}/here/perflogs\n' in ended.stdout
    assert 'ASSAY_SYSTEMS' not in ended.stdout


@pytest.mark.parametrize('name', LEFT)
def test_tests_leave_nothing_where_users_do(name):
    assert getattr(paths, name).is_relative_to(paths.STATE / 'tests')


def test_whatever_changes_what_a_user_keeps_is_named(tmp_path):
    kept = ['perflogs/results.db', '.assay/runs/1/report.json', 'config/systems/mine.py']
    shared = ['.assay/builds/ring', '.assay/tests/1/perflogs/results.db', 'README.md']
    for name in (*kept, *shared):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('before')
    watch = Watch(tmp_path)
    for name in shared:
        (tmp_path / name).write_text('after')
    assert watch.changes() == []
    (tmp_path / kept[0]).write_text('beFore')
    (tmp_path / kept[1]).unlink()
    (tmp_path / 'config' / 'systems' / 'new.py').write_text('')
    when = (tmp_path / kept[0]).stat().st_ctime_ns / 1e9
    watch.ran('a test', when - 1, when)
    watch.ran('another', when + 9, when + 10)
    changes = watch.changes()
    assert changes[0] == '.assay/runs/1 is gone'
    assert changes[1].startswith('config/systems/new.py was written during ')
    assert changes[2:] == ['perflogs/results.db was written during a test']
