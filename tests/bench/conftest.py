"""Building what stands in ``sources``, and running it with a few ranks."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import fasteners
import pytest
from wrong_kernels import Built, Mutant

from assay.config.fabrics import load_catalogue
from assay.machine.mpi import Mpi
from building import (
    FAULTS,
    PROGRAMS,
    SANITIZED,
    SOURCES,
    build_once,
    check_command,
    configure,
    kept_builds,
    make,
)
from families import MPIS, QUICKEST
from running import SURROUNDINGS, YIELDING_COLLECTIVES, Run, run_command


@pytest.fixture(scope='session', params=[*MPIS] or ['none'])
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """Each MPI family of this machine in turn."""
    if not MPIS:
        pytest.fail('no MPI on this machine: ./assay run installs them, or install an mpicc')
    return MPIS[request.param]


@pytest.fixture(scope='session')
def surroundings(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables to build with the MPI and to run on its shared-memory fabric.

    Jobs have a TMPDIR of this worker's: a launcher of Open MPI that was killed leaves a folder
    there that is named for its process, and one that the system gives the same number does not
    start.
    """
    forced = load_catalogue().recipe('shm', mpi.family).env
    path = f'{mpi.bindir}:{os.environ["PATH"]}'
    own = {'PATH': path, 'TMPDIR': str(tmp_path_factory.mktemp('t'))}
    return {**os.environ, **SURROUNDINGS, **forced, **mpi.env, **own}


@pytest.fixture(scope='session')
def kept(mpi: Mpi, surroundings: dict[str, str]) -> Path:
    """Where builds by the MPI stay for other workers and for later tests."""
    return kept_builds(mpi, surroundings)


@pytest.fixture(scope='session')
def build(mpi: Mpi, surroundings: dict[str, str], kept: Path) -> Callable[..., Path]:
    """Builds a target, with sanitizers such as ``thread`` if any; returns the folder it is in."""
    return cache(partial(build_once, kept, mpi, surroundings))


@pytest.fixture(scope='session')
def sanitizers(mpi: Mpi) -> str:
    """Those that programs are built with: on one MPI, as they find the same on each.

    On the others programs are built as users build them, which is to be tested as well.
    """
    return SANITIZED if mpi.name == QUICKEST else ''


