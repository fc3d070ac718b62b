"""Building what stands in ``sources``, and running it with a few ranks."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from assay import paths
from assay.config.environments import AS_ROOT, tcp_over
from assay.config.fabrics import load_catalogue
from assay.machine.mpi import Mpi, find_mpis

SOURCES = paths.SOURCES
FAULTS = paths.ROOT / 'tests' / 'programs' / 'faults'
PROGRAMS = paths.ROOT / 'tests' / 'programs' / 'witness'
CMAKE = str(paths.VENV_BIN / 'cmake')
LEAKS = paths.ROOT / 'tests' / 'support' / 'leaks.supp'

# More ranks than cores, started by whoever runs the tests, on this machine only.
SURROUNDINGS = {
    **dict(AS_ROOT + tcp_over('lo')),
    'OMPI_MCA_rmaps_base_oversubscribe': '1',  # Open MPI 4
    'PRTE_MCA_rmaps_default_mapping_policy': ':oversubscribe',  # Open MPI 5
    # Threads that wait leave the core to those that work: here there may be more than cores.
    'OMP_WAIT_POLICY': 'passive',
    # Leaks are looked for in the programs; those inside the MPIs are theirs (see leaks.supp).
    'LSAN_OPTIONS': f'suppressions={LEAKS}:print_suppressions=0',
    # Whole stacks, or the suppressions would not find the library.
    'ASAN_OPTIONS': 'fast_unwind_on_malloc=0',
    'UBSAN_OPTIONS': 'print_stacktrace=1',
}


@dataclass(frozen=True)
class Run:
    """What a run of a program left."""

    code: int
    out: str
    err: str
    files: Path
    """The folder that --json wrote to."""

    @property
    def report(self) -> dict[str, Any]:
        """The JSON report; NaN and infinity in it are errors."""

        def refuse(constant: str) -> None:
            raise ValueError(f'{constant} in the report')

        return json.loads((self.files / 'report.json').read_text(), parse_constant=refuse)


def run_command(
    command: list[str], env: dict[str, str], folder: Path, timeout: float, cwd: Path | None = None
) -> Run:
    """Run a command to its end; ``folder`` is where its files are."""
    with subprocess.Popen(
        command,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            # A launcher that is killed alone leaves its ranks, which poll for ever.
            kill_session(process.pid)
            raise
    return Run(process.returncode, out, err, folder)


def processes_of(session: int) -> list[int]:
    """A launcher that leads a session, its helpers and the ranks."""
    found = []
    for folder in Path('/proc').glob('[0-9]*'):
        with contextlib.suppress(OSError, IndexError):
            fields = (folder / 'stat').read_text().rpartition(')')[2].split()
            if int(fields[3]) == session and fields[0] != 'Z':
                found.append(int(folder.name))
    return found


def kill_session(session: int) -> None:
    """SIGKILL to all of them."""
    for pid in processes_of(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _one_of_each_family() -> dict[str, Mpi]:
    chosen: dict[str, Mpi] = {}
    for mpi in find_mpis():
        if not mpi.fault:
            chosen.setdefault(mpi.family, mpi)
    return {mpi.name: mpi for mpi in chosen.values()}


MPIS = _one_of_each_family()

#: For tests whose outcome does not depend on the MPI.
on_one_mpi = pytest.mark.parametrize(
    'mpi', [name for name in MPIS if name == 'openmpi'] or [*MPIS][:1], indirect=True
)


#: Intel MPI is made from MPICH, on which all tests run. On it run those of what differs: how it
#: starts programs, binds and names them, the ABI of its Fortran, and what it says and sends.
OF_INTEL_MPI = {
    'test_pt2pt',
    'test_ring',
    'test_witness_fortran',
    'test_witness_memory',
    'test_witness_proof',
    'test_witness_variables',
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [
        item
        for item in items
        if item.path.parent == Path(__file__).parent
        and item.path.stem not in OF_INTEL_MPI
        and getattr(item, 'callspec', None)
        and item.callspec.params.get('mpi') == 'intelmpi'
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope='session', params=[*MPIS] or ['none'])
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """Each MPI family of this machine in turn."""
    if not MPIS:
        pytest.fail('no MPI on this machine: ./assay run installs them, or install an mpicc')
    return MPIS[request.param]


def check_command(command: list[str], env: dict[str, str]) -> None:
    """Run a command that has to succeed without a warning."""
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f'{" ".join(command)}\n{done.stdout}{done.stderr}'
    assert 'warning:' not in done.stdout + done.stderr, done.stdout + done.stderr


def configure(
    mpi: Mpi, env: dict[str, str], folder: Path, *options: str, sources: Path = SOURCES
) -> None:
    """Make a build folder of the sources for an MPI."""
    compilers = [f'-DCMAKE_C_COMPILER={mpi.cc}', f'-DCMAKE_CXX_COMPILER={mpi.cxx}']
    check_command([CMAKE, '-S', str(sources), '-B', str(folder), *compilers, *options], env)


def make(folder: Path, target: str, env: dict[str, str]) -> None:
    """Build a target in a build folder."""
    check_command([CMAKE, '--build', str(folder), '--target', target, '--parallel', '2'], env)


@pytest.fixture(scope='session')
def surroundings(mpi: Mpi) -> dict[str, str]:
    """Environment variables to build with the MPI and to run on its shared-memory fabric."""
    forced = load_catalogue().recipe('shm', mpi.family).env
    path = f'{mpi.bindir}:{os.environ["PATH"]}'
    return {**os.environ, **SURROUNDINGS, **forced, **mpi.env, 'PATH': path}


@pytest.fixture(scope='session')
def build_with(
    mpi: Mpi, surroundings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """Builds a target with some sanitizers, such as ``thread``; returns the folder it is in."""
    done: dict[tuple[str, str], Path] = {}

    def build_with(sanitizers: str, target: str = 'all') -> Path:
        key = (sanitizers, target)
        if key not in done:
            folder = tmp_path_factory.mktemp(f'{mpi.name}-{sanitizers or "plain"}')
            configure(mpi, surroundings, folder, f'-DASSAY_SANITIZE={sanitizers}')
            make(folder, target, surroundings)
            done[key] = folder
        return done[key]

    return build_with


@pytest.fixture(scope='session')
def build(mpi: Mpi, build_with: Callable[..., Path]) -> Callable[[bool], Path]:
    """Builds the programs, with or without sanitizers, and returns the folder they are in."""
    # The applications are not tested with Intel MPI (see launch).
    target = 'benchmarks' if mpi.family == 'intelmpi' else 'all'
    return lambda sanitize: build_with('address,undefined' if sanitize else '', target)


@pytest.fixture(scope='session')
def changed(
    mpi: Mpi, surroundings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """Builds an application with a place of its sources changed; returns the program.

    ``file`` is ``<application>/<name>``; what is to be changed stands in it ``times`` times. One
    copy of the sources serves all changes, so that only what depends on the file is compiled again,
    and a program lasts until the next change of the same application.
    """
    folder = tmp_path_factory.mktemp(f'{mpi.name}-changed')
    sources, built = folder / 'sources', folder / 'build'
    shutil.copytree(SOURCES, sources)
    configure(mpi, surroundings, built, sources=sources)

    def change(file: str, right: str, wrong: str, times: int = 1) -> Path:
        path = sources / file
        text = path.read_text()
        assert text.count(right) == times
        path.write_text(text.replace(right, wrong))
        try:
            make(built, path.parent.name, surroundings)
        finally:
            path.write_text(text)
        return built / path.parent.name

    return change


@pytest.fixture(scope='session')
def fault(
    mpi: Mpi, surroundings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Builds the library tests/programs/faults/<name>.c, to be preloaded, and returns its path."""

    def build_fault(name: str) -> Path:
        library = tmp_path_factory.mktemp(name) / f'{name}.so'
        source = str(FAULTS / f'{name}.c')
        check_command(
            [mpi.cc, '-Wall', '-Wextra', '-shared', '-fPIC', source, '-o', str(library)],
            surroundings,
        )
        return library

    return build_fault


