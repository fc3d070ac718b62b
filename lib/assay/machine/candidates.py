"""Places where an MPI may be: wheels, Debian's and PATH; and how its commands are asked there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal

from assay import paths, tools
from assay.machine.wheels import STAMP, wheel_names
from assay.mpis import FAMILIES, strangers

Source = Literal['wheel', 'debian', 'PATH', 'module', 'named']

#: C wrappers and those for C++, the usual ones first.
WRAPPERS = {
    cc: cxx for family in FAMILIES.values() for cc, cxx in family.wrappers.items()
} | strangers.WRAPPERS

#: Where modules say their MPI is that do not put it on PATH, such as Cray's.
HOMES = ('CRAY_MPICH_DIR', 'I_MPI_ROOT', 'MPI_HOME', 'MPI_ROOT')

#: Seconds that a question to an MPI's own command may take; each takes well under one.
PATIENCE = 60


class MpiNoAnswerError(Exception):
    """A command that belongs to an MPI is missing or fails; the message says which and why.

    :param said: all that the command printed.
    """

    def __init__(self, message: str, said: str = '') -> None:
        super().__init__(message)
        self.said = said


@dataclass(frozen=True)
class Candidate:
    """A place where an MPI is to be; ``name`` is None where it depends on the family."""

    name: str | None
    source: Source
    bindir: Path
    modules: tuple[str, ...] = ()
    """To be loaded in this order; its own is the last."""
    env: dict[str, str] = field(default_factory=dict)
    suffix: str = ''
    loaded: dict[str, str] | None = None
    """The environment in which it is to be asked; that of this process where None."""
    unloadable: str | None = None
    """Why its module cannot be loaded."""

    @property
    def cc(self) -> Path:
        """Its C wrapper; ``mpicc`` if it has none."""
        return _first(WRAPPERS, [self.bindir]) or self.bindir / 'mpicc'

    @property
    def libraries(self) -> Iterator[Path]:
        """Files that may be its library."""
        prefixes = [self.bindir.parent, self.cc.resolve().parent.parent]
        files = (
            file.resolve()
            for prefix in dict.fromkeys(prefixes)
            for folder in ('lib64', 'lib', 'lib/release')
            for name in ('libmpi.so', 'libmpich.so', 'libmpi_*.so', 'libpcmpi.so')
            for file in sorted((prefix / folder).glob(name))
        )
        yield from islice(dict.fromkeys(files), 4)

    @property
    def key(self) -> Path:
        """The same for two candidates that are one MPI."""
        # Two modules may differ by nothing but the variables that they set. Open MPI's wrappers are
        # links to one program: what differs is the prefix they stand for. What somebody named by
        # its folder is what they mean.
        if self.modules:
            return Path(' '.join(self.modules))
        return self.bindir if self.source == 'named' else self.cc.resolve()

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which its commands run."""
        env = {**(self.loaded or os.environ), **self.env}
        return env | {'PATH': f'{self.bindir}:{env.get("PATH", os.defpath)}'}

    def command(self, *names: str) -> str | None:
        """The first of the commands ``names`` that stands beside the C wrapper."""
        for folder in (self.bindir, self.cc.resolve().parent):
            for name in names:
                if os.access(folder / name, os.X_OK):
                    return str(folder / name)
        return None

    def ask(self, command: str, *arguments: str) -> str:
        """Standard output of one of its commands.

        :raises MpiNoAnswerError: if it cannot be run, fails, or takes too long.
        """
        asked = ' '.join([Path(command).name, *arguments])
        try:
            answer = tools.ask([command, *arguments], PATIENCE, env=self.environment)
        except tools.NoAnswerError as error:
            raise MpiNoAnswerError(str(error)) from None
        if answer.returncode == 0:
            return answer.stdout
        said = telling_line(answer.stderr) or telling_line(answer.stdout)
        # The dynamic linker begins with the path of the command.
        said = said.removeprefix(f'{command}: ') or 'it printed nothing'
        words, code = answer.stdout + answer.stderr, answer.returncode
        ending = f'exit code {code}' if code >= 0 else signal.Signals(-code).name
        raise MpiNoAnswerError(f'{asked}: {said} ({ending})', words)


def telling_line(text: str) -> str:
    """The first line about an error, or otherwise the first line with a word."""
    lines = [line.strip() for line in text.splitlines() if re.search(r'\w', line)]
    errors = [line for line in lines if re.search('error', line, re.IGNORECASE)]
    return next(iter(errors or lines), '')


