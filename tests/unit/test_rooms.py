"""The rooms of ``lib/assay``: imports go down and in no circle, and a public name stands once."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from assay import paths
from documents import ARCHITECTURE, rows

LIB = paths.ROOT / 'lib'

#: From top to bottom; those of one floor do not know each other.
FLOORS = [
    ('commands',),
    ('nights', 'acceptance', 'placing'),
    ('one_run',),
    ('checks', 'report', 'bundle'),
    ('comparing', 'screening', 'tuning', 'campaign', 'discovery'),
    ('results',),
    ('running', 'job'),
    ('layout', 'spack', 'vcluster'),
    ('config',),
    ('machine', 'witness'),
    ('programs', 'mpis', 'files', 'quantities', 'tools'),
    ('locks',),
    ('paths', ''),
    ('text',),
]
HEIGHT = {room: -floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def modules() -> dict[str, Path]:
    """The files of ``lib/assay`` by their names in imports."""
    names = {}
    for path in LIB.rglob('*.py'):
        parts = path.relative_to(LIB).with_suffix('').parts
        names['.'.join(parts[:-1] if parts[-1] == '__init__' else parts)] = path
    return names


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of ours that a file imports, also within functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f'{path}, line {node.lineno}: a relative import'
            inner = {f'{node.module}.{name.name}' for name in node.names}
            found |= {name if name in known else node.module for name in inner}
    return found & known.keys()


def room(module: str) -> str:
    return module.partition('.')[2].partition('.')[0]


@pytest.fixture(scope='module')
def imports() -> dict[str, set[str]]:
    known = modules()
    return {name: imported(path, known) for name, path in known.items()}


def test_every_room_has_its_floor(imports):
    assert {room(name) for name in imports} == HEIGHT.keys()


def test_rooms_import_downwards(imports):
    upwards = [
        f'{name} imports {other}'
        for name, others in imports.items()
        for other in others
        if room(other) != room(name) and HEIGHT[room(other)] >= HEIGHT[room(name)]
    ]
    assert not upwards


def test_the_picture_of_the_rooms_is_theirs():
    told = {
        (room.strip('`'), int(floor)) for floor, room, *_ in rows(ARCHITECTURE) if floor.isdigit()
    }
    assert told == {(room, floor + len(FLOORS)) for room, floor in HEIGHT.items() if room}


def test_no_circle(imports):
    # A room's own __init__ gives out what its files define.
    graph = {name: {other for other in others if other != name} for name, others in imports.items()}
    TopologicalSorter(graph).prepare()


def test_commands_do_not_import_each_other(imports):
    """What two of them need is in a room below; options that several have are in options."""
    main, shared = 'assay.commands.main', 'assay.commands.options'
    found = [
        f'{name} imports {other}'
        for name, others in imports.items()
        for other in others - {name, shared}
        if room(other) == 'commands' and other != 'assay.commands' and name != main
    ]
    assert not found


def test_no_two_public_classes_have_the_same_name():
    """Who reads a name need not look up which of two it is, nor that it is imported as another."""
    places: dict[str, list[str]] = {}
    called: list[tuple[str, str]] = []
    for module, path in modules().items():
        tree = ast.parse(path.read_text())
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith('_'):
                places.setdefault(node.name, []).append(module)
        imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
        called += [(one.asname, module) for node in imports for one in node.names if one.asname]
    assert not {name: where for name, where in places.items() if len(where) > 1}
    assert not [(name, module) for name, module in called if name in places]


#: Participles without ``-ed``, and adjectives, that were names of functions here or are near it.
NO_NAMES = """
    alike alone apart beyond bound broken built caught chosen cut drawn due earlier enough found
    given gone held kept known lacking later left less lost made many missing more only own past
    said sat seen shown some spent spoilt stale standing sure taken then this told unbound
    unlike unusable unusual usual without worse written wrong
"""
#: Words behind which a participle still says nothing: ``named_in``, ``left_out``.
BEHIND = {'again', 'after', 'by', 'here', 'in', 'instead', 'of', 'once', 'out', 'to', 'with'}
#: Exceptions with their reasons.
GIVEN_NAMES = {
    'many': 'as in a sentence: `many(2, "core")` gives "2 cores"',
    'bound': 'a noun: the least or the most that is allowed',
    'finished': "ReFrame's: it asks schedulers",
    'without': 'as of a set: `draft.without(left_out)`',
}


def says_nothing(name: str) -> bool:
    """Whether a name of a function is a participle or an adjective, with little behind it."""
    first, *others = name.split('_')
    is_bare = re.fullmatch('[a-z]{3,}[^e]ed', first) or first in NO_NAMES.split()
    return bool(is_bare) and BEHIND.issuperset(others)


def test_functions_are_called_by_what_they_do_or_return():
    """By a verb, or by the noun of the result; properties and fields have their owner's noun."""
    found = set()
    for path in modules().values():
        tree = ast.parse(path.read_text())
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        for body in [tree.body, *(node.body for node in classes)]:
            for node in body:
                if isinstance(node, ast.FunctionDef) and not any(
                    'property' in ast.unparse(one) for one in node.decorator_list
                ):
                    found.add(node.name)
    assert {name for name in found if says_nothing(name)} == GIVEN_NAMES.keys()


def test_no_test_imports_the_module_of_another():
    """What several of them need is in tests/support or a conftest.py."""
    found = [
        f'{path}, line {node.lineno}'
        for path in (paths.ROOT / 'tests').rglob('test_*.py')
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in [getattr(node, 'module', None), *(one.name for one in node.names)]
        if name and name.startswith('test_')
    ]
    assert not found


def test_a_public_name_stands_once():
    """Of classes and functions of modules: commands are named as users type them."""
    places = defaultdict(list)
    for module, path in modules().items():
        for node in ast.parse(path.read_text()).body:
            is_named = isinstance(node, ast.ClassDef | ast.FunctionDef)
            if is_named and not node.name.startswith('_') and room(module) != 'commands':
                places[node.name].append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
