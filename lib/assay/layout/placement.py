"""What a layout puts on a node."""

from __future__ import annotations

from dataclasses import dataclass, field


class DoesNotFitError(ValueError):
    """A node has too few cores for the ranks."""


@dataclass(frozen=True)
class Node:
    """What a layout needs to know of a node.

    :param cores: physical cores.
    :param numa_domains: NUMA domains.
    """

    cores: int
    numa_domains: int


@dataclass(frozen=True)
class Placement:
    """Ranks and threads of a node, and the options of the launcher.

    :param ranks: ranks on each node.
    :param threads: threads (and cores) of each rank.
    :param options: options for the launcher.
    :param env: environment variables for the job.
    :param widths: threads (and cores) of each rank of a node in turn, where they differ;
        ``threads`` is the least of them.
    :param cpus: CPUs that the scheduler must give each rank, which may use more than it has threads
        for; None where they differ.
    """

    ranks: int
    threads: int
    options: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    widths: tuple[int, ...] = ()
    cpus: int | None = None

    @property
    def cores(self) -> tuple[int, ...]:
        """Cores of each rank of a node in turn."""
        return self.widths or (self.threads,) * self.ranks
