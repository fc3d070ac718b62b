"""The files of a screening's job, kept beside what it measured: figures are computed again of them.

They are text, and stand together in one file of JSON, which gzip packs to a tenth.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from assay import AssayError
from assay.files import explained, write_whole
from assay.screening.collected import (
    MISPLACED,
    NODES,
    TOURNAMENTS,
    WITNESS,
    WITNESSES_OF_TOURNAMENTS,
    collect,
)
from assay.screening.measured import Screening
from assay.screening.where import Where
from assay.text import plain
from assay.witness import HOSTS, names_in

#: Those that figures are computed of, by their names in the folder of the job.
FILES = (NODES, WITNESS, *TOURNAMENTS, *WITNESSES_OF_TOURNAMENTS, MISPLACED)
#: The end of the name of the file that has them all, its form, and how many bytes it unpacks to at
#: most: of 10,000 nodes some 60 MB.
SUFFIX, FORM, MOST = '.outputs.json.gz', 1, 1 << 30
#: Nodes or pairs of a figure that are reported.
_MOST_TOLD = 3


def beside(path: Path) -> Path:
    """Where the files are of the job of a screening.

    :param path: of the screening.
    """
    return path.with_name(f'{path.stem}{SUFFIX}')


def with_outputs(screenings: Iterable[Path]) -> Iterator[Path]:
    """Files of screenings, each with that of its outputs, where they were kept."""
    for path in screenings:
        yield path
        if beside(path).is_file():
            yield beside(path)


def keep(path: Path, folder: Path, where: Where, nodelist: Sequence[str]) -> None:
    """Keep the files of a screening's job beside it.

    :param path: of the screening.
    :param folder: of the job.
    :param nodelist: the nodes of the job, as the scheduler calls them.
    :raises AssayError: if that cannot be.
    """
    record = {
        'form': FORM,
        'screening': path.name,
        'shares_cpus': where.on_this_machine,
        'nodes': [*nodelist],
        'hosts': names_in(folder),
        'files': {name: (folder / name).read_text() for name in FILES},
    }
    with explained(beside(path), 'written'):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(beside(path), gzip.compress(json.dumps(record).encode(), mtime=0))


def differences(path: Path, told: Screening) -> Iterator[str]:
    """Sentences: where a screening says something else than the outputs of its job.

    :param path: of the screening.
    :param told: what it says.
    :raises AssayError: if the outputs cannot be read, or are not those of a screening.
    """
    record = _read(beside(path))
    try:
        yield from _differences(record, path.name, told)
    # A job wrote them, and anybody who changed them may have written anything.
    except (
        *(ArithmeticError, AttributeError, LookupError),
        *(OSError, RecursionError, TypeError, ValueError),
    ) as error:
        raise AssayError(f'not the files of a screening: {plain(error, 300)}') from None


def _differences(record: dict[str, Any], name: str, told: Screening) -> Iterator[str]:
    if record['screening'] != name:
        yield f'its outputs are those of {plain(record["screening"], 200)}'
    again = _computed(record, told)
    if again.nodes != told.nodes:
        yield 'its nodes are not those of the outputs of its job'
        return
    if missing := sorted(again.values.keys() ^ told.values.keys()):
        yield f'{", ".join(missing)} is in the outputs of its job or in its file, and not in both'
    tables = {
        name: (told.values[name], again.values[name])
        for name in told.values
        if name in again.values
    }
    tables |= {f'taken {mode}': (told.taken[mode], again.taken[mode]) for mode in told.taken}
    for name, both in tables.items():
        yield from _of_table(name, both, told.nodes)
    for what, ours, others in (
        ('what is known', told.facts, again.facts),
        ('what is wrong', told.faults, again.faults),
    ):
        for node, one, other in zip(told.nodes, ours, others, strict=True):
            if one != other:
                yield f'{what} of {plain(node, 100)} is not what the outputs of its job say'
    if not np.array_equal(told.links.ends, again.links.ends):
        yield 'its pairs of nodes are not those of the outputs of its job'
        return
    pairs = [f'{told.nodes[a]} and {told.nodes[b]}' for a, b in told.links.ends]
    for name in ('latency', 'bandwidth', 'alone'):
        label = 'pairs alone' if name == 'alone' else name
        both = getattr(told.links, name), getattr(again.links, name)
        yield from _of_table(label, both, pairs)


def _of_table(name: str, both: tuple[Any, Any], whose: Sequence[str]) -> Iterator[str]:
    told, again = both
    if not (told.size or again.size):  # no pairs, of whatever number of tournaments
        return
    if told.shape != again.shape:
        yield f'{name} was measured another number of times by the outputs of its job'
        return
    rows = [
        row for row in range(len(told)) if not np.array_equal(told[row], again[row], equal_nan=True)
    ]
    for row in rows[:_MOST_TOLD]:
        differs = (told[row] != again[row]) & ~(np.isnan(told[row]) & np.isnan(again[row]))
        column = int(np.flatnonzero(differs)[0])
        yield (
            f'{name} of {plain(whose[row], 200)} is {told[row][column]:.6g}, and '
            f'{again[row][column]:.6g} by the outputs of its job'
        )
    if more := len(rows[_MOST_TOLD:]):
        yield f'{name} of {more} more is another one by the outputs of its job'


def _read(path: Path) -> dict[str, Any]:
    """:raises AssayError: if it is no file of outputs, or too large."""
    try:
        with gzip.open(path) as file:
            data = file.read(MOST + 1)
        if len(data) > MOST:
            raise ValueError(f'it has more than {MOST} bytes')
        record: dict[str, Any] = json.loads(data)
        if record['form'] != FORM or record['files'].keys() != {*FILES}:
            raise ValueError(f'it is not of form {FORM}')
        return record
    except (
        *(OSError, EOFError, zlib.error),
        *(AttributeError, KeyError, TypeError, ValueError, RecursionError),
    ) as error:
        raise AssayError(
            f'{path}: is damaged, or not the outputs of a screening: {plain(error, 300)}'
        ) from None


def _computed(record: dict[str, Any], told: Screening) -> Screening:
    """What the outputs say. Which nodes are behind which switch is none of it: Slurm said that."""
    where = Where(told.system, '', bool(record['shares_cpus']), told.environment, told.fabric)
    try:
        with tempfile.TemporaryDirectory(prefix='assay-verify-') as scratch:
            for name in FILES:
                path = Path(scratch, name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(record['files'][name])
            # Of older screenings nobody kept it.
            Path(scratch, HOSTS).write_text(json.dumps(record.get('hosts', {})))
            return collect(Path(scratch), where, told.begun, record['nodes'], told.switches)
    except AssayError as error:
        raise AssayError(plain(str(error).replace(f'{scratch}/', ''), 300)) from None
