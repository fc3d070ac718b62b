"""Copies of this checkout as somebody has them who has just got it."""

import shutil

from assay import paths

#: What stands there for users: the launcher and what it installs first.
TREE = ['assay', 'pyproject.toml', 'requirements.lock', 'requirements-test.lock']
TREE += ['config', 'lib', 'checks', 'sources']


def copy_of_the_checkout(folder):
    """Make one in a folder, by a name that is not ASCII; nothing is installed there."""
    root = folder / 'chéckout'
    root.mkdir()
    for name in TREE:
        source = paths.ROOT / name
        if source.is_dir():  # but for what Python writes there meanwhile
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns('__pycache__'))
        else:
            shutil.copy2(source, root / name)
    return root
