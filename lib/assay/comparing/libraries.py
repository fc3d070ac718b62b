"""Libraries that changed from one folder to another, and how a job gets those of either."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from assay import AssayError
from assay.text import from_field
from assay.witness.settings import OF_LIBRARIES

#: Of a library: what a job found, and where.
_LOADED = re.compile(r'(?:(\S*\.\S*) )?(?:[\da-f]{8} )?\((/[^()]*)\)')


@dataclass(frozen=True)
class LoadedFile:
    """A library that jobs had loaded.

    :param version: as it tells it itself; empty for nothing.
    """

    version: str
    path: Path

    @property
    def folder(self) -> Path:
        return self.path.parent

    def __str__(self) -> str:
        """Its version and its folder."""
        return f'{self.version} ({self.folder})'.strip()


#: Before and after; None of a side that has none.
_Sides = tuple[LoadedFile | None, LoadedFile | None]


def read(told: str) -> LoadedFile | None:
    """A library of a fact; None if none was loaded, or several were."""
    found = _LOADED.fullmatch(told)
    return LoadedFile(found[1] or '', Path(from_field(found[2]))) if found else None


@dataclass(frozen=True)
class FolderSwitch:
    """Libraries of one folder that changed to those of one other.

    :param name: of all of them.
    :param sides: of the one that stands for all, which tells its version if one does.
    :param lines: of a shell, that make a job load the one before, and the one after.
    """

    name: str
    sides: tuple[LoadedFile, LoadedFile]
    lines: tuple[str, str]


def switch(name: str, changed: Mapping[str, _Sides], system: _Sides) -> FolderSwitch | None:
    """How a library that changed is switched with all that changed along with it.

    The folder of one comes first in ``LD_LIBRARY_PATH``, where that comes before what the loader
    looks for by itself; so the folder of the C library is no other one's rival: there the folder of
    the other side is taken out instead.

    :param changed: all libraries that changed, by the names of their facts.
    :param system: the C library.
    :returns: None of a library that another of the group stands for, or that only one side has
        since another one changed.
    :raises AssayError: if there is no way.
    """
    before, after = changed[name]
    whole = {key: both for key, both in changed.items() if None not in both}
    if not before or not after:
        near = {one.folder for both in (*whole.values(), system) for one in both if one}
        if whole and any(one and one.folder in near for one in (before, after)):
            return None
        raise AssayError('it is not loaded on both sides, once and on all nodes alike')
    if before.folder == after.folder:
        raise AssayError('both were in one folder, which has one of them at most')
    group = {
        key: both
        for key, both in whole.items()
        if [one.folder for one in both if one] == [before.folder, after.folder]
    }
    first, *others = sorted(
        group, key=lambda key: (not all(one and one.version for one in group[key]), key)
    )
    if name != first:
        return None
    sides = before, after
    for one in sides:
        if not one.path.exists():
            raise AssayError(f'{one.path} is not on this machine')
        if ',' in str(one.folder):
            raise AssayError('ReFrame takes no folder with a comma')
    words = ', '.join(one.removeprefix(OF_LIBRARIES) for one in others)
    by_default = [one.folder if one else None for one in system]
    lines = [
        _without(other.folder) if one.folder == default else _before_others(one.folder)
        for one, other, default in zip(sides, reversed(sides), by_default, strict=True)
    ]
    return FolderSwitch(f'{first} with {words}' if words else first, sides, (lines[0], lines[1]))


def _before_others(folder: Path) -> str:
    return (
        f'export LD_LIBRARY_PATH={shlex.quote(str(folder))}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}'
    )


def _without(folder: Path) -> str:
    rest = f'tr : \'\\n\' <<< "$LD_LIBRARY_PATH" | grep -vxF {shlex.quote(str(folder))}'
    return f'export LD_LIBRARY_PATH=$({rest} | paste -sd:)'


def facts_of_group(name: str) -> list[str]:
    """The names of the facts of a group, by its name."""
    names = re.split(' with |, ', name.removeprefix(OF_LIBRARIES))
    return [f'{OF_LIBRARIES}{one}' for one in names]


def loaded_instead(name: str, wanted: str, facts: Mapping[str, str]) -> str | None:
    """What a job loaded in place of libraries that it was to have; None if nothing.

    :param wanted: one side of :class:`FolderSwitch`, as text.
    """
    for fact in facts_of_group(name):
        found = read(facts.get(fact, '-'))
        if found and not wanted.endswith(f'({found.folder})'):
            return f'{found}, which is found before LD_LIBRARY_PATH (by an RPATH or a preload),'
    return None
