"""MPIs of environment modules."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from assay import AssayError
from assay.machine.candidates import Candidate, on_path_if_broken
from assay.mpis import FAMILIES

if TYPE_CHECKING:
    from reframe.core.modules import ModulesSystem


def modules_tool() -> Literal['lmod', 'envmod', 'nomod']:
    """The modules system of this machine, as ReFrame calls it."""
    if 'LMOD_CMD' in os.environ:
        return 'lmod'
    # A command alone says little: in a shell that nobody set up for modules, such as cron's, it has
    # no folders to look into, and fails.
    if 'MODULESHOME' in os.environ or ('MODULEPATH' in os.environ and shutil.which('modulecmd')):
        return 'envmod'
    return 'nomod'


def in_modules() -> Iterator[Candidate]:
    """Those of all modules that are called like an MPI.

    :raises AssayError: if the tool for environment modules does not work.
    """
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
    for name in filter(is_called_like_an_mpi, names):
        before = on_path_if_broken('mpicc')
        fault = None
        with _environment_restored():
            try:
                tool.load_module(name)
            except ReframeError as error:
                fault = _said_by_tool(str(error))
            compiler = on_path_if_broken('mpicc')
            loaded = dict(os.environ)
        if fault is not None:
            if _is_for_others(fault, names):
                continue
            fault = f'it cannot be loaded: {fault}'
        elif compiler is None or (compiler == before and _folders(loaded) - _folders(os.environ)):
            fault = 'once it is loaded there is no mpicc in what it adds to PATH'
        elif compiler == before:
            continue  # it is loaded already, and found on PATH
        yield Candidate(
            None,
            'module',
            compiler.parent if compiler and not fault else Path(),
            modules=(*(() if fault else _needed_by(name, compiler, tool)), name),
            suffix=f'module-{_as_name(name)}',
            loaded=loaded,
            unloadable=fault,
        )


def _needed_by(name: str, compiler: Path | None, tool: ModulesSystem) -> list[str]:
    """The modules that are loaded here, if one does not bring the same without them.

    In a hierarchy an MPI's module is seen only where the module of its compiler is loaded, which
    another shell has not; without it there may be another of the same name.

    :param compiler: the ``mpicc`` that it brings here.
    """
    from reframe.core.exceptions import ReframeError

    loaded: list[str] = tool.loaded_modules()
    if not loaded:
        return []
    with _environment_restored():
        try:
            tool.unload_all()
            tool.load_module(name)
        except ReframeError:
            return loaded
        return [] if on_path_if_broken('mpicc') == compiler else loaded


def environment_of(names: Iterable[str], kind: str) -> dict[str, str]:
    """The environment in which modules are loaded.

    :param kind: of the modules system, as ReFrame calls it.
    :raises AssayError: if one cannot be loaded.
    """
    from reframe.core.exceptions import ReframeError
    from reframe.core.modules import ModulesSystem

    with _environment_restored():
        for name in names:
            try:
                ModulesSystem.create(kind).load_module(name)
            except ReframeError as error:
                said = _said_by_tool(str(error))
                raise AssayError(f'module {name} cannot be loaded: {said}') from None
        return dict(os.environ)


def _folders(environment: Mapping[str, str]) -> set[str]:
    return set(environment.get('PATH', '').split(':'))


def is_called_like_an_mpi(module: str) -> bool:
    """Whether it is an MPI's name, also with a version; Red Hat has ``mpi/openmpi-x86_64``."""
    return any(
        re.fullmatch(f'(?:{name})(?:/.*[^/])?|mpi/(?:{name})-[^/]+', module, re.IGNORECASE)
        for name in (family.modules for family in FAMILIES.values())
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
