"""The measurements of a screening, and the file that keeps them.

The file is all that the verdict is made of: the same files give the same verdict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay import AssayError
from assay.files import DAMAGED, explain_errors, read_bounded, strict_json, write_whole
from assay.results.statistics.series import Floats
from assay.text import plain

#: Of the file.
SCHEMA = 1
#: Bytes of the file at most: 10,000 nodes take some 30 MB.
MOST = 256 << 20
#: How nodes are measured, and what.
MODES = ('alone', 'together')
MEASURES = ('triad', 'dgemm', 'frequency')


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs of nodes that were measured, P of them, in T tournaments; all pairs of a round at once.

    :param ends: shape (P, 2), numbers of the two nodes.
    :param latency: shape (P, T), seconds one way.
    :param bandwidth: shape (P, T), bytes per second both ways.
    :param alone: shape (P, 2), latency and bandwidth while nobody else sent, of what was slow in
        the last tournament; otherwise NaN.
    """

    ends: NDArray[np.int64]
    latency: Floats
    bandwidth: Floats
    alone: Floats


@dataclass(frozen=True, eq=False)
class Screening:
    """The measurements of n nodes in one job.

    :param begun: local time with its zone.
    :param nodes: names, in the order of the job.
    :param values: shape (n, k) of each figure, ``triad alone`` and so on: k sweeps; bytes,
        operations or cycles per second. Nodes that share CPUs have none together.
    :param taken: of each mode, shape (n, k): the share of the CPUs' time that others took.
    :param facts: of each node: what it is and how it is set.
    :param faults: of each node: errors of its memory, wrong results, ranks that sat elsewhere,
        links that went down.
    :param switches: names of the nodes behind each, where the scheduler knows.
    :param noise: of each node, what interrupts its cores: ``share``, what the core that lost most
        lost of its time, in the median sweep; ``longest``, seconds of the longest interruption;
        ``process_share``, what the busiest process beside the job took of a core, and ``process``,
        its command; :data:`PARTS_OF_NOISE`. Of nodes that share CPUs all but those of processes
        are missing.
    :param left_out: the other nodes of the partition, and why they were not in the job, in the
        scheduler's words; none where its nodes were named.
    """

    system: str
    environment: str
    fabric: str
    begun: datetime
    nodes: tuple[str, ...]
    values: Mapping[str, Floats]
    taken: Mapping[str, Floats]
    facts: tuple[Mapping[str, str | int], ...]
    faults: tuple[Mapping[str, str | int], ...]
    noise: tuple[Mapping[str, str | float], ...]
    links: Links
    switches: Mapping[str, tuple[str, ...]]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> tuple[str, str, str]:
        """The system, environment and fabric; only screenings with the same can be compared."""
        return self.system, self.environment, self.fabric

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each node, by its name."""
        return {name: number for number, name in enumerate(self.nodes)}

    @property
    def shares_cpus(self) -> bool:
        """Whether its nodes are parts of one machine."""
        return not any(mode_of(figure) == 'together' for figure in self.values)

    @property
    def sweeps(self) -> int:
        return len(next(iter(self.values.values()))[0])


def log_slowness(values: Floats) -> Floats:
    """Logarithms of rates, larger where worse."""
    return -np.log(values)


def pair_times(one: Screening) -> dict[str, Floats]:
    """Logarithms of what each pair takes, larger where worse: shape (P, T)."""
    return {'latency': np.log(one.links.latency), 'bandwidth': log_slowness(one.links.bandwidth)}


def behind_one_switch(now: Screening) -> NDArray[np.bool_]:
    """Whether both nodes of each pair are behind one switch, if the scheduler knows: shape (P,)."""
    switch = {name: number for number, names in enumerate(now.switches.values()) for name in names}
    one, other = np.array([switch.get(name, -1) for name in now.nodes])[now.links.ends].T
    return np.asarray((one == other) & (one >= 0))


def mode_of(figure: str) -> str:
    """``alone`` or ``together``."""
    return figure.rpartition(' ')[2]


def write_screening(path: Path, measured: Screening) -> None:
    """Keep it in a file, which appears when it is whole.

    :raises AssayError: if it cannot be written.
    :raises ValueError: at a value that is not finite, but for links that were not measured alone.
    """
    links = measured.links
    record = {
        'schema': SCHEMA,
        **{one.name: getattr(measured, one.name) for one in fields(measured)},
        'begun': measured.begun.isoformat(),
        'values': {name: values.tolist() for name, values in measured.values.items()},
        'taken': {name: values.tolist() for name, values in measured.taken.items()},
        'links': {
            **{one.name: getattr(links, one.name).tolist() for one in fields(links)},
            'alone': [[None if np.isnan(v) else v for v in pair] for pair in links.alone.tolist()],
        },
    }
    with explain_errors(path, 'written'):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(record, allow_nan=False) + '\n')


def read_screening(path: Path) -> Screening:
    """Read the screening that :func:`write_screening` kept.

    :raises AssayError: if the file is missing, damaged, too large, or none of a screening.
    """
    data = read_bounded(path, MOST)
    try:
        return _read(strict_json(data))
    except DAMAGED as error:
        why = f'{error}' if isinstance(error, ValueError) else f'{type(error).__name__} {error}'
        told = plain(why, 300)
        raise AssayError(f'{path}: is damaged, or not the file of a screening: {told}') from None


def _read(record: dict[str, Any]) -> Screening:
    if record['schema'] != SCHEMA:
        raise ValueError(f'schema {record["schema"]!r} is not {SCHEMA}')
    nodes = tuple(map(str, record['nodes']))
    n = len(nodes)
    links = record['links']
    ends = np.array(links['ends']).reshape(-1, 2)
    if ends.size and ends.dtype != np.int64:
        raise ValueError('its pairs are not of numbers of nodes')
    ends = ends.astype(np.int64)
    pairs = len(ends)
    alone = np.array(links['alone'], dtype=np.float64).reshape(-1, 2)
    if np.isinf(alone).any() or (alone <= 0).any():
        raise ValueError('alone has values that are not above 0')
    known = {f'{measure} {mode}' for measure in MEASURES for mode in MODES}
    if not record['values'] or not known.issuperset(record['values']):
        raise ValueError(f'its figures are {", ".join(record["values"]) or "none"}')
    measured = Screening(
        system=str(record['system']),
        environment=str(record['environment']),
        fabric=str(record['fabric']),
        begun=_moment(record['begun']),
        nodes=nodes,
        values={name: _positive(name, rows, n) for name, rows in record['values'].items()},
        taken={mode: _table(mode, record['taken'][mode], n) for mode in MODES},
        facts=tuple(map(_words, record['facts'])),
        faults=tuple(map(_words, record['faults'])),
        noise=tuple(map(_noise, record['noise'])),
        links=Links(
            ends,
            _positive('latency', links['latency'], pairs),
            _positive('bandwidth', links['bandwidth'], pairs),
            alone,
        ),
        switches={str(name): tuple(map(str, one)) for name, one in record['switches'].items()},
        left_out={str(name): str(why) for name, why in record['left_out'].items()},
    )
    of_nodes = measured.facts, measured.faults, measured.noise
    if not n == len(set(nodes)) > 0 or any(len(one) != n for one in of_nodes):
        raise ValueError('names of its nodes are not unique, or facts of nodes are missing')
    if len({table.shape for table in (*measured.values.values(), *measured.taken.values())}) > 1:
        raise ValueError('figures have different numbers of sweeps')
    if len(alone) != pairs or (pairs and not 0 <= ends.min() <= ends.max() < n):
        raise ValueError('its pairs are not of its nodes')
    return measured


def _moment(text: str) -> datetime:
    begun = datetime.fromisoformat(text)
    # Nearer to the ends of the calendar it is of no year at all in another zone.
    if begun.tzinfo is None or not 1970 < begun.year < 9000:
        raise ValueError(f'it began at {text}, which is no time with its zone')
    return begun


def _words(record: dict[str, str | int]) -> dict[str, str | int]:
    """The facts of a node; a number of it has no more than 64 bits."""
    for name, value in record.items():
        if not isinstance(value, str) and not (isinstance(value, int) and abs(value) < 1 << 63):
            raise ValueError(f'{name} of a node is neither a word nor a number')
    return dict(record)


#: What all cores lost of their time; of the core that lost most the time in which others had it,
#: and that of interrupts and of the hypervisor, as the kernel counts them.
PARTS_OF_NOISE = ('all', 'others', 'interrupts', 'stolen')
#: The fields of a node's noise, and the types of their values.
NOISE = {
    **{'share': float, 'longest': float, 'process_share': float, 'process': str},
    **dict.fromkeys(PARTS_OF_NOISE, float),
}


def _noise(record: dict[str, Any]) -> dict[str, str | float]:
    for one, other in (('share', 'longest'), ('process_share', 'process')):
        if (one in record) != (other in record):
            raise ValueError(f'noise of a node has one of {one} and {other}')
    for name, value in record.items():
        if name not in NOISE or not isinstance(value, NOISE[name]):
            raise ValueError(f'{name} of a node is no noise')
        if isinstance(value, float) and not 0 <= value < np.inf:
            raise ValueError(f'{name} of a node is {value}')
    return dict(record)


def _table(name: str, rows: Any, n: int) -> Floats:
    if not n and not rows:
        return np.empty((0, 1))
    table = np.array(rows, dtype=np.float64).reshape(n, -1)
    if not table.size or not np.isfinite(table).all():
        raise ValueError(f'{name} has values that are no numbers')
    return table


def _positive(name: str, rows: Any, n: int) -> Floats:
    table = _table(name, rows, n)
    if (table <= 0).any():
        raise ValueError(f'{name} has values that are not above 0')
    return table
