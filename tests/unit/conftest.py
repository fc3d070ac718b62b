"""What several files of unit tests begin with."""

import stat
from functools import partial

import pytest
import reframe.core.runtime as rt

import stored
from scheduler_sites import COMMANDS, CONFIGURATION, PLAY, Site


@pytest.fixture
def database(tmp_path):
    return tmp_path / 'perflogs' / 'results.db'


@pytest.fixture
def made(golden_report):
    """Makes a report of a run that passed, so many days ago."""
    return partial(stored.made, golden_report)


@pytest.fixture(scope='module')
def programs(tmp_path_factory):
    """Where a scheduler's commands are; ReFrame has a system meanwhile."""
    folder = tmp_path_factory.mktemp('scheduler')
    (folder / 'settings.py').write_text(CONFIGURATION)
    for command in COMMANDS:
        (folder / command).write_text(PLAY)
        (folder / command).chmod(stat.S_IRWXU)
    with rt.temp_runtime(str(folder / 'settings.py'), 'made'):
        yield folder


@pytest.fixture
def a_site(programs, tmp_path, monkeypatch):
    def made(folder, name='slurm'):
        return Site(folder, programs, tmp_path, monkeypatch, name)

    return made
