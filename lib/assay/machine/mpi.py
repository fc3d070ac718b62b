"""The MPIs of this machine: asking each that is there what it is."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from assay import AssayError, paths
from assay.machine import candidates, modules
from assay.machine.candidates import WRAPPERS, Candidate, MpiNoAnswerError, Source, telling_line
from assay.machine.wheels import wheel_names
from assay.mpis import FAMILIES, Family, strangers
from assay.mpis.family import Expression, search_line
from assay.mpis.strangers import Stranger
from assay.programs.imb import PROGRAM

LAUNCHERS = ('mpirun', 'mpiexec')


@dataclass(frozen=True)
class Mpi:
    """An MPI of this machine: one that can build and start programs, or one that should."""

    name: str
    """Name of its ReFrame environment: ``openmpi``, ``mpich-system``, ``openmpi-path``, ...."""
    family: str | None
    """None only of one with a fault, where nothing tells."""
    version: str
    prefix: Path
    cc: str
    """Absolute path of the C wrapper."""
    cxx: str | None
    bindir: Path
    """To be first on PATH, so that ``mpirun`` and ``mpiexec`` are this MPI's."""
    launcher: str
    """Absolute path of ``mpirun`` or ``mpiexec``; empty if srun alone starts its programs."""
    description: str
    """The MPI's description of its own build: ompi_info, mpichversion, Intel MPI's version line."""
    source: Source
    modules: tuple[str, ...] = ()
    """To be loaded in this order; its own is the last."""
    env: dict[str, str] = field(default_factory=dict)
    """Variables without which it does not work."""
    compiler: str = ''
    """Absolute path of the compiler that the C wrapper calls."""
    fault: str | None = None
    """Why it is there and does not answer, as a sentence. Family and name are then a guess, and
    version, description and compiler are empty."""
    is_stranger: bool = False
    """Whether it is of no family: its fault says whose it is."""

    @property
    def left_out(self) -> str | None:
        """Why no check runs on it on this machine alone, where it is not broken."""
        if self.is_stranger:
            return self.fault
        if self.launcher or self.fault:
            return None
        return (
            f'{self.kind.name} {self.version} in {self.bindir} has no mpirun: srun starts its '
            'programs, in a system of Slurm (./assay init)'
        )

    @property
    def launchers(self) -> list[Path]:
        """Its mpirun and mpiexec: one file or two, without links."""
        if not self.launcher:
            return []
        return [Path(self.launcher).with_name(name).resolve() for name in LAUNCHERS]

    @property
    def kind(self) -> Family:
        """Its family; not of one where nothing tells which."""
        assert self.family, f'{self.name} is of no family that we know'
        return FAMILIES[self.family]


def find_mpis() -> list[Mpi]:
    """Every MPI that this machine offers, each once, wheels first.

    They are asked each time: an MPI can break while its own files stay as they are.

    :raises AssayError: if the tool for environment modules does not work, or a place that somebody
        named is none.
    """
    sources = (
        *(candidates.wheels, candidates.debian, candidates.on_path),
        *(modules.in_places, modules.in_modules),
    )
    each: dict[Path, Candidate] = {}
    for candidate in [one for source in sources for one in source()]:
        each.setdefault(candidate.key, candidate)
    with ThreadPoolExecutor() as pool:
        mpis = [mpi for mpi in pool.map(examine_mpi, each.values()) if mpi]
    return list({mpi.name: mpi for mpi in reversed(mpis)}.values())[::-1]


def find_in(place: str) -> Mpi:
    """The MPI of a folder or of modules, as somebody names them.

    :raises AssayError: if there is none.
    """
    if mpi := examine_mpi(modules.in_place(place)):
        return mpi
    raise AssayError(f'mpicc and mpirun of {place} are of no MPI')


