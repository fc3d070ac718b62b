"""Names in a contract that the suite does not have."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from assay import paths
from assay.config import reference_files
from assay.config.fabrics import load_catalogue
from assay.config.lint import check_classes, known_classes
from assay.config.scales import SCALES
from assay.layout.layouts import LAYOUTS
from assay.spelling import did_you_mean, unknown

#: What names of figures look like in the files of checks, and of what makes figures for them.
_FIGURE = re.compile('[a-z][a-z0-9_]*')
_MAKERS = (
    paths.ROOT / 'lib' / 'assay' / 'checks',
    paths.ROOT / 'lib' / 'assay' / 'programs',
    paths.ROOT / 'lib' / 'assay' / 'witness',
)
#: A pattern of fewer letters than this would match any name.
_LETTERS = 5


def faults(check: str, figure: str, values: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """The fields of a commitment whose names nothing has, with what may have been meant.

    :param values: its fabric, layout and scale; None where it is any.
    """
    known: dict[str, Iterable[str]] = {
        'fabric': load_catalogue().fabrics,
        'layout': LAYOUTS,
        'scale': SCALES,
    }
    for field, names in known.items():
        name = values[field]
        if name is not None and name not in names:
            yield field, unknown(name, field, names)
    checks = known_classes(paths.CHECKS)
    if check not in checks:
        yield 'check', unknown(check, 'check', checks)
    elif fault := _fault_of_figure(check, figure):
        yield 'figure', fault


def _fault_of_figure(check: str, figure: str) -> str | None:
    """Why no job of a check will have a figure of this name; None if one may.

    The names of many figures are put together by programs, such as those of the phases of an
    application: what remains unknown until a job has run is no mistake here.
    """
    file, own = _names_of(check)
    literal, patterns = _made()
    if figure in own or figure in literal:
        return None
    close = difflib.get_close_matches(figure, own, n=1, cutoff=0.9)
    # speedup_8 is no misspelled speedup_16.
    is_misspelled = any(re.sub(r'\d+', '', one) != re.sub(r'\d+', '', figure) for one in close)
    if not is_misspelled and any(re.fullmatch(one, figure) for one in patterns):
        return None
    if is_misspelled:
        return f'{check} has no such figure; {did_you_mean(close)}'
    return f'{unknown(figure, f"figure of {check}", own)}; {file} makes them'


@lru_cache
def _names_of(check: str) -> tuple[str, frozenset[str]]:
    """The file of a check, and the figures that it or its references name."""
    files = sorted(paths.CHECKS.rglob('*.py'))
    file = next(path for path in files if check in check_classes(path))
    found = {one for one in _literals(ast.parse(file.read_text())) if '_' in one}
    for path in paths.REFERENCES.glob('*.yaml'):
        entry = reference_files.read(path).get(check)
        if isinstance(entry, dict) and isinstance(entry.get('$index'), list):
            rules = {key: value for key, value in entry.items() if key != '$index'}
            found |= {*_figures(rules, len(entry['$index']))}
    return str(file.relative_to(paths.ROOT)), frozenset(found)


def _figures(level: Any, depth: int) -> Iterator[str]:
    """The names of figures below so many levels of an entry of references."""
    for key, value in level.items() if isinstance(level, dict) else ():
        if depth:
            yield from _figures(value, depth - 1)
        else:
            yield str(key)


@lru_cache
def _made() -> tuple[frozenset[str], tuple[str, ...]]:
    """Names in all that makes figures, and expressions for those that are put together there."""
    literal: set[str] = set()
    patterns: set[str] = set()
    for path in (one for folder in (paths.CHECKS, *_MAKERS) for one in folder.rglob('*.py')):
        tree = ast.parse(path.read_text())
        literal |= {*_literals(tree)}
        patterns |= {*_patterns(tree)}
    return frozenset(literal), tuple(sorted(patterns))


def _literals(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        value = getattr(node, 'value', None)
        if isinstance(value, str) and _FIGURE.fullmatch(value):
            yield value


def _patterns(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [getattr(one, 'value', '') for one in node.values]
            fixed = [one if isinstance(one, str) else None for one in parts]
            letters = ''.join(one or '' for one in fixed)
            if len(letters) >= _LETTERS and re.fullmatch('[a-z0-9_]+', letters):
                yield ''.join(r'\w+' if one is None else one for one in fixed)
