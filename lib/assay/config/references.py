"""What figures are held to: ReFrame's files of references, laid over each other."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import reframe.core.runtime as rt
import yaml
from reframe.core.builtins import xfail
from reframe.core.pipeline import RegressionTest, RegressionTestDict

from assay.config.fabrics import load_catalogue
from assay.config.scales import SCALES
from assay.programs.figure import Figure

#: The file for machines that nobody has measured.
GENERIC = 'generic'

_SPECIAL = re.compile(r'\$(system|partition|environ|processor\.\w+|dev\.\w+\.\w+)')


class ReferencesError(Exception):
    """Something is wrong in a file of references; the message says what and where."""


@dataclass(frozen=True)
class Reference:
    """What a figure is held to.

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

    @property
    def is_release(self) -> bool:
        """Whether it says that the figure is held to nothing."""
        return self.lower is None and self.upper is None

    def fault(self, name: str, figure: Figure) -> str | None:
        """Why it would pass a figure that is wrong, as a sentence; None if it would not."""
        if self.unit != figure.unit:
            return (
                f'the reference {self.value} of {name} is in {self.unit!r}, the figure in '
                f'{figure.unit!r}'
            )
        # No figure is negative: a lower bound of nothing excludes none.
        below = self.lower is not None and self.value * (1 + self.lower) > 0
        above = self.upper is not None
        exact = above and (below or self.value == 0)
        can_fail = {'higher': below, 'lower': above, 'exact': exact}
        if self.is_release or can_fail[figure.better]:
            return None
        side = 'both sides' if figure.better == 'exact' else 'the other side'
        return (
            f'the reference {self.value} of {name} cannot fail: {figure.better} is better, and '
            f'there is no bound on {side}'
        )

    def as_reframe(self) -> Any:
        """As ReFrame takes it."""
        reference = (self.value, self.lower, self.upper, self.unit)
        return reference if self.excuse is None else xfail(self.excuse, reference)


class Layer(NamedTuple):
    """What one file says of a check."""

    path: Path
    entry: RegressionTestDict


def file_of(name: str) -> Path:
    """The file of a system, or of an architecture as archspec names it."""
    return Path(rt.runtime().get_option('general/0/reference_prefix'), f'{name}.yaml')


def layers(check: RegressionTest) -> list[Layer]:
    """What the files say of a check: of its system, of the partition's processor, and of any.

    :param check: after its setup.
    :raises ReferencesError: if a file cannot be read, or what it says of the check is not right.
    """
    own = (check.current_system.name, check.current_partition.processor.arch)
    names = [name for name in dict.fromkeys(own) if name and name != GENERIC]
    found = []
    for path in map(file_of, [*names, GENERIC]):
        name, entries = type(check).__name__, read(path)
        if name not in entries:
            continue
        wrong = list(faults(entries[name], path.stem == GENERIC))
        wrong = wrong or list(_unknown_to(check, entries[name], path.stem == own[0]))
        if wrong:
            raise ReferencesError(f'{path}: {"; ".join(name + fault for fault in wrong)}')
        found.append(Layer(path, RegressionTestDict(entries[name])))
    return found


def merge(check: RegressionTest, layers: Iterable[Layer]) -> dict[str, Reference]:
    """The reference of each figure: that of the first layer that has one for this variant."""
    held: dict[str, Reference] = {}
    for path, entry in layers:
        try:
            found = entry[check]
        except KeyError:  # nothing for this variant
            continue
        for name, given in found.items():
            held.setdefault(name, _reference(given, path))
    return held


def misheld(
    check: RegressionTest, held: Mapping[str, Reference], figures: Mapping[str, Figure]
) -> Iterator[str]:
    """Sentences: what would let a wrong figure of a job pass.

    :param held: the references of the job, by the names of its figures.
    """
    where, own = f'{type(check).__name__} over {check.fabric}', file_of(check.current_system.name)
    has_limit = any(name.endswith('_limit') for name in figures)
    for name, reference in held.items():
        if name in figures:
            if fault := reference.fault(name, figures[name]):
                yield f'{reference.path}: {where}: {fault}'
        # What has no limit, such as a network, cannot be a fraction of it.
        elif name not in check.may_lack and (has_limit or not name.endswith('_limit')):
            fault = unknown(name, 'figure of this job', figures)
            yield f'{reference.path}: {where}: {name}: {fault}'
    for name, figure in figures.items():
        if figure.must_be_held and name not in held:
            yield f'{where}: {name} is held to nothing: give it a reference in {own}'
    if not figures:
        yield f'{where}: nothing was measured'
        return
    is_held = any(name in figures and not one.is_release for name, one in held.items())
    # References for any machine are those of our sources: others have none to start with.
    if not is_held and getattr(check, 'implementation', 'assay') == 'assay':
        yield f'{where}: no figure is held to anything: give one a reference in {own}'


def _reference(given: list[Any], path: Path) -> Reference:
    excuse = None
    if given[0] == '$xfail':
        _, excuse, given = given
    value, lower, upper, unit = given
    return Reference(value, lower, upper, str(unit), excuse, path)


