"""The Intel MPI Benchmarks: finding an ``IMB-MPI1`` that fits an MPI."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from assay import paths
from assay.machine.mpi import Mpi
from assay.machine.wheels import wheel_names
from assay.programs.imb import PROGRAM


@dataclass(frozen=True)
class Imb:
    """An ``IMB-MPI1`` for one MPI.

    :param program: its absolute path.
    :param libraries: folder with the MPI library that it has to load.
    """

    program: Path
    libraries: Path


def find_imb(mpi: Mpi) -> Imb | None:
    """An ``IMB-MPI1`` that runs on ``mpi``: linked to a library of the same name.

    Looked for in the wheels (Intel MPI's has one) and on PATH, in this order.
    """
    if (library := _library(mpi)) is None:
        return None
    for program in _programs():
        if library.name in _needed(program):
            return Imb(program, library.parent)
    return None


def _library(mpi: Mpi) -> Path | None:
    name = mpi.kind.soname
    files = (mpi.prefix / folder / name for folder in ('lib', 'lib64'))
    return next(filter(Path.exists, files), None)


@lru_cache
def _programs() -> tuple[Path, ...]:
    found = [paths.MPI_PREFIXES / name / 'bin' / PROGRAM for name in wheel_names()]
    if on_path := shutil.which(PROGRAM):
        found.append(Path(on_path))
    return tuple(path for path in found if path.is_file())


@lru_cache
def _needed(program: Path) -> frozenset[str]:
    """Names of the MPI libraries that a program is linked to.

    The names stand in its string table, which saves asking for readelf.
    """
    return frozenset(
        name.decode() for name in re.findall(rb'libmpi\.so\.\d+(?=\0)', program.read_bytes())
    )
