"""Checks of single nodes: the benchmarks in ``sources/node``."""

from __future__ import annotations

from reframe.core.builtins import parameter, run_after

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import offered
from assay.config.fabrics import load_catalogue
from assay.programs.figure import Figure

WITHIN_A_NODE = [name for name, one in load_catalogue().fabrics.items() if not one.crosses_nodes]


class NodeBenchmark(MpiBenchmark):
    """A benchmark of ``sources/node``: what a node's cores and memory give, whatever its network.

    One rank is enough. The report tells what disturbed the node while it was measured.
    """

    fabric: str = parameter(offered(WITHIN_A_NODE), type=str, loggable=True)
    witness_sections = 'placement,fabric'
    least_ranks = 1

    @run_after('init')
    def run_once(self) -> None:
        self.narrow_to_first_fabric()

    def disturbance_figures(self) -> dict[str, Figure]:
        """The share of the CPU time that other processes, hypervisor and quotas left."""
        lost = self.report['disturbance']
        share = 1 - sum(
            lost[name] for name in ('foreign_busy_share', 'steal_share', 'throttled_share')
        )
        return {'undisturbed_share': Figure(max(share, 0.0), '1', 'higher')}
