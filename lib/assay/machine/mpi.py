"""The MPIs of this machine: finding them, asking them what they are, installing wheels."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from assay import AssayError, paths
from assay.machine.pip import pip

Family = Literal['openmpi', 'mpich', 'intelmpi']
Source = Literal['wheel', 'debian', 'PATH', 'module']

# The families that the generic system needs: it installs the wheel of one that the machine lacks.
NEEDED = ('openmpi', 'mpich')

# Seconds that a question to an MPI's own command may take; each takes well under one.
PATIENCE = 60

LAUNCHERS = ('mpirun', 'mpiexec')


@dataclass(frozen=True)
class Mpi:
    """An MPI of this machine: one that can build and start programs, or one that should."""

    name: str
    """Name of its ReFrame environment: ``openmpi``, ``mpich-system``, ``openmpi-path``, ...."""
    family: Family | None
    """None only of one with a fault, where nothing tells."""
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
    compiler: str = ''
    """Absolute path of the compiler that the C wrapper calls."""
    fault: str | None = None
    """Why it is there and does not answer, as a sentence. Family and name are then a guess, and
    version, description and compiler are empty."""


class _NoAnswerError(Exception):
    """A command that belongs to an MPI is missing or fails; the message says which and why."""


@dataclass(frozen=True)
class _Candidate:
    """A place where an MPI is to be; ``name`` is None where it depends on the family."""

    name: str | None
    source: Source
    bindir: Path
    modules: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    suffix: str = ''
    loaded: dict[str, str] | None = None
    """The environment in which it is to be asked; that of this process where None."""
    unloadable: str | None = None
    """Why its module cannot be loaded."""

    @property
    def cc(self) -> Path:
        return self.bindir / 'mpicc'

    @property
    def key(self) -> Path:
        """The same for two candidates that are one MPI."""
        # Two modules may differ by nothing but the variables that they set. Open MPI's wrappers are
        # links to one program: what differs is the prefix they stand for.
        return Path(self.modules[0]) if self.modules else self.cc.resolve()

    @property
    def environment(self) -> dict[str, str]:
        """That in which its commands run."""
        env = {**(self.loaded or os.environ), **self.env}
        return env | {'PATH': f'{self.bindir}:{env.get("PATH", os.defpath)}'}

    def command(self, *names: str) -> str | None:
        """The first of the commands ``names`` that stands beside the C wrapper."""
        for folder in (self.bindir, self.cc.resolve().parent):
            for name in names:
                if os.access(folder / name, os.X_OK):
                    return str(folder / name)
        return None

    def ask(self, command: str | None, *arguments: str) -> str:
        """Standard output of one of its commands.

        :raises _NoAnswerError: if it cannot be run, fails, or takes too long.
        """
        asked = ' '.join([Path(command).name, *arguments])
        try:
            answer = subprocess.run(
                [command, *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors='replace',
                timeout=PATIENCE,
            )
        except OSError as error:
            raise _NoAnswerError(f'{asked}: {error.strerror}') from None
        except subprocess.TimeoutExpired:
            raise _NoAnswerError(f'{asked}: no answer in {PATIENCE} s') from None
        if answer.returncode == 0:
            return answer.stdout
        said = _telling_line(answer.stderr) or _telling_line(answer.stdout)
        # The dynamic linker begins with the path of the command.
        said = said.removeprefix(f'{command}: ') or 'it printed nothing'
        raise _NoAnswerError(f'{asked}: {said} ({_ending(answer.returncode)})')


def _telling_line(text: str) -> str:
    """The first line about an error, else the first line with a word."""
    lines = [line.strip() for line in text.splitlines() if re.search(r'\w', line)]
    errors = [line for line in lines if re.search('error', line, re.IGNORECASE)]
    return next(iter(errors or lines), '')


def _ending(code: int) -> str:
    return f'exit code {code}' if code >= 0 else signal.Signals(-code).name


def find_mpis() -> list[Mpi]:
    """Every MPI that this machine offers, each once, wheels first.

    They are asked each time: an MPI can break while its own files stay as they are.

    :raises AssayError: if the tool for environment modules does not work.
    """
    candidates: dict[Path, _Candidate] = {}
    for candidate in [*_wheels(), *_debian(), *_on_path(), *_in_modules()]:
        candidates.setdefault(candidate.key, candidate)
    with ThreadPoolExecutor() as pool:
        mpis = [mpi for mpi in pool.map(_examine, candidates.values()) if mpi]
    return list({mpi.name: mpi for mpi in reversed(mpis)}.values())[::-1]


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
        # Either is enough: of an MPI that lost the other, something is there.
        if not (command := _on_path_if_broken(f'mpicc.{kind}', f'mpirun.{kind}')):
            continue
        system = command.parent
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
    compiler = _on_path_if_broken('mpicc')
    folders = {'path': compiler and compiler.parent}
    # Of an MPI that lost its wrapper the launcher is left, and hides those that come after it.
    launcher = _on_path_if_broken('mpirun')
    if launcher and not os.path.lexists(launcher.with_name('mpicc')):
        folders['path-launcher'] = launcher.parent
    for suffix, folder in folders.items():
        if folder and paths.MPI_PREFIXES not in folder.parents:
            yield _Candidate(None, 'PATH', folder, suffix=suffix)


def _on_path_if_broken(*names: str) -> Path | None:
    """The first of commands that PATH has; if none can be run, the first file or link there."""
    folders = [Path(folder) for folder in os.environ.get('PATH', os.defpath).split(':') if folder]
    files = [folder / name for name in names for folder in folders]
    usable = (file for file in files if file.is_file() and os.access(file, os.X_OK))
    return next(usable, None) or next(filter(os.path.lexists, files), None)


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
        names = tool.available_modules()
    except ReframeError as error:
        raise AssayError(f'the environment modules of this machine do not work: {error}') from None
    # Behind a name there may be marks in brackets. Lmod lists folders too, which end in a slash.
    names = list(dict.fromkeys(re.split('[(<]', name)[0].strip() for name in names))
    for name in filter(MPI_MODULE.fullmatch, names):
        before = _on_path_if_broken('mpicc')
        fault = None
        with _environment_restored():
            try:
                tool.load_module(name)
            except ReframeError as error:
                fault = _said_by_tool(str(error))
            compiler = _on_path_if_broken('mpicc')
            loaded = dict(os.environ)
        if fault is not None:
            if _is_for_others(fault, names):
                continue
            fault = f'it cannot be loaded: {fault}'
        elif compiler is None or (compiler == before and _folders(loaded) - _folders(os.environ)):
            fault = 'once it is loaded there is no mpicc in what it adds to PATH'
        elif compiler == before:
            continue  # it is loaded already, and found on PATH
        yield _Candidate(
            None,
            'module',
            Path() if fault else compiler.parent,
            modules=(name,),
            suffix=f'module-{_as_name(name)}',
            loaded=loaded,
            unloadable=fault,
        )


def _folders(environment: Mapping[str, str]) -> set[str]:
    return set(environment.get('PATH', '').split(':'))


# A name and its version; Red Hat's are called mpi/openmpi-x86_64.
MPI_MODULE = re.compile(
    r'(openmpi|mpich|intel-?mpi|impi)(/.*[^/])?|mpi/(openmpi|mpich)-[^/]+', re.IGNORECASE
)


def _as_name(module: str) -> str:
    """A module's name in the characters that ReFrame allows an environment, another for each.

    Version numbers keep their looks; what would not be told apart has a checksum behind it.
    """
    plain = module.replace('/', '-', 1)
    name = re.sub('[^a-zA-Z0-9-]', '_', plain)
    if re.search('[^a-zA-Z0-9.-]', plain):
        name += f'-{hashlib.sha256(module.encode()).hexdigest()[:6]}'
    return name


def _said_by_tool(error: str) -> str:
    """What the modules tool printed, in one line, from ReFrame's message."""
    _, _, said = error.rpartition('--- stdout ---')
    said = re.sub('--- stderr ---', '', said or error)
    said = re.split(r'\n\s*(?:While processing|while executing|\(file )', said)[0]
    said = re.sub(r'^\s*(Loading \S+|Lmod has detected the following error:)', '', said)
    return ' '.join(said.split())