def examine_mpi(candidate: Candidate) -> Mpi | None:
    """The MPI of a candidate, with its fault if it has one; None if it is no MPI at all."""
    family = version = launcher = stranger = None
    description = compiler = ''
    is_nothing = False
    fault = candidate.unloadable
    if not fault:
        try:
            if re.search(r"""[\s:;,'"`$\\&|<>()*?!#]""", str(candidate.bindir)):
                raise MpiNoAnswerError('its path has a character that job scripts cannot hold')
            launcher, words, broken = _launcher(candidate)
            answers = _answers_of_wrapper(candidate)
            said = _said({key: one.wrapper_says for key, one in FAMILIES.items()}, answers)
            told = _said({key: one.launcher_says for key, one in FAMILIES.items()}, words)
            if said or told:
                family, version = (told or said)[0]
                its = FAMILIES[(said or told)[0][0]]
                with contextlib.suppress(MpiNoAnswerError):
                    description = _describe(candidate, its)
                # Its own launcher describes an MPI that has no command for that.
                if (its.key, version) in told and not its.description:
                    description = words
            stranger = _stranger(candidate, [words, answers, description], bool(said), bool(told))
            if stranger is None:
                if broken:
                    raise broken
                is_nothing = not said and not told and bool(words.strip())
                family, version, launcher = _agreed(candidate, launcher, words, said, told)
                description = description or _describe(candidate, FAMILIES[family]) or words
                compiler = _compiler(candidate, FAMILIES[family])
        except MpiNoAnswerError as error:
            fault = str(error)
    if fault and candidate.modules:
        stranger = strangers.of_module(candidate.modules[-1])
    where = f'of module {candidate.modules[-1]}' if candidate.modules else f'in {candidate.bindir}'
    if stranger:
        family, version = None, stranger.version
        fault = (
            f'{" ".join(filter(None, [stranger.name, version]))} {where} is an MPI that Assay does '
            'not know how to drive, so nothing runs on it: docs/extending.md says how to add an MPI'
        )
    elif fault:
        family = family or _guess(candidate)
        if family is None and (is_nothing or not os.path.lexists(candidate.cc)):
            return None  # commands that have the names of an MPI's
        called = FAMILIES[family].name if family else 'the MPI'
        fault = f'{called} {where} does not answer: {fault}'
    kind = re.sub('[^a-z0-9]', '', stranger.name.lower()) if stranger else family or 'mpi'
    cc = candidate.cc
    return Mpi(
        name=candidate.name or f'{kind}-{candidate.suffix}',
        family=family,
        version=version or '',
        prefix=candidate.bindir.parent,
        cc=str(cc),
        cxx=candidate.command(WRAPPERS.get(cc.name, 'mpicxx'), 'mpicxx', 'mpic++'),
        bindir=candidate.bindir,
        launcher=launcher or '',
        description=description,
        source=candidate.source,
        modules=candidate.modules,
        env=candidate.env,
        compiler=compiler,
        fault=fault,
        is_stranger=stranger is not None,
    )


def _launcher(candidate: Candidate) -> tuple[str | None, str, MpiNoAnswerError | None]:
    """Its launcher, what that says, and how it failed; None where srun takes its place."""
    path = candidate.command(*LAUNCHERS)
    if path is None:
        return None, '', None
    try:
        return path, candidate.ask(path, '--version'), None
    except MpiNoAnswerError as error:
        # As Spack's in place of those that it left out.
        if re.search(r'\bsrun\b', error.said):
            return None, error.said, None
        return path, error.said, error


def _stranger(
    candidate: Candidate, answers: Sequence[str], is_said: bool, is_told: bool
) -> Stranger | None:
    """Whose it is, if not a family's: it may have the launcher and the words of one.

    :param answers: of its launcher, its C wrapper, and the command that describes it.
    :param is_said: whether its C wrapper has the words of a family.
    :param is_told: whether its launcher has.
    """
    for words in answers:
        if stranger := strangers.of_words(words):
            return stranger
    of_launcher, of_wrapper, description = answers
    if not is_said and (stranger := strangers.of_wrapper(of_wrapper)):
        return stranger
    if not is_said and not is_told and (stranger := strangers.of_launcher(of_launcher)):
        return stranger
    if description or candidate.source == 'wheel':
        return None
    for name, *arguments in strangers.COMMANDS:
        if command := candidate.command(name):
            with contextlib.suppress(MpiNoAnswerError):
                if stranger := strangers.of_words(candidate.ask(command, *arguments)):
                    return stranger
    # It takes up to a second.
    for library in candidate.libraries:
        with contextlib.suppress(OSError):
            if stranger := strangers.in_library(library.read_bytes()):
                return stranger
    return None


#: Families and versions; no version where the launcher has one of its own.
Sayings = list[tuple[str, str | None]]


def _said(expressions: Mapping[str, Expression], words: str) -> Sayings:
    """Whose words these are, those with a version first; several MPIs may share a launcher.

    :param expressions: what each family says; the group is the version.
    """
    found = [
        (family, match[1] if match.re.groups else None)
        for family, says in expressions.items()
        if (match := search_line(says, words))
    ]
    return sorted(found, key=lambda one: one[1] is None)


def _answers_of_wrapper(candidate: Candidate) -> str:
    """The answers of a compiler wrapper to the questions of all families."""
    words = ''
    for option in dict.fromkeys(family.wrapper_option for family in FAMILIES.values()):
        with contextlib.suppress(MpiNoAnswerError):
            words += candidate.ask(str(candidate.cc), option)
    return words


