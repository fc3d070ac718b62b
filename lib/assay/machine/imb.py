"""The Intel MPI Benchmarks: finding an ``IMB-MPI1`` that fits an MPI, and reading its tables."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from assay import paths
from assay.machine.mpi import Mpi
from assay.mpis import FAMILIES

PROGRAM = 'IMB-MPI1'


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
    paths_of_it = (mpi.prefix / folder / FAMILIES[mpi.family].soname for folder in ('lib', 'lib64'))
    return next(filter(Path.exists, paths_of_it), None)


@lru_cache
def _programs() -> tuple[Path, ...]:
    found = sorted(paths.MPI_PREFIXES.glob(f'*/bin/{PROGRAM}'))
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


@dataclass(frozen=True)
class Row:
    """One line of a table.

    :param size: bytes of a message.
    :param time: seconds; IMB's own definition for the benchmark (PingPong: half a round trip),
        the average over ranks where it gives least, greatest and average.
    :param bandwidth: bytes per second; None where the table has none.
    """

    size: int
    time: float
    bandwidth: float | None


def parse(output: str) -> dict[str, tuple[int, list[Row]]]:
    """Read the tables of an ``IMB-MPI1`` run.

    :returns: for each benchmark the number of processes and its rows; of the tables with several
        numbers of processes the one with the most.
    :raises ValueError: if the run did not get to its end, or has a line that is no row.
    """
    if '# All processes entering MPI_Finalize' not in output:
        raise ValueError(f'{PROGRAM} did not get to its end')
    tables: dict[str, tuple[int, list[Row]]] = {}
    for name, processes, lines in _tables(output):
        if processes >= tables.get(name, (0, []))[0]:
            tables[name] = (processes, lines)
    return tables


def _tables(output: str) -> Iterator[tuple[str, int, list[Row]]]:
    for section in output.split('# Benchmarking ')[1:]:
        name = section.split(None, 1)[0]
        processes = re.search(r'#processes = (\d+)', section)
        header = re.search(r'^ *#bytes .*$|^ *#repetitions .*$', section, re.MULTILINE)
        if processes is None or header is None:
            raise ValueError(f'the table of {name} has no header')
        columns = header.group().split()
        rows = []
        for line in section[header.end() :].splitlines()[1:]:
            if not line.strip():
                break
            # The MPI's own statements may come between the rows, which start with spaces.
            if re.match(r' +\d', line):
                rows.append(_row(name, columns, line))
        yield name, int(processes.group(1)), rows


def _row(name: str, columns: list[str], line: str) -> Row:
    values = dict(zip(columns, line.split(), strict=False))
    try:
        time = float(values.get('t[usec]') or values['t_avg[usec]'])
        rate = values.get('Mbytes/sec')
        return Row(
            size=int(values.get('#bytes', 0)),
            time=time * 1e-6,
            bandwidth=None if rate is None else float(rate) * 1e6,
        )
    except (KeyError, ValueError):
        raise ValueError(f'{name}: not a row of its table: {line.strip()!r}') from None