def _is_for_others(fault: str, names: list[str]) -> bool:
    """Whether a module is not for this shell: it needs another that there is, or excludes one."""
    if re.search('because these module|due to a conflict', fault):
        return True
    needed = re.search(r'must be loaded(?: first)?: (.*)|without these.* loaded: (.*)', fault)
    there = {name.partition('/')[0] for name in names} | {*names}
    return needed is not None and bool({*re.split('[ ,]+', needed[1] or needed[2])} & there)


@contextlib.contextmanager
def _environment_restored() -> Iterator[None]:
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


# Asking them what they are ------------------------------------------------------------------------

# What launchers and C wrappers say of themselves.
LAUNCHER_SAYS: dict[Family, str] = {
    'openmpi': r'Open MPI\)? v?(\d\S*)',
    'intelmpi': r'Intel\(R\) MPI Library.*Version (\d\S*)',
    'mpich': r'HYDRA build details:\s+Version:\s+(\d\S*)',
}
WRAPPER_SAYS: dict[Family, str] = {
    'openmpi': r'mpicc: Open MPI (\d\S*)',
    'intelmpi': r'for the Intel\(R\) MPI Library (\d\S*)',
    'mpich': r'mpicc for MPICH version (\d\S*)',
}
# What tells the family of one that does not say it: names of its files, folders and modules.
HINTS: dict[Family, str] = {
    'openmpi': r'open-?mpi|\bompi|opal|orte|open-rte|prte',
    'intelmpi': r'intel-?mpi|\bimpi|oneapi',
    'mpich': r'mpich|hydra',
}
COMPILER_VARIABLE: dict[Family, str] = {
    'openmpi': 'OMPI_CC',
    'intelmpi': 'I_MPI_CC',
    'mpich': 'MPICH_CC',
}


