"""The cases that ReFrame lists, which a choice is made of."""

import os

import pytest

from assay import AssayError, paths
from assay.running import runs
from assay.running.selection import Listed, list_cases

TOYS = paths.ROOT / 'tests' / 'golden' / 'reports'
CONFIGURATIONS = [paths.CONFIG / 'common.py', TOYS / 'toy_system.py']


@pytest.fixture
def cases_of(tmp_path):
    """The cases that options select of the toys."""
    command = [str(paths.VENV_BIN / 'reframe'), '-c', str(TOYS / 'toys.py'), '--system=toy']
    configured = {'RFM_CONFIG_FILES': ':'.join(map(str, CONFIGURATIONS))}
    environment = os.environ | configured | {runs.VARIABLE: str(tmp_path)}
    return lambda *options: list_cases(command, options, environment)


def test_cases_with_what_they_need(cases_of):
    passed, *_, broken = cases_of('-n', '^(Passed|FailedBuild)%', '-r')
    assert passed == Listed(
        'Passed %fabric=shm %layout=packed', 'toy:node', 'gnu', frozenset({'Build ~toy:node+gnu'})
    )
    assert passed.title == 'Passed %fabric=shm %layout=packed @toy:node+gnu'
    assert broken.needs == {'BrokenBuild ~toy:node+gnu'}


def test_nothing_is_selected(cases_of):
    assert cases_of('-n', '^Unheard') == []


def test_what_is_not_listed_is_an_error(cases_of):
    with pytest.raises(AssayError, match=r'could not list the cases to choose from: .*no-such'):
        cases_of('--no-such-option')
