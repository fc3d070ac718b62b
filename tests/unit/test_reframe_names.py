"""Private names of ReFrame that Assay uses: docs/architecture.md has a reason for each."""

import ast
import re
from pathlib import Path

import reframe

from assay import paths

TABLE = 'Private names of ReFrame'
OURS = [paths.ROOT / 'lib', paths.CHECKS, paths.CONFIG]
PRIVATE = re.compile(r'\b_[A-Za-z]\w*')


def test_each_private_name_has_its_reason():
    text = (paths.ROOT / 'docs' / 'architecture.md').read_text()
    section = text.partition(f'## {TABLE}\n')[2].partition('\n## ')[0]
    rows = re.findall(r'^\| (`.*?) \|', section, re.MULTILINE)
    told = [name for row in rows for name in re.findall('`(_[A-Za-z_]+)`', row)]
    theirs = {
        name for text in texts(Path(reframe.__file__).parent) for name in PRIVATE.findall(text)
    }
    ours = [text for folder in OURS for text in texts(folder) if 'reframe' in text]
    used = {name for text in ours for name in uses(ast.parse(text))} & theirs
    assert sorted(told) == sorted(used)


def texts(folder):
    return [path.read_text() for path in folder.rglob('*.py')]


def is_private(name):
    return name.startswith('_') and not name.startswith('__')


def uses(tree):
    """Private names in a file that it does not define, or defines anew in a class of ReFrame's."""
    of_reframe = {'rfm', 'CheckPart'}
    own, found = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or '').partition('.')[0] == 'reframe':
            of_reframe |= {one.asname or one.name for one in node.names}
            found |= {one.name for one in node.names if is_private(one.name)}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            own |= {node.attr} if ast.unparse(node.value) == 'self' else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            found.add(node.attr)
        elif isinstance(node, ast.ClassDef) and any(
            ast.unparse(base).partition('.')[0] in of_reframe for base in node.bases
        ):
            members = (getattr(one, 'target', one) for one in node.body)
            found |= {one for member in members for one in names_of(member) if is_private(one)}
            found |= {
                one.attr
                for one in ast.walk(node)
                if isinstance(one, ast.Attribute) and is_private(one.attr)
            }
    return found


def names_of(member):
    return [name for field in ('name', 'id') if isinstance(name := getattr(member, field, 0), str)]