def _examine(candidate: _Candidate) -> Mpi | None:
    """The MPI of a candidate, with its fault if it has one; None if it is no MPI that we know."""
    family = version = launcher = None
    description = compiler = ''
    is_stranger = False
    fault = candidate.unloadable
    if not fault:
        try:
            if re.search(r"""[\s:;,'"`$\\&|<>()*?!#]""", str(candidate.bindir)):
                raise _NoAnswerError('its path has a character that job scripts cannot hold')
            launcher = candidate.command(*LAUNCHERS)
            if launcher is None:
                raise _NoAnswerError(f'there is no mpirun or mpiexec beside {candidate.cc}')
            words = candidate.ask(launcher, '--version')
            if (said := _said(LAUNCHER_SAYS, words)) is None:
                is_stranger = bool(words.strip())
                raise _NoAnswerError(f'mpirun --version says {_telling_line(words)!r}')
            family, version = said
            _assert_fellows(candidate, Path(launcher), family, version)
            description = _describe(candidate, family) or words
            compiler = _compiler(candidate, family)
        except _NoAnswerError as error:
            fault = str(error)
    if fault:
        family = family or _guess(candidate)
        if family is None and (is_stranger or not os.path.lexists(candidate.cc)):
            return None  # commands that have the names of an MPI's
        called = {'openmpi': 'Open MPI', 'mpich': 'MPICH', 'intelmpi': 'Intel MPI'}
        where = (
            f'of module {candidate.modules[0]}' if candidate.modules else f'in {candidate.bindir}'
        )
        fault = f'{called.get(family, "the MPI")} {where} does not answer: {fault}'
    return Mpi(
        name=candidate.name or f'{family or "mpi"}-{candidate.suffix}',
        family=family,
        version=version or '',
        prefix=candidate.bindir.parent,
        cc=str(candidate.cc),
        cxx=candidate.command('mpicxx', 'mpic++'),
        bindir=candidate.bindir,
        launcher=launcher or '',
        description=description,
        source=candidate.source,
        modules=candidate.modules,
        env=candidate.env,
        compiler=compiler,
        fault=fault,
    )


def _said(sayings: dict[Family, str], words: str) -> tuple[Family, str] | None:
    """Family and version, by the MPI's own words; None if these are of no MPI that we know."""
    found = ((family, re.search(says, words)) for family, says in sayings.items())
    return next(((family, match[1]) for family, match in found if match), None)


def _assert_fellows(candidate: _Candidate, launcher: Path, family: Family, version: str) -> None:
    """:raises _NoAnswerError: if the C wrapper is missing, or that of another MPI."""
    if not os.access(candidate.cc, os.X_OK):
        raise _NoAnswerError(f'there is no mpicc that can be run beside {launcher}')
    said = _said(WRAPPER_SAYS, _words_of_wrapper(candidate))
    if said and said != (family, version):
        raise _NoAnswerError(
            f'{launcher.name} is that of {family} {version}, mpicc that of {" ".join(said)}'
        )


def _describe(candidate: _Candidate, family: Family) -> str:
    """What it says of its own build; empty if it has no command for that.

    :raises _NoAnswerError: if that command fails, or an Open MPI has none: which fabrics it can
        use stands nowhere else.
    """
    name = {'openmpi': 'ompi_info', 'mpich': 'mpichversion'}.get(family)
    command = candidate.command(name) if name else None
    if command:
        return candidate.ask(command)
    if family == 'openmpi':
        raise _NoAnswerError(f'there is no {name} beside {candidate.cc}')
    return ''


def _compiler(candidate: _Candidate, family: Family) -> str:
    """Absolute path of the compiler that the C wrapper calls.

    :raises _NoAnswerError: if there is no such compiler.
    """
    try:
        command = shlex.split(candidate.ask(str(candidate.cc), '-show'))
    except ValueError:
        command = []
    if not command:
        raise _NoAnswerError(f"'{candidate.cc} -show' does not say which C compiler it calls")
    compiler = shutil.which(command[0], path=candidate.environment['PATH'])
    if compiler is None:
        raise _NoAnswerError(
            f"no C compiler: '{command[0]}', which {candidate.cc} calls, is not on PATH. "
            'Install gcc (Debian: apt install gcc libc6-dev; Red Hat: dnf install gcc) '
            f'or name another compiler with {COMPILER_VARIABLE[family]}'
        )
    return compiler


def _words_of_wrapper(candidate: _Candidate) -> str:
    words = ''
    for option in ('--showme:version', '-v'):  # one is Open MPI's, the other that of the others
        with contextlib.suppress(_NoAnswerError):
            words += candidate.ask(str(candidate.cc), option)
    return words


def _guess(candidate: _Candidate) -> Family | None:
    """The family of one that does not say it, by what names, wrapper and files tell."""
    for name in filter(None, (candidate.name, *candidate.modules)):
        if family := _hinted(name):
            return family
    if said := _said(WRAPPER_SAYS, _words_of_wrapper(candidate)):
        return said[0]
    files = [candidate.bindir / name for name in ('mpicc', *LAUNCHERS)]
    return _hinted(' '.join(str(file.resolve()) for file in files if os.path.lexists(file)))


def _hinted(text: str) -> Family | None:
    found = (family for family, hint in HINTS.items() if re.search(hint, text, re.IGNORECASE))
    return next(found, None)


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
