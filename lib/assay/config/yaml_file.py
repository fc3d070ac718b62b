"""YAML that people write: a key that stands twice is an error. YAML itself keeps the last one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from assay import AssayError
from assay.files import explain_errors


# Without libyaml's headers PyYAML is built without it, where there is no wheel for the processor.
class _Loader(getattr(yaml, 'CSafeLoader', yaml.SafeLoader)):  # type: ignore[misc]
    """By libyaml, as each start of a run reads the fabrics and the references."""

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        _assert_each_key_once(node)
        return node


def _assert_each_key_once(root: yaml.Node | None) -> None:
    left = [root]
    done = set()
    while left:
        node = left.pop()
        if id(node) in done or not isinstance(node, yaml.CollectionNode):
            continue
        done.add(id(node))  # an alias leads to it once more
        if not isinstance(node, yaml.MappingNode):
            left += node.value
            continue
        seen = set()
        for key, value in node.value:
            if (key.tag, str(key.value)) in seen:
                raise yaml.MarkedYAMLError(
                    problem=f'the key {key.value!r} stands twice', problem_mark=key.start_mark
                )
            seen.add((key.tag, str(key.value)))
            left += key, value


def read_yaml(path: Path) -> Any:
    """Read and parse a YAML file.

    :raises AssayError: if it cannot be read, or is not YAML; the message names file and line.
    """
    with explain_errors(path, 'read'):
        return parse_yaml(path.read_bytes(), path)


def parse_yaml(text: str | bytes, path: Path, fault: type[AssayError] = AssayError) -> Any:
    """As :func:`read_yaml`, of the text of the file; raises ``fault``."""
    try:
        text = text if isinstance(text, str) else text.decode()
        try:
            return yaml.load(text, _Loader)
        except yaml.YAMLError:
            yaml.load(text, yaml.SafeLoader)  # which says in better words what is wrong
            raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f'line {mark.line + 1}: ' if mark else ''
        raise fault(f'{path}: not valid YAML: {where}{error.problem}') from None
    except (yaml.YAMLError, ValueError) as error:
        raise fault(f'{path}: not valid YAML: {str(error).splitlines()[0]}') from None


def line_of(text: str | bytes, place: Iterable[str | int]) -> int:
    """The line of a field, counted from 1; of one that is not there, that of what lacks it.

    :param text: valid YAML.
    :param place: keys of mappings and numbers in lists, from the top.
    """
    node = yaml.compose(text, _Loader)  # libyaml takes more than PyYAML, such as tabs
    line = 1
    for step in place:
        if isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == str(step)]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            found = [(one, one) for one in node.value[step : step + 1]]
        else:
            found = []
        if not found:
            break
        [(key, node)] = found
        line = key.start_mark.line + 1
    return line
