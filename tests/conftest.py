"""Which tests run, and which beside each other: docs/testing.md tells why."""

from surroundings import forget_surroundings  # isort: split

import gc
import json
import os
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import fasteners
import pytest

from assay import AssayError, paths
from assay.machine import wheels
from assay.running import runs
from untouched import Watch
from wording import hold

#: Of `tests/e2e` those that share no folder of this checkout with a run: any worker may have them.
APART = ('test_closed_network.py', 'test_report_in_a_browser.py')

#: Kept by the process that workers report to.
_WATCH = pytest.StashKey[Watch]()


def pytest_configure(config: pytest.Config) -> None:
    """Have both MPIs there before the tests look for them; without a network do with what is."""
    forget_surroundings()
    if config.option.collectonly:
        return
    for name in wheels.NEEDED:
        try:
            wheels.install_wheel(name, paths.LOGS / f'install-{name}.log')
        except AssayError as error:
            print(f'tests of {name} are left out: {error}')


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remember what the user has in this checkout."""
    if not hasattr(session.config, 'workerinput'):
        session.config.stash[_WATCH] = watch = Watch(paths.ROOT)
        session.config.pluginmanager.register(_Times(watch))


class _Times:
    """Notes when each test ran, on whichever worker."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.watch.ran(report.nodeid, report.start, report.stop)


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session):
    """Fail if anything of that is other than it was, and say which test is likely to have done it.

    Runs that the user makes meanwhile look the same.
    """
    yield
    watch = session.config.stash.get(_WATCH, None)
    if changes := watch.changes() if watch else []:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(
            '\ntests changed what users keep in this checkout (or a run of yours did meanwhile):',
            *changes[:20],
            *([f'... and {len(changes) - 20} more'] if changes[20:] else []),
            sep='\n',
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        '--all', action='store_true', help='slow tests too, and each with all that it may run with'
    )
    parser.addoption(
        '--renew',
        action='store_true',
        help='write what tests hold word for word: sentences of tests/golden/wording, and pages',
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what is to run; what takes longest in one piece comes first.

    Tests that have to be alone come one after the other, since the first of them waits until the
    other worker has ended its test; and after other whole runs, beside which the other worker has
    built what they need.
    """
    kept = items
    if not _is_named(config):
        kept = [item for item in items if _mpi(item) != 'intelmpi' or _differs_by_mpi(item)]
        if not config.option.all:
            kept = _one_of_each_kind(kept)
    config.hook.pytest_deselected(items=[*set(items) - set(kept)])
    items[:] = sorted(kept, key=_place)


def pytest_collection_finish() -> None:
    """Keep the thousands of tests from being looked at each time that Python collects garbage."""
    gc.collect()
    gc.freeze()


def _place(item: pytest.Item) -> int:
    if _is_alone(item):
        return 1
    if item.path.name in APART:
        return 2
    return {'e2e': 0, 'bench': 3, 'unit': 4}[_room(item)]


def _is_named(config: pytest.Config) -> bool:
    """Whether somebody asked for certain tests, who wants to see them run."""
    option = config.option
    if option.keyword or option.markexpr or config.getoption('lf', False):
        return True
    return any('.py' in name for name in config.args)


def _one_of_each_kind(items: list[pytest.Item]) -> list[pytest.Item]:
    """All unit tests; of the others those that are not slow, once each, on one MPI."""
    from families import QUICKEST  # which looks for MPIs: these are there by now

    kept, seen = set(), set()
    for item in sorted(items, key=lambda item: _mpi(item) != QUICKEST):
        kind = item.nodeid.partition('[')[0]
        if _room(item) == 'unit' or (kind not in seen and not _is_slow(item)):
            kept.add(item)
            seen.add(kind)
    return [item for item in items if item in kept]


def _differs_by_mpi(item: pytest.Item) -> bool:
    return item.get_closest_marker('differs_by_mpi') is not None


def _is_slow(item: pytest.Item) -> bool:
    return bool(item.get_closest_marker('slow') and not item.get_closest_marker('quick'))


def _is_alone(item: pytest.Item | None) -> bool:
    return item is not None and item.get_closest_marker('alone') is not None


def _room(item: pytest.Item) -> str:
    return item.path.parent.name


def _mpi(item: pytest.Item) -> str:
    return item.callspec.params.get('mpi', '') if hasattr(item, 'callspec') else ''


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """What one worker runs one after the other: a file, or all until the last that runs `./assay`.

    Tests of a file share what they build; runs take turns, and share this checkout's folders. Tests
    of programs that have to be alone stand among those (_place): the process that distributes tests
    knows no more of them than their names.
    (Of pytest-xdist 3.8 itself, --dist loadgroup does nothing with pytest 9.2.)
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        @cached_property
        def _first(self) -> set[str]:
            shared = [
                number
                for number, name in enumerate(self.collection, 1)
                if '/e2e/' in name and not name.partition('::')[0].endswith(APART)
            ]
            return {*self.collection[: max(shared, default=0)]}

        def _split_scope(self, nodeid: str) -> str:
            return 'first' if nodeid in self._first else nodeid.partition('::')[0]

    return Scheduling(config, log)


@cache
def _locks() -> tuple[fasteners.InterProcessLock, fasteners.InterProcessReaderWriterLock]:
    """A gate through which tests come to run, and what those that run hold."""
    paths.STATE.mkdir(parents=True, exist_ok=True)
    gate = fasteners.InterProcessLock(paths.STATE / 'tests-gate.lock')
    return gate, fasteners.InterProcessReaderWriterLock(paths.STATE / 'tests.lock')


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None):
    """Nothing runs beside a test that has to be alone.

    Such a test keeps the gate shut while it waits for the others to end and runs. Where the next
    one has to be alone as well the gate stays shut: to wait for the others costs most.
    """
    gate, running = _locks()
    if _is_alone(item):
        if not gate.acquired:
            gate.acquire()
            running.acquire_write_lock()
        try:
            return (yield)
        finally:
            if not _is_alone(nextitem):
                running.release_write_lock()
                gate.release()
    with gate:
        running.acquire_read_lock()
    try:
        return (yield)
    finally:
        running.release_read_lock()


@pytest.fixture(autouse=True)
def no_run_of_this_process():
    """Who loads a configuration begins a run, which later tests are not part of."""
    before = dict(os.environ)
    yield
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)
    runs.this_run.cache_clear()


@pytest.fixture
def golden_report():
    """Reads one of ReFrame's reports in tests/golden/reports, by the name of its check."""

    def read(name: str) -> dict[str, Any]:
        path = Path(__file__).parent / 'golden' / 'reports' / f'{name}.json'
        return json.loads(path.read_text())

    return read


@pytest.fixture
def wording(request):
    """Holds all texts of a test word for word, but for numbers and tables: one call in each test.

    After a sentence was made better, `--renew` holds it, and `git diff` shows all that changed.
    """
    return lambda *texts: hold(request, texts)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A checkout's folders for configuration and state, empty and in a temporary place."""
    for name in ('SYSTEMS', 'STATE', 'MPI_PREFIXES', 'MPI_LOCKS', 'LOGS'):
        folder = tmp_path / name.lower()
        folder.mkdir()
        monkeypatch.setattr(paths, name, folder)
    return tmp_path