@pytest.fixture(scope='session')
def changed(
    mpi: Mpi, surroundings: dict[str, str], kept: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """Builds an application with a place of its sources changed; returns the program.

    ``file`` is ``<application>/<name>``; what is to be changed stands in it ``times`` times. One
    copy of the sources serves all changes, of later tests too, so that only what depends on the
    file is compiled again: its objects are put back. A program lasts until the next change of the
    same application.
    """
    folder = kept / 'changed'
    sources, built, unfinished = (folder / name for name in ('sources', 'build', 'unfinished'))
    programs = tmp_path_factory.mktemp(f'{mpi.name}-changed')
    # What is changed is found at any optimisation, and at this one the compiler is done sooner.
    flags = [f'-DCMAKE_{language}_FLAGS=-O1' for language in ('C', 'CXX')]

    def change(file: str, right: str, wrong: str, times: int = 1, program: str = '') -> Path:
        path = sources / file
        target = program or path.parent.name
        with fasteners.InterProcessLock(folder.with_suffix('.lock')):
            # Whoever failed or was killed has left something changed.
            if unfinished.exists() or not (built / 'Makefile').exists():
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(SOURCES, sources)
                configure(mpi, surroundings, built, *flags, sources=sources)
            unfinished.touch()
            if not (built / target).exists():
                make(built, target, surroundings)
            objects = {
                one: (one.stat().st_mtime_ns, one.read_bytes()) for one in built.rglob('*.[ao]')
            }
            text, written = path.read_text(), path.stat().st_mtime_ns
            assert text.count(right) == times
            path.write_text(text.replace(right, wrong))
            make(built, target, surroundings)
            path.write_text(text)
            os.utime(path, ns=(written, written))
            for one, (when, content) in objects.items():
                if one.stat().st_mtime_ns != when:
                    one.write_bytes(content)
                    os.utime(one, ns=(when, when))
            (programs / target).unlink(missing_ok=True)  # a rank of it may not have ended yet
            shutil.copy2(built / target, programs)
            unfinished.unlink()
        return programs / target

    return change


@pytest.fixture(scope='session')
def accepted() -> set[str]:
    """Programs of which the check accepted the right kernel, where it looks for wrong ones."""
    return set()


@pytest.fixture
def complaint(
    mpi: Mpi,
    surroundings: dict[str, str],
    build: Callable[..., Path],
    changed: Callable[..., Path],
    accepted: set[str],
    tmp_path: Path,
) -> Callable[[str, Mutant], str]:
    """What the check says of a wrong kernel, by its file of them; empty if it accepts it."""
    env = {**surroundings, **YIELDING_COLLECTIVES}

    def complaint_with(text: str, kind: str, mutant: Mutant) -> str:
        folder = changed(mutant.path, mutant.before, text, program=mutant.program).parent
        witness = build('assay_witness') / 'libassay_witness.so' if kind == 'mpi' else None
        built = Built(folder, mpi.launcher, env, tmp_path / 'run', seconds=600, witness=witness)
        return str(
            importlib.import_module(f'wrong_kernels.{kind}').complaint(built, mutant.program)
        )

    def complaint(kind: str, mutant: Mutant) -> str:
        if mutant.program not in accepted:
            assert complaint_with(mutant.before, kind, mutant) == ''
            accepted.add(mutant.program)
        return complaint_with(mutant.after, kind, mutant)

    return complaint


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
    mpi: Mpi, surroundings: dict[str, str], build: Callable[..., Path]
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
        timeout: float = 300,
    ) -> Run:
        if preload is None:
            preload = str(build('assay_witness') / 'libassay_witness.so')
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
    mpi: Mpi,
    surroundings: dict[str, str],
    build: Callable[..., Path],
    sanitizers: str,
    tmp_path: Path,
) -> Callable[..., Run]:
    """Runs a program, or that of a path, on some ranks, with ``--json`` into a folder of its own.

    Not sanitized if something is preloaded: the sanitizers' library would have to come first.
    """

    def run(
        program: Path | str,
        *arguments: str,
        ranks: int = 2,
        preload: Path | None = None,
        env: dict[str, str] | None = None,
        report: Path = tmp_path / 'report.json',
        timeout: float = 300,
    ) -> Run:
        if isinstance(program, str):
            program = build(program, '' if preload else sanitizers) / program
        command = [mpi.launcher, '-n', str(ranks)]
        if preload:
            # Into the ranks only: a launcher is no MPI program.
            command += ['env', f'LD_PRELOAD={preload}']
        command += [str(program), *arguments, '--json', str(report)]
        variables = {**surroundings, **YIELDING_COLLECTIVES, **(env or {})}
        return run_command(command, variables, tmp_path, timeout)

    return run


@pytest.fixture
def launch(
    mpi: Mpi,
    surroundings: dict[str, str],
    build: Callable[..., Path],
    sanitizers: str,
    tmp_path: Path,
) -> Callable[..., Run]:
    """Runs an application, or the program of a path, on some ranks with some threads each.

    It runs in a folder of its own, and is not sanitized if something is preloaded or ``sanitize``
    is false. Not with Intel MPI, of whose ABI MPICH is as well: that time is for the others.
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
        timeout: float = 300,
    ) -> Run:
        if isinstance(program, str):
            program = build(program, sanitizers if sanitize and not preload else '') / program
        command = [mpi.launcher, '-n', str(ranks)]
        if preload:
            # Into the ranks only: a launcher is no MPI program.
            command += ['env', f'LD_PRELOAD={preload}']
        command += [str(program), *arguments]
        variables = {**surroundings, **YIELDING_COLLECTIVES, 'OMP_NUM_THREADS': str(threads)}
        variables |= env or {}
        return run_command(command, variables, folder, timeout, cwd=folder)

    return launch
