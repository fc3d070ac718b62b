"""Puts learned references into a file of references, without changing anything else in it.

A learned reference is one line that ends in a comment, which says what it was learned from::

    latency: [5.2, null, 0.12, us]  # baseline: n=24 days=2026-10-01..2026-11-20 spread=1.4% ...

The comment is the one place where that stands: what is ours, and how old it is, is read from it. So
it cannot get out of step with its value when a line is moved, merged or deleted, the file stays in
the form that ReFrame reads, and who deletes the comment has taken the line over. Lines are put into
the text where YAML's parser says that they belong, and every other byte stays as it is.
"""

from __future__ import annotations

import copy
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from assay import paths
from assay.config.lint import lint
from assay.config.reference_files import GENERIC, Loader, ReferencesError, faults, is_for, parse
from assay.files import write_whole

_MARK = re.compile(r'[ \t]*# baseline: (.*)')
#: The words that each such comment has.
_ALWAYS = {'n', 'days', 'spread'}
_STEP = '  '

#: A class, the keys of its index in their order, a figure.
Place = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Learned:
    """A reference that is to stand in a file.

    :param name: of the figure, for people.
    :param check: class of the check.
    :param values: what its variant has for the keys of an index, in the order in which a new index
        has them.
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
    def line(self) -> str:
        comment = ' '.join(f'{name}={shlex.quote(word)}' for name, word in self.source.items())
        return f'{scalar(self.figure)}: {self.words}  # baseline: {comment}'

    @property
    def words(self) -> str:
        """Value, bounds and unit as in the file."""
        return f'[{", ".join(map(scalar, self.given))}]'


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


def scalar(value: object) -> str:
    """A word or number as YAML; in quotes only where it needs them."""
    text: str = yaml.safe_dump(value, width=10**6, allow_unicode=True)
    return text.removesuffix('\n').removesuffix('\n...')


@dataclass(frozen=True, eq=False)
class Known:
    """What is learned in a file.

    :param sources: what each learned reference was learned from.
    :param indices: the index of each class.
    """

    sources: dict[Place, dict[str, str]]
    indices: dict[str, list[str]]

    def place(self, check: str, values: Mapping[str, str], figure: str) -> Place:
        """Where the reference of a figure stands, or would."""
        return check, *(values.get(key, '') for key in self.indices.get(check, values)), figure


def read_text(path: Path) -> str:
    """The text of a file, with its line ends; empty if there is none.

    :raises ReferencesError: if it cannot be read.
    """
    try:
        return path.read_bytes().decode('utf-8')
    except FileNotFoundError:
        return ''
    except OSError as error:
        raise ReferencesError(f'{path}: cannot be read: {error.strerror}') from None
    except ValueError as error:
        raise ReferencesError(f'{path}: not valid YAML: {error}') from None


def known(text: str, path: Path) -> Known:
    """What is learned in the text of a file.

    :raises ReferencesError: if there are faults in it.
    """
    entries = _faultless(text, path)
    sources: dict[Place, dict[str, str]] = {}

    def look(node: yaml.Node, place: Place) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if not _is_alias(key, value):
                    look(value, (*place, key.value))
        elif (source := _source(text, node)) is not None:
            sources[place] = source

    root = _composed(text)
    if root is not None:
        look(root, ())
    return Known(sources, {name: entry['$index'] for name, entry in entries.items()})


def assert_right(text: str, path: Path) -> None:
    """:raises ReferencesError: if a run would refuse the text in this file."""
    with TemporaryDirectory() as folder:
        draft = Path(folder, path.name)
        draft.write_text(text, encoding='utf-8', newline='')
        if problems := lint(paths.CHECKS, draft.parent):
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
    try:
        write_whole(path, text)
    except OSError as error:
        raise ReferencesError(f'{path}: cannot be written: {error.strerror}') from None


def written(
    text: str,
    path: Path,
    learned: Iterable[Learned],
    variants: Mapping[str, Sequence[Mapping[str, str]]],
) -> Written:
    """A text of references with what was learned in it.

    :param text: of the file at ``path``; empty for a new one.
    :param variants: the values of all variants of each check that were measured, which the index
        of the check has to tell apart.
    :raises ReferencesError: if there are faults in it, or nothing can be put into it.
    """
    old = _faultless(text, path)
    writer = _Writer(text, old)
    coarse = {
        name: reason
        for name, entry in old.items()
        if (reason := _is_coarse(name, entry['$index'], variants.get(name, ())))
    }
    result = Written('')
    for one in learned:
        if one.check in coarse:
            result.refused.append((one, coarse[one.check]))
            continue
        try:
            (result.added if writer.put(one) else result.kept).append(one)
        except ReferencesError as reason:
            result.refused.append((one, str(reason)))
    new = writer.text()
    try:
        is_right = (yaml.load(new, Loader) or {}) == writer.expected
    except yaml.YAMLError:
        is_right = False
    if not is_right:
        raise ReferencesError(
            f'{path}: it is laid out in a way into which nothing can be put: write each key on a '
            'line of its own, without anchors in what `assay baseline` wrote'
        )
    return replace(result, text=new, renewed=writer.renewed)


def _is_coarse(
    check: str, index: Sequence[str], variants: Sequence[Mapping[str, str]]
) -> str | None:
    """Why an index does not hold variants apart, as a sentence; None if it does."""
    seen: dict[tuple[str | None, ...], Mapping[str, str]] = {}
    for one in variants:
        other = seen.setdefault(tuple(one.get(key) for key in index), one)
        if differs := [name for name in one if one[name] != other.get(name)]:
            return (
                f'the $index of {check} is [{", ".join(index)}], which holds '
                f'{other.get(differs[0])} and {one[differs[0]]} to the same: '
                f'write it with {", ".join(differs)} as well, or remove the entry'
            )
    return None


class _Writer:
    """Collects the edits of a text."""

    def __init__(self, text: str, entries: dict[str, Any]) -> None:
        self._text = text
        self._root = _composed(text)
        self._shared = _shared(self._root)
        self._old = entries
        self.expected = copy.deepcopy(entries)
        self.renewed: list[tuple[Learned, list[Any]]] = []
        self._replaced: dict[tuple[int, int], str] = {}
        # What is put behind the end of a mapping: by its node, a tree of keys and lines.
        self._behind: dict[int, tuple[yaml.MappingNode | None, dict[str, Any]]] = {}

    def put(self, one: Learned) -> bool:
        """Whether there is a place for it, which nobody else filled.

        :raises ReferencesError: if there is none, and why.
        """
        index = [*one.values]
        if one.check in self.expected:
            index = self.expected[one.check]['$index']
        if missing := [key for key in index if key not in one.values]:
            raise ReferencesError(
                f'the $index of {one.check} has {missing[0]}, which no stored run tells: '
                'write this one by hand'
            )
        keys = [one.check, *(one.values[key] for key in index)]
        node: yaml.MappingNode | None = self._root
        data: Any = self._old
        for depth, key in enumerate(keys):
            found = self._below(node, key, '.'.join(keys[:depth])) if node else None
            if found is None:
                self._put_behind(node, keys[depth:], one, index)
                return True
            node, data = found, data[key]
        for key_node, value in node.value if node else ():
            if key_node.value == one.figure:
                is_ours = self._replace(key_node, value, keys, one)
                if is_ours:
                    self.renewed.append((one, data[one.figure]))
                return is_ours
        if one.figure in data:  # merged from others
            return False
        self._put_behind(node, [], one, index)
        return True

    def _below(self, node: yaml.MappingNode, key: str, place: str) -> yaml.MappingNode | None:
        """What a mapping has for a key; None if it has nothing."""
        where = place or 'the file'
        if any(one.tag == 'tag:yaml.org,2002:merge' for one, _ in node.value):
            raise ReferencesError(f'{where} is merged from others (<<): write its keys there')
        for other, _ in node.value:
            if other.tag != 'tag:yaml.org,2002:str':
                raise ReferencesError(
                    f'{where} has the key {other.value}, which is no text: write this one by hand'
                )
        rules = [one.value for one, _ in node.value]
        if key not in rules:
            # A key that is put beside a rule would hide what the rule has for it.
            for rule in rules if place else ():
                if is_for(rule, key):
                    raise ReferencesError(
                        f'{where} has the rule {rule!r} for {key}, written by hand for others '
                        f'too: write one for {key} alone, or remove it'
                    )
            return None
        value = dict(zip(rules, (value for _, value in node.value), strict=True))[key]
        if id(value) in self._shared:
            raise ReferencesError(
                f'{f"{place}.{key}".lstrip(".")} is shared with other keys by an anchor: write '
                'it out'
            )
        if not isinstance(value, yaml.MappingNode) or value.flow_style:
            raise ReferencesError(f'{where}.{key} is written in braces: write its keys on lines')
        return value

    def _replace(self, key: yaml.Node, value: yaml.Node, keys: list[str], one: Learned) -> bool:
        if _is_alias(key, value) or id(value) in self._shared or _source(self._text, value) is None:
            return False
        end = _end_of_line(self._text, value.end_mark.index)
        if re.search(r'[\r\n]', self._text[key.start_mark.index : end]):
            # A comment of others may stand between them.
            raise ReferencesError(
                f'{".".join(keys)}.{one.figure} is written over several lines: write it on one'
            )
        self._replaced[key.start_mark.index, end] = one.line
        self._expect(keys, one, [])
        return True

    def _put_behind(
        self, node: yaml.MappingNode | None, keys: list[str], one: Learned, index: list[str]
    ) -> None:
        _, tree = self._behind.setdefault(id(node), (node, {}))
        full = [one.check, *(one.values[key] for key in index)]
        if len(keys) == len(full):  # a class of its own
            tree = tree.setdefault(one.check, {'$index': index})
            keys = keys[1:]
        for key in keys:
            tree = tree.setdefault(key, {})
        tree[one.figure] = one
        self._expect(full, one, index)

    def _expect(self, keys: list[str], one: Learned, index: list[str]) -> None:
        level = self.expected
        for key in keys:
            fresh = {'$index': index} if level is self.expected else {}
            level = level.setdefault(key, fresh)
        level[one.figure] = list(one.given)

    def text(self) -> str:
        newline = '\r\n' if '\r\n' in self._text else '\n'
        edits = [(start, end, 0, line) for (start, end), line in self._replaced.items()]
        for node, tree in self._behind.values():
            column = node.start_mark.column if node else 0
            lines = newline.join(_lines(tree, ' ' * column))
            at = _end(self._text, node) if node else len(self._text.rstrip())
            edits.append((at, at, column, f'{newline}{lines}'))
        text = self._text
        # From the end, so that places stay; what is deeper is nearer to what it belongs to.
        for start, end, _, new in sorted(edits, key=lambda edit: (edit[0], -edit[2]))[::-1]:
            text = text[:start] + new + text[end:]
        if not self._text.strip():
            text = text.lstrip()
        return text if text.endswith('\n') else f'{text}{newline}'


def _lines(tree: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in tree.items():
        if isinstance(value, Learned):
            yield indent + value.line
        elif key == '$index':
            yield f'{indent}$index: [{", ".join(map(scalar, value))}]'
        else:
            if isinstance(value, dict) and '$index' in value:
                yield ''
            yield f'{indent}{scalar(key)}:'
            yield from _lines(value, indent + _STEP)


def _faultless(text: str, path: Path) -> dict[str, Any]:
    entries = parse(text, path)
    for name, entry in entries.items():
        if wrong := list(faults(entry, path.stem == GENERIC)):
            raise ReferencesError(f'{path}: {"; ".join(name + fault for fault in wrong)}')
    return entries


def _is_alias(key: yaml.Node, value: yaml.Node) -> bool:
    """Whether the value of a key stands elsewhere, before it."""
    return bool(value.start_mark.index < key.start_mark.index)


def _composed(text: str) -> yaml.MappingNode | None:
    """The nodes of a text that is valid YAML; None if nothing is in it."""
    root = yaml.compose(text, Loader)
    return root if isinstance(root, yaml.MappingNode) else None


def _shared(root: yaml.Node | None) -> set[int]:
    """The nodes that stand in several places."""
    seen: set[int] = set()
    shared: set[int] = set()

    def look(node: yaml.Node) -> None:
        if id(node) in seen:
            shared.add(id(node))
            return
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for _, value in node.value:
                look(value)

    if root is not None:
        look(root)
    return shared


def _source(text: str, node: yaml.Node) -> dict[str, str] | None:
    """What the comment behind a reference says that it was learned from; None if it is not ours."""
    if not isinstance(node, yaml.SequenceNode) or len(node.value) != 4:
        return None
    end = node.end_mark.index
    match = _MARK.fullmatch(text[end : _end_of_line(text, end)])
    if not match:
        return None
    try:
        words = shlex.split(match[1])
    except ValueError:  # somebody wrote into it: it is theirs
        return None
    if not all('=' in word for word in words):
        return None
    source = {name: word for name, _, word in (one.partition('=') for one in words)}
    return source if source.keys() >= _ALWAYS else None


def _end(text: str, node: yaml.Node) -> int:
    """The end of the last line of a mapping, where no comment that follows it is left behind."""
    last = node
    while isinstance(last, yaml.MappingNode) and not last.flow_style:
        key, value = last.value[-1]
        last = key if _is_alias(key, value) else value
    return _end_of_line(text, last.end_mark.index)


def _end_of_line(text: str, index: int) -> int:
    match = re.compile(r'[^\r\n]*').match(text, index)
    return match.end() if match else len(text)
