"""Checks of single nodes: the benchmarks in ``sources/node``."""

from __future__ import annotations

from reframe.core.builtins import parameter

from assay.benchmark import MpiBenchmark
from assay.figure import Figure


class NodeBenchmark(MpiBenchmark):
    """A benchmark of ``sources/node``: what a node's cores and memory give, whatever its network.

    One rank is enough. The report tells what disturbed the node while it was measured.
    """

    fabric = parameter(['shm'], type=str, loggable=True)
    witness_sections = 'placement,fabric'
    least_ranks = 1

    def disturbance_figures(self) -> dict[str, Figure]:
        """The share of the CPU time that other processes, hypervisor and quotas left."""
        lost = self.report['disturbance']
        share = 1 - sum(
            lost[name] for name in ('foreign_busy_share', 'steal_share', 'throttled_share')
        )
        return {'undisturbed_share': Figure(max(share, 0.0), '1', 'higher')}
