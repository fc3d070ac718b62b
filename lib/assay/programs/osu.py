"""The OSU Micro-Benchmarks: where a build of them has its programs, and reading their tables."""

from __future__ import annotations

import math
import re
from pathlib import Path

from assay.programs.application import as_number

#: Spack's name of them.
PACKAGE = 'osu-micro-benchmarks'

#: Each program's folder, and the title of its table.
PROGRAMS = {
    'osu_latency': ('pt2pt', 'Latency Test'),
    'osu_bw': ('pt2pt', 'Bandwidth Test'),
    'osu_bibw': ('pt2pt', 'Bi-Directional Bandwidth Test'),
    'osu_allreduce': ('collective', 'Allreduce Latency Test'),
    'osu_alltoall': ('collective', 'All-to-All Personalized Exchange Latency Test'),
}

_SCALES = {'us': 1e-6, 'MB/s': 1e6}


def path(prefix: Path, program: str) -> Path:
    """Where a program is in an installation."""
    return prefix / 'libexec' / PACKAGE / 'mpi' / PROGRAMS[program][0] / program


def read_osu_value(output: str, program: str, size: int) -> float:
    """The value that a program measured with messages of a size.

    The table tells neither how many ranks there were nor that the run got to its end: the witness
    and the exit code do.

    :param size: in bytes.
    :returns: seconds, or bytes per second.
    :raises ValueError: if the output is not the program's, or has no such value.
    """
    _, title = PROGRAMS[program]
    if not re.search(rf'^# OSU MPI {title} v', output, re.MULTILINE):
        raise ValueError(f'{program} printed no table')
    unit = re.search(r'^# Size .*\((us|MB/s)\)$', output, re.MULTILINE)
    if unit is None:
        raise ValueError(f'the table of {program} has no header')
    rows = re.findall(rf'^{size} +(\S+)\n', output, re.MULTILINE)
    if len(rows) != 1:
        raise ValueError(f'the table of {program} has {len(rows)} rows of {size} bytes, not 1')
    value = as_number(rows[0])
    if not 0 < value < math.inf:
        raise ValueError(f'{program} measured {rows[0]} {unit[1]} with {size} bytes')
    return value * _SCALES[unit[1]]
