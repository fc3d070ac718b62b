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
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, root / name)
    return root
