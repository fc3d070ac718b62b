"""Finds what ReFrame accepts in checks and references, and what would then pass unseen."""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from assay import paths
from assay.config import settings
from assay.config.reference_files import (
    ANY,
    GENERIC,
    LEARNED,
    ReferencesError,
    faults,
    read_reference_file,
    unused_parts,
)
from assay.files import write_whole
from assay.text import unknown_name


def lint_own() -> list[str]:
    """Lint the checks and references of this checkout, as :func:`lint`.

    That loads all checks, as ReFrame is about to: what was clean is not linted again until a file
    has changed that the result depends on.
    """
    stamp, state = paths.RUNS / 'linted', ''
    with suppress(OSError):  # of a file that nobody can read the lint itself has to tell
        state = _state()
        if stamp.read_text() == state:
            return []
    problems = lint(paths.CHECKS, paths.REFERENCES)
    if state and not problems:
        with suppress(OSError):  # it is linted again then
            write_whole(stamp, state)
    return problems


def _state() -> str:
    """A checksum of all that the result depends on: these files, Python, and two packages."""
    folders = [paths.CHECKS, paths.CONFIG, paths.ROOT / 'lib']
    files = {path for folder in folders for path in folder.rglob('*.*') if path.is_file()}
    # Beneath a folder of a site's own there may be much else.
    files |= {*paths.SYSTEMS.glob('*.py')}
    versions = (version(name) for name in ('reframe-hpc', 'archspec'))
    found = hashlib.sha256(' '.join((sys.version, *versions)).encode())
    for path in sorted(path for path in files if path.suffix in ('.py', '.yaml', '.yml')):
        content = path.read_bytes()
        found.update(b'%s %d ' % (os.fsencode(path), len(content)) + content)
    return found.hexdigest()


def lint(checks: Path, references: Path) -> list[str]:
    """Lint check classes and reference files against each other.

    Found are: files that cannot be read, or that nothing reads; class names that two files share
    (ReFrame skips the second file); classes that ``generic.yaml`` has no entry for (their figures
    would be held to nothing); entries for classes that do not exist, and in them rules for values
    that no parameter has; and references that cannot fail.

    :param checks: folder of check files.
    :param references: folder of reference files.
    :returns: one sentence for each problem.
    """
    classes: dict[str, Path] = {}
    problems = []
    for path in sorted(checks.rglob('*.py')):
        try:
            names = list(check_classes(path))
        except SyntaxError as error:
            problems.append(f'{path}, line {error.lineno}: not valid Python: {error.msg}')
            continue
        for name in names:
            if name in classes:
                problems.append(f'{path}: class {name} is also in {classes[name]}')
            classes[name] = path
    return problems + _lint_references(references, classes)


def _lint_references(folder: Path, classes: dict[str, Path]) -> list[str]:
    from archspec.cpu import TARGETS

    problems = []
    places = (folder, folder / LEARNED)
    for path in sorted(one for place in places for one in place.glob('*.y*ml')):
        if path.suffix == '.yml':
            problems.append(f'{path}: is not read: call it {path.stem}.yaml')
            continue
        known = [*settings.known_systems(), GENERIC, *TARGETS]
        if path.stem not in known:
            what = 'system or processor architecture'
            problems.append(f'{path}: is not read: {unknown_name(path.stem, what, known)}')
        try:
            entries = read_reference_file(path)
        except ReferencesError as error:
            problems.append(str(error))
            continue
        for name, entry in entries.items():
            if name == ANY:
                problems += [
                    f'{path}: {name}{fault}' for fault in faults(entry, path.stem == GENERIC)
                ]
                continue
            if name not in classes:
                problems.append(f'{path}: {name}: {unknown_name(name, "check class", classes)}')
                continue
            found = list(faults(entry, path.stem == GENERIC)) or _unused(entry, classes[name], name)
            problems += [f'{path}: {name}{fault}' for fault in found]
        if path.stem == GENERIC:
            problems += [
                f'{path}: class {name} ({classes[name]}) has no entry'
                for name in classes
                if name not in entries
            ]
    return problems


def known_classes(checks: Path) -> set[str]:
    """The names of the check classes in a folder, but for files that are not valid Python."""
    names: set[str] = set()
    for path in checks.rglob('*.py'):
        with suppress(SyntaxError):
            names |= {*check_classes(path)}
    return names


def check_classes(path: Path) -> Iterator[str]:
    """The names of the check classes in a file."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.ClassDef) and any(
            ast.unparse(decorator).endswith('simple_test') for decorator in node.decorator_list
        ):
            yield node.name


def _unused(entry: dict[str, Any], path: Path, name: str) -> Iterator[str]:
    """Rules of an entry that no variant of the check class can come to."""
    from reframe.utility import import_module_from_file

    try:
        check = getattr(import_module_from_file(str(path)), name)
    except Exception as error:  # a check file is a program: it can raise anything
        yield f': {path} cannot be loaded: {type(error).__name__}: {error}'
        return
    parameters = check.param_space.params
    yield from unused_parts(entry, check, {name: one.values for name, one in parameters.items()})
