"""The seats of a job's ranks, and how far apart they are.

A seat is what a rank may use: CPUs of a host. It has the number of the rank that sits there now. A
plan deals the same seats to the ranks anew, so that every launcher can follow it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.witness.report import Process, Report

Numbers = NDArray[np.int64]

#: Distances of two seats, the nearest first; each but the last is also what both are in.
DISTANCES = (
    'within a NUMA domain',
    'between NUMA domains of a socket',
    'between sockets of a node',
    'between nodes of a switch',
    'between switches',
)


@dataclass(frozen=True, eq=False)
class Seats:
    """The seats of n ranks.

    :param groups: shape (4, n): the NUMA domain, socket, node and switch of each; numbers that mean
        nothing across its rows. Each divides those of the next row.
    :param kinds: shape (n,): seats of one kind have as many cores. A rank keeps its kind.
    :param hosts: the name of each one's host.
    :param cores: what each has: on its host the numbers of its cores, counted in hwloc's order.
    """

    groups: Numbers
    kinds: Numbers
    hosts: tuple[str, ...]
    cores: tuple[frozenset[int], ...]

    @property
    def overlap(self) -> bool:
        """Whether two seats have a core in common, as those of ranks that are not bound."""
        each = [
            (host, core) for host, its in zip(self.hosts, self.cores, strict=True) for core in its
        ]
        return len({*each}) < len(each)


def seats_of(report: Report, switches: Mapping[str, Collection[str]]) -> Seats:
    """The seats that a job's ranks had.

    :param switches: the nodes behind each switch, where that is known. The others are taken
        to be behind one of their own.
    """
    switch = {name: number for number, names in enumerate(switches.values()) for name in names}
    labels = []
    for one in report.processes:
        above = (switch.get(one.host, -1), one.host)
        socket = (*above, tuple(sorted(one.packages)))
        labels.append(((*socket, tuple(sorted(one.numa))), socket, above, above[:1]))
    groups = np.array([numbered(column) for column in zip(*labels, strict=True)])
    order = {host.name: _cores_in_order(report, host.name) for host in report.hosts}
    cores = tuple(
        frozenset(order[one.host].index(core) for core in one.cores if core in order[one.host])
        for one in report.processes
    )
    hosts = tuple(one.host for one in report.processes)
    return Seats(groups, numbered([len(one.cores) for one in report.processes]), hosts, cores)


def numbered(labels: Sequence[object]) -> Numbers:
    """Numbers from 0 in place of labels, in the order of their first."""
    known: dict[object, int] = {}
    return np.array([known.setdefault(one, len(known)) for one in labels], dtype=np.int64)


def _cores_in_order(report: Report, host: str) -> list[int]:
    """The cores of a host as hwloc counts them: by socket, domain and lowest CPU.

    Which socket a domain is in is known from the ranks that sat there.
    """
    (its,) = (one for one in report.hosts if one.name == host)
    domains = {domain.id: domain.cpus for domain in its.numa}
    socket = {
        next(iter(one.numa)): next(iter(one.packages))
        for one in report.processes
        if one.host == host and _is_within_a_domain(one)
    }
    first: dict[int, int] = {}
    for domain, cpus in domains.items():
        number = socket.get(domain, -1)
        first[number] = min(first.get(number, min(cpus)), min(cpus))

    def place(core: int) -> tuple[int, int, int]:
        for domain, cpus in domains.items():
            if core in cpus:
                return first[socket.get(domain, -1)], min(cpus), core
        return 0, 0, core

    return sorted(its.cores, key=place)


def _is_within_a_domain(process: Process) -> bool:
    return len(process.numa) == len(process.packages) == 1
