"""The cost of messages by distance: measured on this system, or assumed as on many others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import numpy as np

from assay import AssayError, paths
from assay.config.scales import is_at_most, is_scale
from assay.machine import slurm
from assay.screening import kept
from assay.screening.measured import Screening, behind_one_switch
from assay.text import plain
from assay.witness.placement import DISTANCES

if TYPE_CHECKING:
    from assay.results.history import History

#: The check that measures two ranks, and the distances of its layouts within a node.
CHECK, LAYOUTS = 'PointToPoint', {'packed': (0,), 'spread': (1, 2)}
#: Of its newest values so many count.
NEWEST = 20


@dataclass(frozen=True)
class Cost:
    """The cost of a message at a distance.

    :param latency: seconds.
    :param bandwidth: bytes per second.
    :param source: who says so; empty if nobody measured it here.
    """

    latency: float
    bandwidth: float
    source: str = ''


#: Of a server of two sockets and a network of 100 Gbit/s behind switches of 0.1 to 0.3 us each.
#: They serve to tell near from far: what is gained by them is not known.
ASSUMED = (
    Cost(0.3e-6, 12e9),
    Cost(0.4e-6, 11e9),
    Cost(0.6e-6, 11e9),
    Cost(1.5e-6, 10e9),
    Cost(2.1e-6, 10e9),
)


@dataclass(frozen=True)
class Costs:
    """Costs of all distances (:data:`DISTANCES`), and the nodes behind each switch."""

    by_distance: tuple[Cost, ...]
    switches: Mapping[str, Collection[str]]

    @property
    def curves(self) -> tuple[list[float], list[float]]:
        """Seconds of a message, and of a byte: a longer way is taken to cost no less."""
        latency = np.maximum.accumulate([one.latency for one in self.by_distance])
        per_byte = np.maximum.accumulate([1 / one.bandwidth for one in self.by_distance])
        return latency.tolist(), per_byte.tolist()


def costs_of(hosts: Collection[str], system: str | None, cases: str, history: History) -> Costs:
    """The costs on a job's machine, from its history, its newest screening, and Slurm.

    :param hosts: of the job.
    :param system: only what was measured on it, if given; it may be ``name:partition``.
    :param cases: only cases in whose name this is found.
    """
    found = dict(enumerate(ASSUMED))
    found |= of_history(history, system, cases)
    screened = screening_of(hosts, system)
    switches: Mapping[str, Collection[str]] = screened.switches if screened else {}
    if len(hosts) > 1 and not switches:
        known = slurm.switches()
        if any({*hosts} & {*nodes} for nodes in known.values()):
            switches = known
    if screened:
        found |= of_screening(screened)
    return Costs(tuple(found[distance] for distance in range(len(DISTANCES))), switches)


def of_history(history: History, system: str | None, cases: str) -> dict[int, Cost]:
    """The fastest way at each distance that :data:`CHECK` measured, which an MPI takes by itself.

    :raises AssayError: if it was measured on several systems, and none is given.
    """
    import polars as pl

    from assay.results.run_selectors import of_cases, of_system

    is_case, runs = of_cases(cases), of_system(history, system)
    table = history.figures(runs).filter(
        pl.col('check').cast(pl.String) == CHECK,
        pl.col('result').cast(pl.String) == 'pass',
        pl.col('value').is_finite() & (pl.col('value') > 0),
    )
    systems = sorted(table['system'].cast(pl.String).unique().to_list())
    if len(systems) > 1:
        raise AssayError(
            f'{CHECK} was measured on {", ".join(systems)}: say on which the job was, by --system'
        )
    found: dict[int, Cost] = {}
    for keys, rows in table.sort('begun').group_by(
        *('system', 'partition', 'environment', 'case', 'layout', 'scale'), maintain_order=True
    ):
        place, partition, environment, case, layout, scale = map(str, keys)
        name = f'{case} @{place}:{partition}+{environment}'
        if not is_case(name) or not is_scale(scale):
            continue
        of_figure = {
            figure: float(np.median(own['value'].to_numpy()[-NEWEST:]))
            for (figure,), own in rows.group_by(pl.col('figure').cast(pl.String))
        }
        if not {'latency', 'bandwidth'} <= of_figure.keys():
            continue
        one = Cost(
            of_figure['latency'] * 1e-6,
            of_figure['bandwidth'] * 1e6,
            plain(f'stored runs of {name}'),
        )
        for distance in LAYOUTS.get(layout, ()) if is_at_most(scale, 1) else (3,):
            if distance not in found or one.latency < found[distance].latency:
                found[distance] = one
    if 3 in found:
        found[4] = found[3]
    return found


def screening_of(hosts: Collection[str], system: str | None) -> Screening | None:
    """The newest screening whose nodes are all of a job's hosts, if there are several."""
    if len(hosts) < 2:
        return None
    now = datetime.now(timezone.utc)
    newest = (kept.newest(name, now) for name in _partitions(system))
    fit = [one for _, one in filter(None, newest) if {*hosts} <= {*one.nodes}]
    return max(fit, key=lambda one: one.begun, default=None)


def _partitions(system: str | None) -> Iterator[str]:
    """``system:partition`` of each that has screenings."""
    for folder in sorted(paths.SCREENINGS.glob('*/*/')):
        name, partition = folder.parts[-2:]
        if system in (None, name, f'{name}:{partition}'):
            yield f'{name}:{partition}'


def of_screening(one: Screening) -> dict[int, Cost]:
    """The median pair of nodes, behind one switch and not."""
    near = behind_one_switch(one) if one.switches else np.ones(len(one.links.ends), np.bool_)
    source = plain(f'the screening of {one.system} of {one.begun:%Y-%m-%d %H:%M}, {one.fabric}')
    found = {}
    for distance, which in ((3, near), (4, ~near)):
        if which.any():
            found[distance] = Cost(
                float(np.median(one.links.latency[which])),
                float(np.median(one.links.bandwidth[which])) / 2,  # of both ways at once
                source,
            )
    if 4 not in found and 3 in found:
        found[4] = found[3]
    return found
