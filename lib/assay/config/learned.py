"""The references that were learned from runs of a system: a file that is written as a whole.

It has the form of the other files of references. Beside its reference each figure has the facts
that it was learned from::

    latency: {reference: [5.2, null, 0.12, us], n: '24', days: 2026-10-01..2026-11-20, ...}

The file that people write for the system comes first, and is never changed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from assay import paths
from assay.config.lint import lint
from assay.config.reference_files import (
    ANY,
    GENERIC,
    LEARNED,
    REFERENCE,
    ReferencesError,
    faults,
    parse_entries,
    parse_references,
    references_for,
)
from assay.files import explain_errors, write_whole

_HEAD = (
    '# Written by `assay baseline`. Write your own references into ../{name}, which comes first.'
)

#: A class, the values of its index in their order, a figure.
Place = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Learned:
    """A reference that is to stand in a file.

    :param name: of the figure, for people.
    :param check: class of the check.
    :param values: what its variant has for the keys of an index, in their order.
    :param better: the direction in which the figure gets better.
    :param given: value, lower bound, upper bound, unit.
    :param source: what it was learned from; of its words none is empty.
    """

    name: str
    check: str
    values: Mapping[str, str]
    figure: str
    better: str
    given: tuple[float, float | None, float | None, str]
    source: Mapping[str, str]

    @property
    def words(self) -> str:
        """Value, bounds and unit as in the file."""
        return _flow([*self.given])


@dataclass(frozen=True, eq=False)
class Written:
    """A new text of a file, and what is in it.

    :param added: what is new in it, or replaces what was learned before.
    :param renewed: of the added the latter, each with what it replaces: value, lower bound, upper
        bound, unit.
    :param kept: what is not, because the figure has a reference that somebody wrote by hand.
    :param refused: why there is no place for some, in words.
    """

    text: str
    added: list[Learned] = field(default_factory=list)
    renewed: list[tuple[Learned, list[Any]]] = field(default_factory=list)
    kept: list[Learned] = field(default_factory=list)
    refused: list[tuple[Learned, str]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class LearnedFile:
    """The references in a file that `assay baseline` wrote.

    :param entries: by class, in ReFrame's form.
    :param sources: what each reference was learned from.
    """

    entries: dict[str, Any] = field(default_factory=dict)
    sources: dict[Place, dict[str, str]] = field(default_factory=dict)

    def place(self, check: str, values: Mapping[str, str], figure: str) -> Place:
        """The place of a figure's reference in the file, also if there is none yet."""
        index = self.entries[check]['$index'] if check in self.entries else values
        return check, *(values.get(key, '') for key in index), figure


def read_text(path: Path) -> str:
    """The text of a file; empty if there is none.

    :raises ReferencesError: if it cannot be read.
    """
    try:
        with explain_errors(path, 'read', ReferencesError), suppress(FileNotFoundError):
            return path.read_text(encoding='utf-8')
    except ValueError as error:
        raise ReferencesError(f'{path}: not valid YAML: {error}') from None
    return ''


def faultless(text: str, path: Path) -> dict[str, Any]:
    """Parse the text of a file of references: its entries by check class.

    :raises ReferencesError: if there are faults in it.
    """
    entries = parse_references(text, path)
    for name, entry in entries.items():
        if wrong := list(faults(entry, path.stem == GENERIC)):
            raise ReferencesError(f'{path}: {"; ".join(name + fault for fault in wrong)}')
    return entries


def parse_learned(text: str, path: Path) -> LearnedFile:
    """The learned references in the text of a file.

    :raises ReferencesError: if there are faults in it.
    """
    entries = faultless(text, path)
    sources: dict[Place, dict[str, str]] = {}

    def look(level: Any, place: Place) -> None:
        for key, value in level.items():
            here = (*place, key)
            if isinstance(value, dict) and REFERENCE in value:
                words = {name: str(word) for name, word in value.items() if name != REFERENCE}
                sources[here] = words
            elif isinstance(value, dict):
                look(value, here)

    look(parse_entries(text, path), ())
    return LearnedFile(entries, sources)