def _unknown_to(check: RegressionTest, entry: dict[str, Any], is_own: bool) -> Iterator[str]:
    """What an entry names and the check has not, as in :func:`faults`."""
    processor = check.current_partition.processor
    for key in entry['$index']:
        kind, _, attribute = key.partition('.')
        if key[0] != '$' and not has_value(check, key):
            yield f'.$index: the check has no {key!r}'
        elif kind == '$processor' and not hasattr(processor, attribute):
            yield f'.$index: a processor has no {attribute!r}'
    # Of this system only some fabrics and scales are parameters, of this run (-P) maybe fewer.
    values = {'fabric': {*load_catalogue().fabrics}, 'scale': {*SCALES}}
    for cls in type(check).__mro__:
        for name, one in getattr(getattr(cls, 'param_space', None), 'params', {}).items():
            values.setdefault(name, set()).update(one.values)
    if is_own:
        values['$partition'] = {one.fullname for one in check.current_system.partitions}
    yield from unused(entry, values)


def has_value(check: RegressionTest | type[RegressionTest], name: str) -> bool:
    """Whether the check has what an index may be by: anything but a method."""
    return hasattr(check, name) and not callable(getattr(check, name))


# Files ----------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice, of which YAML keeps the last."""

    def compose_mapping_node(self, anchor):
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if (key.tag, str(key.value)) in seen:
                raise yaml.MarkedYAMLError(
                    problem=f'the key {key.value!r} stands twice', problem_mark=key.start_mark
                )
            seen.add((key.tag, str(key.value)))
        return node


def read(path: Path) -> dict[str, Any]:
    """What a file says of each check class; nothing if there is no such file.

    :raises ReferencesError: if it cannot be read, or is not a mapping.
    """
    try:
        return _read(path, path.stat().st_mtime_ns)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ReferencesError(f'{path}: cannot be read: {error.strerror}') from None


@lru_cache
def _read(path: Path, changed: int) -> dict[str, Any]:
    try:
        entries = yaml.load(path.read_text(encoding='utf-8'), _Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1
        raise ReferencesError(f'{path}: not valid YAML: line {line}: {error.problem}') from None
    except (yaml.YAMLError, ValueError) as error:
        raise ReferencesError(f'{path}: not valid YAML: {str(error).splitlines()[0]}') from None
    if not isinstance(entries, dict | None):
        raise ReferencesError(f'{path}: there are no entries by check class')
    return entries or {}


def faults(entry: Any, is_generic: bool) -> Iterator[str]:
    """What is wrong in a file's entry for a check, whatever its figures; each with its place.

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
            yield f'.$index: {key!r} is nothing that a check has'
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
    if upper is None and lower is not None and value * (1 + lower) <= 0:
        yield 'cannot fail: no figure is below the lower bound'
    elif value and lower is not None and lower < -1:
        yield 'has a lower bound below 0, as no figure is'
    if (is_announced or is_generic) and upper is None and lower is None:
        yield 'cannot fail: it has no bounds'
    # YAML reads 1 as a number.
    if not isinstance(unit, str) and unit != 1:
        yield f'has {unit!r} in the place of a unit'


def unused(entry: Mapping[str, Any], values: Mapping[str, Iterable[Any]]) -> Iterator[str]:
    """The rules of a faultless entry that are for no value; each with its place.

    :param values: what the keys of its index can be, where that is known.
    """
    rules = {key: value for key, value in entry.items() if key != '$index'}
    yield from _unused_of_level(rules, entry['$index'], values)


def _unused_of_level(
    level: dict[Any, Any], index: list[str], values: Mapping[str, Iterable[Any]], place: str = ''
) -> Iterator[str]:
    for key, value in level.items() if index else ():
        known = values.get(index[0])
        own = [one for one in known or () if _is_for(key, one)]
        if known and not own:
            yield f'{place}.{key}: {unknown(key, index[0], known)}'
        # Nothing is left to a last '.*' where each value has a rule of its own.
        found = {_rule_for(one, level) for one in own if one not in level}
        if found and key not in found | {*own}:
            yield f'{place}.{key}: is never looked up: {min(found)} stands before it'
        yield from _unused_of_level(value, index[1:], values, f'{place}.{key}')


def _rule_for(value: Any, level: Iterable[Any]) -> Any:
    return next(key for key in level if _is_for(key, value))


def _is_for(key: Any, value: Any) -> bool:
    """Whether ReFrame looks up the value under this key, if under no earlier one."""
    if isinstance(key, str) and isinstance(value, str):
        return bool(re.match(f'^{key}$', value))
    return key == value


def unknown(name: Any, what: str, known: Iterable[Any]) -> str:
    """That something is not known, and what may have been meant."""
    known = sorted(map(str, known))
    close = difflib.get_close_matches(str(name), known, n=1)
    hint = f'did you mean {close[0]}?' if close else f'there are {", ".join(known)}'
    return f'no {what} has this name; {hint}'
