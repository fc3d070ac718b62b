"""Data from YAML that somebody else wrote, with the line of each field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

#: Where something stands: keys of mappings and places in lists, from the top.
Place = tuple[str | int, ...]

#: A file of a person is smaller, and less nested.
MOST_CHARACTERS = 256 * 1024
DEEPEST = 12

_TEXT = 'tag:yaml.org,2002:str'


@dataclass
class YamlLines:
    """The content of a YAML file, with the line of each field.

    :param data: of mappings, lists, texts, numbers and truth values; None where it says nothing.
    :param lines: of fields, counted from 1.
    :param mistakes: what is none of that, or stands twice: place and sentence.
    """

    data: Any = None
    lines: dict[Place, int] = field(default_factory=dict)
    mistakes: list[tuple[Place, str]] = field(default_factory=list)

    def line(self, place: Place) -> int:
        """The line of a field; of one that is not there, that of what it would stand in."""
        while place not in self.lines and place:
            place = place[:-1]
        return self.lines.get(place, 1)


def read_yaml_lines(text: str) -> YamlLines:
    """Read a text of YAML, in which each thing is written once: no aliases, no tags.

    :raises ValueError: if it is no YAML, or larger or deeper than a person writes; with the line.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f'line 1: it has more than {MOST_CHARACTERS} characters')
    try:
        _assert_modest(text)
        node = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ValueError(f'line {mark.line + 1}: not valid YAML: {error.problem}') from None
    except yaml.YAMLError as error:
        raise ValueError(f'line 1: not valid YAML: {str(error).splitlines()[0]}') from None
    found = YamlLines()
    if node is not None:
        found.data = _data(node, (), found)
    return found


def _assert_modest(text: str) -> None:
    """:raises ValueError: if the text is deep, or has what would be written out many times."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f'line {line}: an alias (*{event.anchor}): write it out instead')
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise ValueError(f'line {line}: more than {DEEPEST} levels deep')


def _data(node: yaml.Node, place: Place, found: YamlLines) -> Any:
    found.lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return dict(_entries(node, place, found))
    if isinstance(node, yaml.SequenceNode):
        return [_data(one, (*place, number), found) for number, one in enumerate(node.value)]
    return _scalar(node, place, found)


def _entries(node: yaml.MappingNode, place: Place, found: YamlLines) -> Iterator[tuple[str, Any]]:
    seen: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        if name is None or key.tag != _TEXT:
            found.mistakes.append((place, f'line {line}: a key that is no text: quote it'))
            continue
        if name in seen:
            told = f'line {line}: stands twice, also in line {seen[name]}: remove one of them'
            found.mistakes.append(((*place, name), told))
            continue
        seen[name] = line
        here = (*place, name)
        found.lines[here] = line
        yield name, _data(value, here, found)


def _scalar(node: yaml.Node, place: Place, found: YamlLines) -> Any:
    """A text, a number, a truth value or nothing; anything else is a mistake, and nothing."""
    try:
        # Not one for the whole document: each mistake is to be told.
        value = yaml.SafeLoader('').construct_object(node)
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str) and json.dumps(value, ensure_ascii=False).encode():
            return value
    except (yaml.YAMLError, ValueError, OverflowError):
        pass
    told = 'is neither a text nor a number: put a text into quotes'
    found.mistakes.append((place, f'line {node.start_mark.line + 1}: {node.value!r} {told}'))
    return None
