"""Ranks, their seats, how far apart these are, and what messages between them cost.

A seat is what a rank may use: CPUs of a host. It has the number of the rank that sits there now. A
plan deals the same seats to the ranks anew, so that every launcher can follow it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.witness.report import Report

Numbers = NDArray[np.int64]


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
    groups = np.array([number_labels(column) for column in zip(*labels, strict=True)])
    order = {host.name: _cores_in_order(report, host.name) for host in report.hosts}
    cores = tuple(
        frozenset(order[one.host].index(core) for core in one.cores if core in order[one.host])
        for one in report.processes
    )
    hosts = tuple(one.host for one in report.processes)
    return Seats(groups, number_labels([len(one.cores) for one in report.processes]), hosts, cores)


def number_labels(labels: Sequence[object]) -> Numbers:
    """Numbers from 0 in place of labels, in the order of their first."""
    known: dict[object, int] = {}
    return np.array([known.setdefault(one, len(known)) for one in labels], dtype=np.int64)


def _cores_in_order(report: Report, host: str) -> list[int]:
    """The cores of a host as hwloc counts them: by socket, domain and lowest CPU.

    Which socket a domain is in is known from the ranks that sat there.
    """
    (its,) = (one for one in report.hosts if one.name == host)
    domains = {domain.id: domain.cpus for domain in its.numa if domain.cpus}
    socket = {
        next(iter(one.numa)): next(iter(one.packages))
        for one in report.processes
        if one.host == host and len(one.numa) == len(one.packages) == 1
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


Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]

#: What saves less than this share of the whole is noise of rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class PlacingProblem:
    """n ranks, n seats, and what messages between them cost. Seat i is that of rank i now.

    :param messages: shape (n, n), sparse and symmetric: messages of each two ranks, both ways.
    :param bytes: likewise.
    :param groups: shape (K, n): the group of each seat on each level, the smallest first; each
        divides those of the next level. Seats are as far apart as the number of levels on which
        they are in two groups.
    :param latency: shape (K + 1,), seconds of a message, by distance; not falling.
    :param per_byte: shape (K + 1,), seconds of a byte, likewise.
    :param kinds: shape (n,): ranks and seats of one kind fit each other.
    :param fixed: shape (n,): ranks that stay.
    """

    messages: Any
    bytes: Any
    groups: Numbers
    latency: Floats
    per_byte: Floats
    kinds: Numbers
    fixed: Truths

    @property
    def ranks(self) -> int:
        return len(self.kinds)

    @cached_property
    def pairs(self) -> tuple[Numbers, Numbers, Floats, Floats]:
        """Each two ranks that talk once, with their messages and bytes: four of shape (P,)."""
        from scipy.sparse import coo_array, triu

        both = triu(coo_array(self.messages), 1) * (1 + 0j) + triu(coo_array(self.bytes), 1) * 1j
        found = coo_array(both)
        one, other = found.coords
        return one, other, found.data.real, found.data.imag

    def distances(self, seat: Numbers) -> Numbers:
        """How far apart each two ranks that talk sit: shape (P,).

        :param seat: shape (n,), the seat of each rank.
        """
        one, other, *_ = self.pairs
        return np.asarray((self.groups[:, seat[one]] != self.groups[:, seat[other]]).sum(axis=0))

    def of_pairs(self, seat: Numbers) -> Floats:
        """Seconds of the messages of each two ranks that talk: shape (P,)."""
        _, _, messages, size = self.pairs
        far = self.distances(seat)
        return np.asarray(messages * self.latency[far] + size * self.per_byte[far])

    def cost(self, seat: Numbers) -> float:
        """Seconds of all messages, one after the other."""
        return float(self.of_pairs(seat).sum())

    def reduce(self) -> PlacingProblem:
        """Without levels that divide nothing, and distances that no two seats have.

        A level goes if it has one group, a group for each seat, or the groups of the next one.
        """
        groups = [*self.groups]
        latency, per_byte = [*self.latency], [*self.per_byte]
        counts = [len(np.unique(one)) for one in groups]
        for level in reversed(range(len(groups))):
            above = counts[level + 1] if level + 1 < len(groups) else 1
            if counts[level] == above:
                del groups[level], latency[level + 1], per_byte[level + 1], counts[level]
        if groups and counts[0] == self.ranks:
            del groups[0], latency[0], per_byte[0]
        numbers = [np.unique(one, return_inverse=True)[1] for one in groups]
        left = np.array(numbers, dtype=np.int64).reshape(-1, self.ranks)
        return replace(self, groups=left, latency=np.array(latency), per_byte=np.array(per_byte))


def partners_of(values: Any, rank: int) -> tuple[Numbers, Floats]:
    """The ranks that a rank talks to, and how much."""
    part = slice(values.indptr[rank], values.indptr[rank + 1])
    return values.indices[part], values.data[part]
