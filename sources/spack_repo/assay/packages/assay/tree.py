"""The files that a build needs, and their checksum; for Spack and for Assay's command alike."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

#: The folder `sources` of the checkout that this file is part of.
ROOT = Path(__file__).resolve().parents[4]

SUFFIXES = {'.c', '.h', '.cpp', '.hpp', '.cmake'}


def files(root: Path = ROOT) -> Iterator[Path]:
    """Every source file under a folder; what somebody's build left there is none."""
    for folder, subfolders, names in os.walk(root):
        if 'CMakeCache.txt' in names:
            subfolders.clear()
            continue
        for name in names:
            if name == 'CMakeLists.txt' or Path(name).suffix in SUFFIXES:
                yield Path(folder, name)


def checksum(root: Path = ROOT) -> str:
    """Changes when a source file's name or content does."""
    digest = hashlib.sha256()
    for path in sorted(files(root)):
        content = path.read_bytes()
        digest.update(f'{path.relative_to(root)}\n{len(content)}\n'.encode() + content)
    return digest.hexdigest()[:16]


def copy(target: Path, root: Path = ROOT) -> None:
    """Copy the source files into a folder, which they have for themselves afterwards."""
    shutil.rmtree(target, ignore_errors=True)
    for path in files(root):
        own = target / path.relative_to(root)
        own.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, own)
