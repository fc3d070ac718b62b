"""Libraries that changed from one folder to another, and how a job gets those of either."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from assay import AssayError
from assay.text import from_field
from assay.witness.settings import OF_LIBRARIES

#: Of a library: its version and the beginning of its build id, where it tells them, and its path.
_LOADED = re.compile(r'(?:(\S+) )??(?:[\da-f]{1,8} )?\((/.*)\)')


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
Sides = tuple[LoadedFile | None, LoadedFile | None]


def read_library(told: str) -> LoadedFile | None:
    """A library of a fact; None if none was loaded, or several were."""
    found = _LOADED.fullmatch(told)
    if not found or ' / ' in told or '), ' in told:  # of ranks and nodes that differ
        return None
    return LoadedFile(found[1] or '', Path(from_field(found[2])))


@dataclass(frozen=True)
class FolderSwitch:
    """Libraries of one folder that changed to those of one other.

    :param name: of all of them.
    :param sides: of the one that stands for all, which tells its version if one does.
    :param lines: of a shell, that make a job load the one before, and the one after.
    :param facts: the names of the facts of all of them.
    """

    name: str
    sides: tuple[LoadedFile, LoadedFile]
    lines: tuple[str, str]
    facts: tuple[str, ...]


def switch(name: str, changed: Mapping[str, Sides], system: Sides) -> FolderSwitch | None:
    """How a library that changed is switched with all that changed along with it.

    The folder of one comes first in ``LD_LIBRARY_PATH``. That comes before the folders in which the
    loader looks by itself, such as the C library's, which have far more than what changed: where
    one side has such a folder, that of the other side is taken out instead.

    :param changed: all libraries that changed, by the names of their facts.
    :param system: the C library.
    :returns: None of a library that another of the group stands for, or that only one side has
        since another one changed.
    :raises AssayError: if there is no way.
    """
    before, after = changed[name]
    whole = {key: both for key, both in changed.items() if None not in both}
    if not before or not after:
        near = {_short(one.folder) for both in (*whole.values(), system) for one in both if one}
        if whole and any(one and _short(one.folder) in near for one in (before, after)):
            return None
        raise AssayError('it is not loaded on both sides, once and on all nodes alike')
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
    words = ', '.join(one.removeprefix(OF_LIBRARIES) for one in others)
    if _short(before.folder) == _short(after.folder):
        along = f', as those of {words}' if words else ''
        raise AssayError(f'both were in one folder, which has one of them at most{along}')
    sides = before, after
    for one in sides:
        if not one.path.exists():
            raise AssayError(f'{one.path} is not on this machine')
        if ',' in str(one.folder):
            raise AssayError('ReFrame takes no folder with a comma')
    by_default = [_is_by_default(*both) for both in zip(sides, system, strict=True)]
    if all(by_default):
        raise AssayError('the loader looks in both folders by itself')
    lines = [
        _without(other.folder) if is_default else _before_others(one.folder)
        for one, other, is_default in zip(sides, reversed(sides), by_default, strict=True)
    ]
    name = f'{first} with {words}' if words else first
    return FolderSwitch(name, sides, (lines[0], lines[1]), (first, *others))


def _before_others(folder: Path) -> str:
    return (
        f'export LD_LIBRARY_PATH={shlex.quote(str(folder))}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}'
    )


def _without(folder: Path) -> str:
    """Jobs tell the real folder; what a module wrote may be a link to it."""
    is_it = f'[ "$(readlink -m "$one")" = {shlex.quote(str(folder))} ]'
    rest = f'while IFS= read -r one; do {is_it} || echo "$one"; done'
    return f'export LD_LIBRARY_PATH=$(tr : \'\\n\' <<< "$LD_LIBRARY_PATH" | {rest} | paste -sd:)'


def _short(folder: Path) -> str:
    """Without the ``/usr`` of what is the same to the loader, be it merged or not."""
    return re.sub('^/usr(?=/lib)', '', str(folder))


def _is_by_default(one: LoadedFile, system: LoadedFile | None) -> bool:
    """Whether the loader looks in the folder of a library by itself.

    :param system: the C library.
    :raises AssayError: if that is not known.
    """
    folder = _short(one.folder)
    if folder in ('/lib', '/lib64'):
        return True
    if not system and folder.startswith('/lib'):
        raise AssayError('it may be in the folder of the C library, which is not known')
    return system is not None and folder == _short(system.folder)


def library_loaded_instead(
    names: Iterable[str], wanted: str, facts: Mapping[str, str]
) -> str | None:
    """The libraries that a job loaded instead of the wanted ones; None if there are none.

    :param names: of the facts of the libraries.
    :param wanted: one side of :class:`FolderSwitch`, as text.
    """
    for name in names:
        told = facts.get(name, '-')
        found = read_library(told)
        if found and not wanted.endswith(f'({found.folder})'):
            return f'{found}, by LD_LIBRARY_PATH, an RPATH or a preload,'
        if not found and told not in ('-', 'not loaded'):  # of some nodes or ranks only
            return told
    return None