def wheels() -> Iterator[Candidate]:
    """The MPIs that the suite has installed."""
    for name in wheel_names():
        prefix = paths.MPI_PREFIXES / name
        if not (prefix / STAMP).is_file():
            continue
        env: dict[str, str] = {}
        for family in FAMILIES.values():
            if family.wheel_env:
                env |= family.wheel_env(prefix)
        yield Candidate(name, 'wheel', prefix / 'bin', env=env)


DEBIAN_NAMES = [
    *('mpicc', 'mpicxx', 'mpic++', 'mpif77', 'mpif90', 'mpifort'),
    *('mpirun', 'mpiexec'),
]


def debian() -> Iterator[Candidate]:
    """Debian's MPIs share /usr/bin; there ``mpicc`` and ``mpirun`` are what the admin chose.

    Each gets a prefix of links with the usual names, so that PATH selects one of them, and Spack
    finds what it looks for in a prefix.
    """
    for kind, family in FAMILIES.items():
        if not family.in_debian:
            continue
        # Either is enough: of an MPI that lost the other, something is there.
        if not (command := on_path_if_broken(f'mpicc.{kind}', f'mpirun.{kind}')):
            continue
        system = command.parent
        prefix = paths.MPI_PREFIXES / f'{kind}-system'
        links = {f'bin/{name}': system / f'{name}.{kind}' for name in DEBIAN_NAMES}
        links |= {f'bin/{name}': system / name for name in family.beside_launcher}
        for folder in system.parent.glob(f'lib/*/{kind}'):
            links |= {name: folder / name for name in ('include', 'lib')}
            if not (folder / 'lib').is_dir():  # its libraries stand beside all others
                libraries = folder.parent.glob(f'lib{kind}*.so')
                links |= {f'lib/{library.name}': library for library in libraries}
        for name, target in links.items():
            link = prefix / name
            if target.exists() and not (link.is_symlink() and link.readlink() == target):
                # Another release of the packages may have its libraries the other way.
                if link.parent != prefix and link.parent.is_symlink():
                    link.parent.unlink()
                link.parent.mkdir(parents=True, exist_ok=True)
                if link.is_dir() and not link.is_symlink():
                    shutil.rmtree(link)
                link.unlink(missing_ok=True)
                with contextlib.suppress(FileExistsError):  # another run has just made it
                    link.symlink_to(target)
        yield Candidate(None, 'debian', prefix / 'bin', suffix='system')


def on_path() -> Iterator[Candidate]:
    """The MPI of the first wrapper on PATH, and that of an earlier launcher without a wrapper."""
    compiler = on_path_if_broken(*WRAPPERS)
    folders = {'path': compiler and compiler.parent}
    # Of an MPI that lost its wrapper the launcher is left, and hides those that come after it.
    launcher = on_path_if_broken('mpirun')
    if launcher and not any(os.path.lexists(launcher.with_name(name)) for name in WRAPPERS):
        folders['path-launcher'] = launcher.parent
    for suffix, folder in folders.items():
        if folder and paths.MPI_PREFIXES not in folder.parents:
            yield Candidate(None, 'PATH', folder, suffix=suffix)


def in_prefix(prefix: Path) -> Candidate:
    """The MPI that somebody says is in a folder, or in its ``bin``."""
    bindir = prefix / 'bin' if (prefix / 'bin').is_dir() else prefix
    return Candidate(None, 'named', bindir, suffix=f'prefix-{as_name(str(prefix).strip("/"))}')


def as_name(place: str) -> str:
    """A module or a folder in the characters that ReFrame allows an environment, another for each.

    Version numbers keep their looks; ambiguous names have a checksum behind them.
    """
    plain = place.replace('/', '-', 1)
    name = re.sub('[^a-zA-Z0-9-]', '_', plain)
    if re.search('[^a-zA-Z0-9.-]', plain):
        name += f'-{hashlib.sha256(place.encode()).hexdigest()[:6]}'
    return name


def on_path_if_broken(*names: str, path: str | None = None) -> Path | None:
    """The first of commands that PATH has; if none can be run, the first file or link there.

    :param path: in place of this process' PATH.
    """
    path = path or os.environ.get('PATH', os.defpath)
    folders = [Path(folder) for folder in path.split(':') if folder]
    return _first(names, folders)


def _first(names: Iterable[str], folders: Iterable[Path]) -> Path | None:
    files = [folder / name for name in names for folder in folders]
    # Unlike Path.is_file, also where a folder of PATH is somebody else's.
    usable = (file for file in files if os.path.isfile(file) and os.access(file, os.X_OK))
    return next(usable, None) or next(filter(os.path.lexists, files), None)
