"""References, values with bounds; their files in ReFrame's form, and what is wrong in those."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from assay import AssayError
from assay.config.yaml_file import parse_yaml
from assay.files import explain_errors
from assay.programs.figure import Figure
from assay.text import unknown_name


@dataclass(frozen=True)
class Reference:
    """The value and bounds that a figure is held to.

    :param lower: how far below the value the figure may be, as a fraction of the value (as it is
        where the value is 0); None if there is no bound.
    :param upper: the same above.
    :param excuse: why the figure is known to miss it, as the file announces; None if it is not.
    :param path: the file.
    """

    value: float
    lower: float | None
    upper: float | None
    unit: str
    excuse: str | None
    path: Path

    @classmethod
    def read(cls, given: list[Any], path: Path) -> Reference:
        """From a faultless one, as it stands in a file."""
        excuse = None
        if given[0] == '$xfail':
            _, excuse, given = given
        value, lower, upper, unit = given
        return cls(value, lower, upper, str(unit), excuse, path)

    @property
    def is_release(self) -> bool:
        """Whether it says that the figure is held to nothing."""
        return self.lower is None and self.upper is None

    @property
    def excludes_below(self) -> bool:
        """Whether a figure can be too low for it. None is negative: a bound of 0 excludes none."""
        return self.lower is not None and self.value * (1 + self.lower) > 0

    @property
    def excludes_above(self) -> bool:
        """Whether a figure can be too high for it."""
        return self.upper is not None

    def fault(self, name: str, figure: Figure) -> str | None:
        """Why it would pass a figure that is wrong, as a sentence; None if it would not."""
        if self.unit != figure.unit:
            return (
                f'the reference {self.value} of {name} is in {self.unit!r}, the figure in '
                f'{figure.unit!r}'
            )
        below, above = self.excludes_below, self.excludes_above
        exact = above and (below or self.value == 0)
        if self.is_release or {'higher': below, 'lower': above, 'exact': exact}[figure.better]:
            return None
        side = 'both sides' if figure.better == 'exact' else 'the other side'
        return (
            f'the reference {self.value} of {name} cannot fail: {figure.better} is better, and '
            f'there is no bound on {side}'
        )

    def as_reframe(self) -> Any:
        """As ReFrame takes it."""
        from reframe.core.builtins import xfail

        reference = (self.value, self.lower, self.upper, self.unit)
        return reference if self.excuse is None else xfail(self.excuse, reference)


#: The file for machines that nobody has measured.
GENERIC = 'generic'

#: Below the folder of references: what `assay baseline` learned, a file for each system.
LEARNED = 'learned'

#: In such a file: beside the reference of a figure stands what it was learned from.
REFERENCE = 'reference'

#: In place of a check class: what holds for all of them.
ANY = 'AnyCheck'

_SPECIAL = re.compile(r'\$(system|partition|environ|processor\.\w+|dev\.\w+\.\w+)')


class ReferencesError(AssayError):
    """Something is wrong in a file of references; the message says what and where."""


def read_reference_file(path: Path) -> dict[str, Any]:
    """Read the entries of a file by check class; none if there is no such file.

    :raises ReferencesError: if it cannot be read, or is not a mapping.
    """
    with explain_errors(path, 'read', ReferencesError), suppress(FileNotFoundError):
        now = path.stat()
        # On a file system with whole seconds the time alone does not tell two writings apart.
        return _read(path, (now.st_mtime_ns, now.st_size, now.st_ino))
    return {}


@lru_cache
def _read(path: Path, changed: tuple[int, int, int]) -> dict[str, Any]:
    return parse_references(path.read_bytes(), path)


def parse_references(text: str | bytes, path: Path) -> dict[str, Any]:
    """As :func:`read_reference_file`, of the text of a file."""
    return {name: _in_form_of_reframe(entry) for name, entry in parse_entries(text, path).items()}


def _in_form_of_reframe(entry: Any) -> Any:
    """An entry without what its references were learned from."""
    index = entry.get('$index') if isinstance(entry, dict) else None
    return _references(entry, len(index)) if isinstance(index, list) else entry


def _references(level: Any, depth: int) -> Any:
    """:param depth: how many levels are below this one, before that of the figures."""
    if not isinstance(level, dict):
        return level
    if depth < 0:
        return level.get(REFERENCE, level)
    return {
        key: value if key == '$index' else _references(value, depth - 1)
        for key, value in level.items()
    }


def parse_entries(text: str | bytes, path: Path) -> dict[str, Any]:
    """Parse the text of a file, without any check of its entries.

    :raises ReferencesError: if it is not a mapping.
    """
    entries = parse_yaml(text, path, ReferencesError)
    if not isinstance(entries, dict | None):
        raise ReferencesError(f'{path}: there are no entries by check class')
    return entries or {}


def faults(entry: Any, is_generic: bool) -> Iterator[str]:
    """Faults of a file's entry for a check, each with its place; whichever figures the check has.

    :param is_generic: the file is that for any machine: no figure is released in it.
    """
    index = entry.get('$index') if isinstance(entry, dict) else None
    if not isinstance(index, list) or not index or not all(isinstance(key, str) for key in index):
        yield (
            " has no '$index', the list of what its keys are values of, such as "
            "'$index: [fabric, scale]'"
        )
        return
    for key in index:
        if not (key.isidentifier() or _SPECIAL.fullmatch(key)):
            yield f'.$index: {key!r} cannot be a parameter of a check'
    rules = {key: value for key, value in entry.items() if key != '$index'}
    yield from _faults_of_level(rules, index, is_generic)


def _faults_of_level(
    level: Any, index: list[str], is_generic: bool, place: str = ''
) -> Iterator[str]:
    what = f'values of {index[0]}' if index else 'figures'
    if not isinstance(level, dict) or not level:
        yield f'{place}: there are no {what}'
        return
    for key, value in level.items():
        where = f'{place}.{key}'
        if index:
            if isinstance(key, str) and (fault := _faulty_expression(key)):
                yield f'{where}: not a regular expression: {fault}'
            yield from _faults_of_level(value, index[1:], is_generic, where)
        elif not isinstance(key, str):
            yield f'{where}: not the name of a figure'
        else:
            yield from (
                f'{where}: {value} {fault}' for fault in _faults_of_reference(value, is_generic)
            )


def _faulty_expression(text: str) -> str | None:
    try:
        re.compile(text)
    except re.error as error:
        return str(error)
    return None


def _faults_of_reference(given: Any, is_generic: bool) -> Iterator[str]:
    is_announced = isinstance(given, list) and given[:1] == ['$xfail']
    if is_announced:
        if len(given) != 3 or not isinstance(given[1], str) or not given[1]:
            yield "is no expected failure: it needs '$xfail', a reason and a reference"
            return
        given = given[2]
    if not isinstance(given, list) or len(given) != 4:
        yield 'is no reference: it needs a value, two bounds and a unit'
        return
    value, lower, upper, unit = given
    for number in (value, lower, upper):
        if number is None and number is not value:
            continue
        if isinstance(number, bool) or not isinstance(number, int | float):
            yield f'has {number!r} in the place of a number'
            return
        if not abs(number) <= sys.float_info.max:
            yield 'has a value or a bound that is not a finite number'
            return
    if value < 0:
        yield 'is below 0, as no figure is'
    if lower is not None and lower > 0:
        yield 'has a lower bound above its value'
    if upper is not None and upper < 0:
        yield 'has an upper bound below its value'
    reference = Reference(value, lower, upper, str(unit), excuse=None, path=Path())
    can_fail = reference.excludes_below or reference.excludes_above
    if not can_fail and (is_announced or is_generic or not reference.is_release):
        why = 'it has no bounds' if reference.is_release else 'no figure is below the lower bound'
        yield f'cannot fail: {why}'
    elif value and lower is not None and lower < -1:
        yield 'has a lower bound below 0, as no figure is'
    # YAML reads 1 as a number.
    if not isinstance(unit, str) and unit != 1:
        yield f'has {unit!r} in the place of a unit'


def references_for(entry: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, list[Any]]:
    """The references of a faultless entry for one variant, looked up as ReFrame does.

    :param values: what the variant has for the keys of an index.
    """
    level: Any = entry
    for key in entry['$index']:
        rules = [rule for rule in level if is_for(rule, values.get(key))]
        if not rules:
            return {}
        level = level[values[key] if values[key] in level else rules[0]]
    return dict(level)


def unused_parts(
    entry: Mapping[str, Any], check: object, values: Mapping[str, Iterable[Any]]
) -> Iterator[str]:
    """The parts of a faultless entry that fit nothing in a check, each with its place.

    :param check: the check or its class.
    :param values: what the keys of the entry's index can be, where that is known.
    """
    for key in entry['$index']:
        # A check has what an index may be by: anything but a method.
        if key[0] != '$' and (not hasattr(check, key) or callable(getattr(check, key))):
            yield f'.$index: {unknown_name(key, "parameter", values)}'
    rules = {key: value for key, value in entry.items() if key != '$index'}
    yield from _unused_of_level(rules, entry['$index'], values)


def _unused_of_level(
    level: dict[Any, Any], index: list[str], values: Mapping[str, Iterable[Any]], place: str = ''
) -> Iterator[str]:
    for key, value in level.items() if index else ():
        known = values.get(index[0])
        own = [one for one in known or () if is_for(key, one)]
        if known and not own:
            yield f'{place}.{key}: {unknown_name(key, index[0], known)}'
        # Nothing is left to a last '.*' where each value has a rule of its own.
        found = {
            next(rule for rule in level if is_for(rule, one)) for one in own if one not in level
        }
        if found and key not in found | {*own}:
            yield f'{place}.{key}: is never looked up: {min(found)} stands before it'
        yield from _unused_of_level(value, index[1:], values, f'{place}.{key}')


def is_for(key: Any, value: Any) -> bool:
    """Whether ReFrame looks up the value under this key, if under no earlier one."""
    if isinstance(key, str) and isinstance(value, str):
        return bool(re.match(f'^{key}$', value))
    return bool(key == value)
