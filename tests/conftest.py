"""What several tests share."""

import os
from pathlib import Path

import pytest

from assay import AssayError, paths
from assay.machine import wheels
from assay.results.cases import Report, read_report
from assay.running import runs


def pytest_configure(config: pytest.Config) -> None:
    """Have both MPIs there before the tests look for them; without a network do with what is."""
    if config.option.collectonly:
        return
    for name in wheels.NEEDED:
        try:
            wheels.install_wheel(name, paths.LOGS / f'install-{name}.log')
        except AssayError as error:
            print(f'tests of {name} are left out: {error}')


@pytest.fixture(autouse=True)
def no_run_of_this_process():
    """Who loads a configuration begins a run, which later tests are not part of."""
    before = dict(os.environ)
    yield
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)
    runs.this.cache_clear()


@pytest.fixture
def golden_report():
    """Reads one of ReFrame's reports in tests/golden/reports, by the name of its check."""

    def read(name: str) -> Report:
        return read_report(Path(__file__).parent / 'golden' / 'reports' / f'{name}.json')

    return read


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A checkout's folders for configuration and state, empty and in a temporary place."""
    for name in ('SYSTEMS', 'STATE', 'MPI_PREFIXES', 'MPI_LOCKS', 'LOGS'):
        folder = tmp_path / name.lower()
        folder.mkdir()
        monkeypatch.setattr(paths, name, folder)
    return tmp_path
