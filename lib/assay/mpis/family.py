"""What the suite has to know of an MPI."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

#: Options of a launcher, and variables of a job.
Words = tuple[list[str], dict[str, str]]


@dataclass(frozen=True)
class Family:
    """An MPI: its releases and builds speak the same language.

    :param key: its name in environments, features and options.
    :param name: as sentences call it.
    :param bind: what its own launcher is told for a layout (:mod:`assay.layout`), with so many
        ranks on each node and so many threads of each rank.
    """

    key: str
    name: str
    bind: Callable[[str, int, int], Words]
