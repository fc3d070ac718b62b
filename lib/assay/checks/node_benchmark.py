"""Checks of single nodes: the benchmarks in ``sources/node``."""

from __future__ import annotations

from dataclasses import replace

import reframe.core.runtime as rt
from reframe.core.builtins import parameter, run_after
from reframe.core.environments import ProgEnvironment

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import offered
from assay.config.environments import MEASURES_NODES, OURS, feature
from assay.config.fabrics import load_catalogue
from assay.machine.provenance import Provenance
from assay.programs.figure import Figure, Quantity, figures_of

#: The flags of what measures a node: sources/CMakeLists.txt puts them (ASSAY_LIMITS) behind a
#: site's own.
OWN_FLAGS = "the suite's own"

#: What sources/node/vector_kernels.c takes of a site's flags where it cannot ask the processor.
WIDTH_OF_VECTORS = '-msve-vector-bits='

#: The share of the CPU time that other processes, hypervisor and quotas left.
OF_DISTURBANCE = {'undisturbed_share': Quantity('1', 'higher')}

WITHIN_A_NODE = [name for name, one in load_catalogue().fabrics.items() if not one.crosses_nodes]


class NodeBenchmark(MpiBenchmark):
    """A benchmark of ``sources/node``: what a node's cores and memory give, whatever its network.

    One rank is enough. The report tells what disturbed the node while it was measured. No figure
    is of the MPI that starts the ranks, so a partition is measured with one of its environments.
    """

    fabric: str = parameter(offered(WITHIN_A_NODE), type=str, loggable=True)
    witness_sections = 'placement,fabric'
    least_ranks = 1

    @run_after('init')
    def run_once(self) -> None:
        mark_who_measures_nodes()
        self.valid_prog_environs = [f'+{_mark(self.fabric)}']

    @property
    def provenance(self) -> Provenance:
        """Of the program: no figure of it depends on the flags that the site builds with.

        One does, on AArch64: that which says how wide the vectors are.
        """
        built = super().provenance
        return built if WIDTH_OF_VECTORS in built.flags else replace(built, flags=OWN_FLAGS)

    def disturbance_figures(self) -> dict[str, Figure]:
        """What :data:`OF_DISTURBANCE` declares."""
        lost = self.report['disturbance']
        share = 1 - sum(
            lost[name] for name in ('foreign_busy_share', 'steal_share', 'throttled_share')
        )
        return figures_of(OF_DISTURBANCE, {'undisturbed_share': max(share, 0.0)})


def mark_who_measures_nodes() -> None:
    """Give one environment of each partition a feature: by which fabric it measures the nodes.

    It is the first of the partition's ``environs``, of those that ReFrame's ``-p`` leaves; an MPI
    that does not answer comes last, and where Spack builds our programs those that it builds for
    come first.
    """
    for partition in rt.runtime().system.partitions:
        able = [
            (environment, name)
            for environment in partition.environs
            for name in WITHIN_A_NODE
            if name in partition.features and name in environment.features
        ]
        if able:
            first, fabric = min(able, key=lambda one: _last_choice(one[0]))
            # ReFrame matches environments without their partition, which has objects of its own
            # for them, but shares their lists.
            first._features = [*{*first.features, _mark(fabric)}]


def _last_choice(environment: ProgEnvironment) -> tuple[bool, bool]:
    return 'fault' in environment.extras, feature(OURS) not in environment.features


def _mark(fabric: str) -> str:
    """The feature of an environment that measures nodes by this fabric."""
    return f'{MEASURES_NODES}{fabric}'
