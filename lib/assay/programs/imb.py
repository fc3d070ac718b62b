"""The Intel MPI Benchmarks: reading the tables of ``IMB-MPI1``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

PROGRAM = 'IMB-MPI1'


@dataclass(frozen=True)
class ImbRow:
    """One line of a table.

    :param size: bytes of a message.
    :param time: seconds; IMB's own definition for the benchmark (PingPong: half a round trip),
        the average over ranks where it gives least, greatest and average.
    :param bandwidth: bytes per second; None where the table has none.
    """

    size: int
    time: float
    bandwidth: float | None


def read_imb_tables(output: str) -> dict[str, tuple[int, list[ImbRow]]]:
    """Read the tables of an ``IMB-MPI1`` run.

    :returns: for each benchmark the number of processes and its rows; of the tables with several
        numbers of processes the one with the most.
    :raises ValueError: if the run did not get to its end, or has a line that is no row.
    """
    if '# All processes entering MPI_Finalize' not in output:
        raise ValueError(f'{PROGRAM} did not get to its end')
    tables: dict[str, tuple[int, list[ImbRow]]] = {}
    for name, processes, lines in _tables(output):
        if processes >= tables.get(name, (0, []))[0]:
            tables[name] = (processes, lines)
    return tables


def _tables(output: str) -> Iterator[tuple[str, int, list[ImbRow]]]:
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


def _row(name: str, columns: list[str], line: str) -> ImbRow:
    values = dict(zip(columns, line.split(), strict=False))
    try:
        time = float(values.get('t[usec]') or values['t_avg[usec]'])
        rate = values.get('Mbytes/sec')
        return ImbRow(
            size=int(values.get('#bytes', 0)),
            time=time * 1e-6,
            bandwidth=None if rate is None else float(rate) * 1e6,
        )
    except (KeyError, ValueError):
        raise ValueError(f'{name}: not a row of its table: {line.strip()!r}') from None