@pytest.fixture(scope='session')
def compiled(
    mpi: Mpi, surroundings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """Builds the program tests/programs/witness/<name>.c with further options; returns its path."""
    done: dict[tuple[str, ...], Path] = {}

    def compile_program(name: str, *options: str) -> Path:
        key = (name, *options)
        if key not in done:
            program = tmp_path_factory.mktemp(name) / name
            source = str(PROGRAMS / f'{name}.c')
            command = [mpi.cc, '-std=c11', '-O1', '-g', '-Wall', '-Wextra', '-pthread', source]
            check_command([*command, *options, '-o', str(program)], surroundings)
            done[key] = program
        return done[key]

    return compile_program


@pytest.fixture(scope='session')
def witnessed_in(
    mpi: Mpi, surroundings: dict[str, str], build: Callable[[bool], Path]
) -> Callable[..., Run]:
    """As ``witnessed``, with the folder to run in as the first argument."""

    def run(
        folder: Path,
        program: Path | str,
        *arguments: str,
        ranks: int = 2,
        env: dict[str, str] | None = None,
        launch: tuple[str, ...] = (),
        preload: str | None = None,
        timeout: float = 120,
    ) -> Run:
        if preload is None:
            preload = str(build(False) / 'libassay_witness.so')
        command = [mpi.launcher, '-n', str(ranks), *launch, 'env', f'LD_PRELOAD={preload}']
        variables = {**surroundings, 'ASSAY_WITNESS_REPORT': str(folder / 'report.json')}
        command += [str(program), *arguments]
        return run_command(command, {**variables, **(env or {})}, folder, timeout, cwd=folder)

    return run


@pytest.fixture
def witnessed(witnessed_in: Callable[..., Run], tmp_path: Path) -> Callable[..., Run]:
    """Runs a program on some ranks with the witness preloaded; its report is ``report.json``.

    ``launch`` are options of the launcher; ``env`` is the ranks' as well as the launcher's;
    ``preload`` is what to preload in place of the witness.
    """
    return partial(witnessed_in, tmp_path)


@pytest.fixture
def run(
    mpi: Mpi, surroundings: dict[str, str], build: Callable[[bool], Path], tmp_path: Path
) -> Callable[..., Run]:
    """Runs a program on some ranks, with ``--json`` into a folder of its own.

    Sanitized unless something is preloaded: the sanitizers' library has to come first.
    """

    def run(
        program: str,
        *arguments: str,
        ranks: int = 2,
        preload: Path | None = None,
        env: dict[str, str] | None = None,
        report: Path = tmp_path / 'report.json',
        timeout: float = 300,
    ) -> Run:
        folder = build(preload is None)
        command = [mpi.launcher, '-n', str(ranks)]
        if preload:
            # Into the ranks only: a launcher is no MPI program.
            command += ['env', f'LD_PRELOAD={preload}']
        command += [str(folder / program), *arguments, '--json', str(report)]
        return run_command(command, {**surroundings, **(env or {})}, tmp_path, timeout)

    return run


@pytest.fixture
def launch(
    mpi: Mpi, surroundings: dict[str, str], build: Callable[[bool], Path], tmp_path: Path
) -> Callable[..., Run]:
    """Runs an application, or the program of a path, on some ranks with some threads each.

    It runs in a folder of its own, sanitized unless something is preloaded or ``sanitize`` is
    false. Not with Intel MPI, of whose ABI MPICH is as well: the time that saves is for the others.
    """
    if mpi.family == 'intelmpi':
        pytest.skip('applications are tested on Open MPI and MPICH')

    def launch(
        program: Path | str,
        *arguments: str,
        ranks: int = 1,
        threads: int = 1,
        env: dict[str, str] | None = None,
        preload: Path | None = None,
        sanitize: bool = True,
        folder: Path = tmp_path,
        timeout: float = 120,
    ) -> Run:
        command = [mpi.launcher, '-n', str(ranks)]
        if preload:
            # Into the ranks only: a launcher is no MPI program.
            command += ['env', f'LD_PRELOAD={preload}']
        command += [str(build(sanitize and preload is None) / program), *arguments]
        variables = {**surroundings, 'OMP_NUM_THREADS': str(threads), **(env or {})}
        return run_command(command, variables, folder, timeout, cwd=folder)

    return launch


def check_head(report: dict[str, Any], program: str, ranks: int) -> None:
    """The top of a report, the same for every program."""
    assert report['schema'] == 1
    assert report['implementation'] == 'assay'
    assert report['program'] == program
    assert report['complete'] is True
    assert report['ranks'] == ranks
    assert len(report['hosts']) == 1
    assert report['mpi']['library']


def check_samples(entry: dict[str, Any]) -> None:
    """The statistics of one result."""
    time = entry['time']
    assert 0 < time['min'] <= time['ci_low'] <= time['median'] <= time['ci_high']
    assert time['median'] <= time['p95']
    assert entry['samples'] >= 6
    assert entry['iterations_per_sample'] >= 1
    assert entry['stopped_by'] in ('ci', 'budget')