def assert_right(text: str, path: Path) -> None:
    """:raises ReferencesError: if a run would refuse the text in this file."""
    with TemporaryDirectory() as folder:
        draft = Path(folder, LEARNED, path.name)
        draft.parent.mkdir()
        draft.write_text(text, encoding='utf-8')
        if problems := lint(paths.CHECKS, Path(folder)):
            told = '; '.join(problems).replace(str(draft), str(path))
            raise ReferencesError(f'nothing was written: {told}')


def replace_text(path: Path, old: str, text: str) -> None:
    """Put a text in the place of what a file has, whole or not at all.

    :param old: what the text was made from.
    :raises ReferencesError: if that cannot be done, or somebody else has changed it meanwhile.
    """
    if read_text(path) != old:
        raise ReferencesError(
            f'{path}: somebody else has changed it meanwhile, so nothing was written: try again'
        )
    with explain_errors(path, 'written', ReferencesError):
        path.parent.mkdir(exist_ok=True)
        write_whole(path, text)


def rewrite(
    before: LearnedFile, path: Path, learned: Iterable[Learned], by_hand: Mapping[str, Any]
) -> Written:
    """The text of a file with new references and those learned before.

    :param path: of the file.
    :param by_hand: what people wrote of the same system, by class.
    """
    now = copy.deepcopy(before)
    result = Written('')
    for one in learned:
        entry = now.entries.setdefault(one.check, {'$index': [*one.values]})
        if entry['$index'] != [*one.values]:
            reason = (
                f'its index is {", ".join(one.values)}, and {path} has {one.check} by '
                f'{", ".join(entry["$index"])}: remove {one.check} there, and learn all of it anew'
            )
            result.refused.append((one, reason))
            continue
        if _is_held(by_hand, one):
            result.kept.append(one)
            continue
        level = entry
        for value in one.values.values():
            level = level.setdefault(value, {})
        if one.figure in level:
            result.renewed.append((one, level[one.figure]))
        level[one.figure] = [*one.given]
        now.sources[now.place(one.check, one.values, one.figure)] = dict(one.source)
        result.added.append(one)
    text = ''.join(f'{line}\n' for line in _lines(now, path.name))
    return Written(text, result.added, result.renewed, result.kept, result.refused)


def _is_held(entries: Mapping[str, Any], one: Learned) -> bool:
    """Whether entries have a reference for a figure, under its class or for all classes."""
    own = [entries[name] for name in (one.check, ANY) if name in entries]
    return any(one.figure in references_for(entry, one.values) for entry in own)


def _lines(found: LearnedFile, name: str) -> Iterator[str]:
    yield _HEAD.format(name=name)
    for check, entry in sorted(found.entries.items()):
        levels = {key: value for key, value in entry.items() if key != '$index'}
        if levels:
            yield from ('', f'{scalar(check)}:', f'  $index: {_flow(entry["$index"])}')
            yield from _lines_of_level(levels, (check,), found.sources)


def _lines_of_level(
    level: Mapping[str, Any], place: Place, sources: Mapping[Place, Mapping[str, str]]
) -> Iterator[str]:
    for key, value in sorted(level.items()):
        here, start = (*place, key), f'{"  " * len(place)}{scalar(key)}:'
        if isinstance(value, dict):
            yield start
            yield from _lines_of_level(value, here, sources)
        else:
            yield f'{start} {_flow({REFERENCE: value, **sources.get(here, {})})}'


def scalar(value: object) -> str:
    """A word or number as YAML; in quotes only where it needs them."""
    text: str = yaml.safe_dump(value, width=10**6, allow_unicode=True)
    return text.removesuffix('\n').removesuffix('\n...')


def _flow(value: object) -> str:
    """A list or a mapping as YAML in one line."""
    text: str = yaml.safe_dump(
        value, width=10**6, allow_unicode=True, default_flow_style=True, sort_keys=False
    )
    return text.removesuffix('\n')
