"""The MPIs of this machine: asking each that is there what it is."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from assay.machine import candidates, modules
from assay.machine.candidates import Candidate, NoAnswerError, Source, telling_line
from assay.mpis import FAMILIES, Family
from assay.mpis.family import Expression, search

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
    """Absolute path of ``mpirun`` or ``mpiexec``."""
    description: str
    """What the MPI says of its own build: ompi_info, mpichversion, Intel MPI's version line."""
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

    @property
    def kind(self) -> Family:
        """Its family; not of one where nothing tells which."""
        assert self.family, f'{self.name} is of no family that we know'
        return FAMILIES[self.family]


def find_mpis() -> list[Mpi]:
    """Every MPI that this machine offers, each once, wheels first.

    They are asked each time: an MPI can break while its own files stay as they are.

    :raises AssayError: if the tool for environment modules does not work.
    """
    sources = (candidates.wheels, candidates.debian, candidates.on_path, modules.in_modules)
    each: dict[Path, Candidate] = {}
    for candidate in [one for source in sources for one in source()]:
        each.setdefault(candidate.key, candidate)
    with ThreadPoolExecutor() as pool:
        mpis = [mpi for mpi in pool.map(examine, each.values()) if mpi]
    return list({mpi.name: mpi for mpi in reversed(mpis)}.values())[::-1]


def examine(candidate: Candidate) -> Mpi | None:
    """The MPI of a candidate, with its fault if it has one; None if it is no MPI that we know."""
    family = version = launcher = None
    description = compiler = ''
    is_stranger = False
    fault = candidate.unloadable
    if not fault:
        try:
            if re.search(r"""[\s:;,'"`$\\&|<>()*?!#]""", str(candidate.bindir)):
                raise NoAnswerError('its path has a character that job scripts cannot hold')
            launcher = candidate.command(*LAUNCHERS)
            if launcher is None:
                raise NoAnswerError(f'there is no mpirun or mpiexec beside {candidate.cc}')
            words = candidate.ask(launcher, '--version')
            told = _said({key: one.launcher_says for key, one in FAMILIES.items()}, words)
            if not told:
                is_stranger = bool(words.strip())
                raise NoAnswerError(f'mpirun --version says {telling_line(words)!r}')
            family, version = told[0]
            family, version = _agreed(candidate, Path(launcher), told)
            description = _describe(candidate, FAMILIES[family]) or words
            compiler = _compiler(candidate, FAMILIES[family])
        except NoAnswerError as error:
            fault = str(error)
    if fault:
        family = family or _guess(candidate)
        if family is None and (is_stranger or not os.path.lexists(candidate.cc)):
            return None  # commands that have the names of an MPI's
        called = FAMILIES[family].name if family else 'the MPI'
        where = (
            f'of module {candidate.modules[-1]}' if candidate.modules else f'in {candidate.bindir}'
        )
        fault = f'{called} {where} does not answer: {fault}'
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


#: Families and versions; no version where the launcher has one of its own.
Sayings = list[tuple[str, str | None]]


def _said(expressions: Mapping[str, Expression], words: str) -> Sayings:
    """Whose words these are, those with a version first; several MPIs may share a launcher.

    :param expressions: what each family says; the group is the version.
    """
    found = [
        (family, match[1] if match.re.groups else None)
        for family, says in expressions.items()
        if (match := search(says, words))
    ]
    return sorted(found, key=lambda one: one[1] is None)


def _said_by_wrapper(candidate: Candidate) -> Sayings:
    words = ''
    for option in dict.fromkeys(family.wrapper_option for family in FAMILIES.values()):
        with contextlib.suppress(NoAnswerError):
            words += candidate.ask(str(candidate.cc), option)
    return _said({key: family.wrapper_says for key, family in FAMILIES.items()}, words)


def _agreed(candidate: Candidate, launcher: Path, told: Sayings) -> tuple[str, str]:
    """Family and version, by the launcher's words and the C wrapper's.

    :param told: by the launcher.
    :raises NoAnswerError: if the C wrapper is missing, or that of another MPI.
    """
    if not os.access(candidate.cc, os.X_OK):
        raise NoAnswerError(f'there is no mpicc that can be run beside {launcher}')
    said = _said_by_wrapper(candidate)
    for family, version in said or told:
        if version and ({(family, version), (family, None)} & {*told}):
            return family, version
    if not said:
        raise NoAnswerError(f'neither {launcher.name} nor mpicc says its version')
    raise NoAnswerError(
        f'{launcher.name} is that of {_spoken(told[0])}, mpicc that of {_spoken(said[0])}'
    )


def _spoken(saying: tuple[str, str | None]) -> str:
    return ' '.join(filter(None, saying))


def _describe(candidate: Candidate, family: Family) -> str:
    """What it says of its own build; empty if it has no command for that.

    :raises NoAnswerError: if that command fails, or is missing in a family that needs it.
    """
    if not family.description:
        return ''
    name, *arguments = family.description
    if command := candidate.command(name):
        return candidate.ask(command, *arguments)
    if family.needs_description:
        raise NoAnswerError(f'there is no {name} beside {candidate.cc}')
    return ''


def _compiler(candidate: Candidate, family: Family) -> str:
    """Absolute path of the compiler that the C wrapper calls.

    :raises NoAnswerError: if there is no such compiler.
    """
    try:
        command = shlex.split(candidate.ask(str(candidate.cc), '-show'))
    except ValueError:
        command = []
    if not command:
        raise NoAnswerError(f"'{candidate.cc} -show' does not say which C compiler it calls")
    compiler = shutil.which(command[0], path=candidate.environment['PATH'])
    if compiler is None:
        raise NoAnswerError(
            f"no C compiler: '{command[0]}', which {candidate.cc} calls, is not on PATH. "
            'Install gcc (Debian: apt install gcc libc6-dev; Red Hat: dnf install gcc) '
            f'or name another compiler with {family.compiler_variable}'
        )
    return compiler


def _guess(candidate: Candidate) -> str | None:
    """The family of one that does not say it, by what names, wrapper and files tell."""
    for name in filter(None, (candidate.name, *candidate.modules)):
        if family := _hinted(name):
            return family
    if said := _said_by_wrapper(candidate):
        return said[0][0]
    files = [candidate.bindir / name for name in ('mpicc', *LAUNCHERS)]
    hinted = (_hinted(str(file.resolve())) for file in files if os.path.lexists(file))
    return next(filter(None, hinted), None)


def _hinted(text: str) -> str | None:
    found = (key for key, family in FAMILIES.items() if search(family.hints, text))
    return next(found, None)