def _agreed(
    candidate: Candidate, launcher: str | None, words: str, said: Sayings, told: Sayings
) -> tuple[str, str, str]:
    """Family and version, by the launcher's words and the C wrapper's; and the launcher.

    That is empty where srun has to start its programs.

    :param words: of the launcher.
    :param said: by the C wrapper.
    :param told: by the launcher.
    :raises MpiNoAnswerError: if one of them is missing, or they are of different MPIs.
    """
    if launcher and told and not os.access(candidate.cc, os.X_OK):
        raise MpiNoAnswerError(f'there is no mpicc that can be run beside {launcher}')
    if not told:
        if said and said[0][1] and shutil.which('srun', path=candidate.environment['PATH']):
            return said[0][0], said[0][1], ''
        if launcher is None:
            raise MpiNoAnswerError(f'there is no mpirun or mpiexec beside {candidate.cc}')
        whose = f', and is not the launcher of {FAMILIES[said[0][0]].name}' if said else ''
        name = Path(launcher).name
        raise MpiNoAnswerError(f'{name} --version says {telling_line(words)!r}{whose}')
    assert launcher
    for family, version in said or told:
        if version and ({(family, version), (family, None)} & {*told}):
            return family, version, launcher
    name = Path(launcher).name
    if not said:
        raise MpiNoAnswerError(f'neither {name} nor mpicc says its version')
    raise MpiNoAnswerError(
        f'{name} is that of {_spoken(told[0])}, mpicc that of {_spoken(said[0])}'
    )


def _spoken(saying: tuple[str, str | None]) -> str:
    return ' '.join(filter(None, saying))


def _describe(candidate: Candidate, family: Family) -> str:
    """The MPI's description of its own build; empty if it has no command for that.

    :raises MpiNoAnswerError: if that command fails, or is missing in a family that needs it.
    """
    if not family.description:
        return ''
    name, *arguments = family.description
    if command := candidate.command(name):
        return candidate.ask(command, *arguments)
    if family.needs_description:
        raise MpiNoAnswerError(f'there is no {name} beside {candidate.cc}')
    return ''


def _compiler(candidate: Candidate, family: Family) -> str:
    """Absolute path of the compiler that the C wrapper calls.

    :raises MpiNoAnswerError: if there is no such compiler.
    """
    commands = []
    # A site's wrapper may print something before it.
    for line in reversed(candidate.ask(str(candidate.cc), '-show').splitlines()):
        with contextlib.suppress(ValueError):
            commands += shlex.split(line)[:1]
    for command in commands:
        if compiler := shutil.which(command, path=candidate.environment['PATH']):
            return compiler
    if not commands:
        raise MpiNoAnswerError(f"'{candidate.cc} -show' does not say which C compiler it calls")
    raise MpiNoAnswerError(
        f"no C compiler: '{commands[0]}', which {candidate.cc} calls, is not on PATH. "
        'Install gcc (Debian: apt install gcc libc6-dev; Red Hat: dnf install gcc) '
        f'or name another compiler with {family.compiler_variable}'
    )


def _guess(candidate: Candidate) -> str | None:
    """The family of one that does not say it, by what names, wrapper and files tell."""
    for name in filter(None, (candidate.name, *candidate.modules)):
        if family := _hinted(name):
            return family
    says = {key: family.wrapper_says for key, family in FAMILIES.items()}
    if said := _said(says, _answers_of_wrapper(candidate)):
        return said[0][0]
    files = [candidate.cc, *(candidate.bindir / name for name in LAUNCHERS)]
    hinted = (_hinted(str(file.resolve())) for file in files if os.path.lexists(file))
    return next(filter(None, hinted), None)


def _hinted(text: str) -> str | None:
    found = (key for key, family in FAMILIES.items() if search_line(family.hints, text))
    return next(found, None)


# The Intel MPI Benchmarks -------------------------------------------------------------------------


@dataclass(frozen=True)
class Imb:
    """An ``IMB-MPI1`` for one MPI.

    :param program: its absolute path.
    :param libraries: folder with the MPI library that it has to load.
    """

    program: Path
    libraries: Path


def find_imb(mpi: Mpi) -> Imb | None:
    """An ``IMB-MPI1`` that runs on ``mpi``: linked to a library of the same name.

    Looked for in the wheels (Intel MPI's has one) and on PATH, in this order.
    """
    name = mpi.kind.soname
    folders = [mpi.prefix / folder for folder in ('lib', 'lib64')]
    if libraries := next((folder for folder in folders if (folder / name).exists()), None):
        for program in _programs():
            if name in _needed(program):
                return Imb(program, libraries)
    return None


@lru_cache
def _programs() -> tuple[Path, ...]:
    found = [paths.MPI_PREFIXES / name / 'bin' / PROGRAM for name in wheel_names()]
    if on_path := shutil.which(PROGRAM):
        found.append(Path(on_path))
    return tuple(path for path in found if path.is_file())


@lru_cache
def _needed(program: Path) -> frozenset[str]:
    """Names of the MPI libraries that a program is linked to.

    The names stand in its string table, which saves asking for readelf.
    """
    return frozenset(
        name.decode() for name in re.findall(rb'libmpi\.so\.\d+(?=\0)', program.read_bytes())
    )
