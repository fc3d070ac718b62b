"""Finds what ReFrame accepts in checks and references, and what would then pass unseen."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml


def lint(checks: Path, references: Path) -> list[str]:
    """Lint check classes and reference files against each other.

    Found are: files that cannot be read; class names that two files share (ReFrame skips the second
    file); classes that ``generic.yaml`` has no entry for (their figures would be held to nothing);
    entries for classes that do not exist; and references that cannot fail.

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
    for path in sorted(references.glob('*.yaml')):
        try:
            entries = yaml.safe_load(path.read_text()) or {}
        except yaml.YAMLError as error:
            problems.append(f'{path}: not valid YAML: {error}')
            continue
        for name, entry in entries.items():
            if name not in classes:
                problems.append(f'{path}: {name}: no check class has this name')
            problems += [f'{path}: {name}.{problem}' for problem in _cannot_fail(entry)]
        if path.name == 'generic.yaml':
            problems += [
                f'{path}: class {name} ({classes[name]}) has no entry'
                for name in classes
                if name not in entries
            ]
    return problems


def check_classes(path: Path) -> Iterator[str]:
    """The names of the check classes in a file."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.ClassDef) and any(
            ast.unparse(decorator).endswith('simple_test') for decorator in node.decorator_list
        ):
            yield node.name


def _cannot_fail(entry: dict[str, Any], place: str = '') -> Iterator[str]:
    for key, value in entry.items():
        where = f'{place}.{key}' if place else str(key)
        if key == '$index':
            continue
        if isinstance(value, dict):
            yield from _cannot_fail(value, where)
            continue
        if value[0] == '$xfail':
            value = value[-1]
        if len(value) < 3:
            yield f'{where}: {value} is no reference: it needs a value and two bounds'
            continue
        reference, lower, upper = value[:3]
        if any(isinstance(n, float) and not math.isfinite(n) for n in (reference, lower, upper)):
            yield f'{where}: {value} has a bound that is not a finite number'
        elif upper is None and (lower is None or (reference != 0 and lower <= -1)):
            # All figures are positive: a lower bound of nothing excludes none of them.
            yield f'{where}: {value} cannot fail'
