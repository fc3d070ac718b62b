"""Frequency of the cores under load, and what keeps them from it."""

import reframe as rfm

from assay.checks.benchmark import OF_DISTURBANCE, NodeBenchmark
from assay.programs.figure import Quantity


@rfm.simple_test
class Clock(NodeBenchmark):
    """All cores at once, without and with the widest vectors, a second each."""

    program = 'clock'
    arguments = ['--seconds 1']

    measures = {
        'scalar_frequency': Quantity('GHz', 'higher'),
        'vector_frequency': Quantity('GHz', 'higher', headline=True),
        'scalar_slowest_core': Quantity('1', 'higher', among_cores=True),
        'vector_slowest_core': Quantity('1', 'higher', among_cores=True),
        'vector_of_scalar': Quantity('1', 'higher'),
        'flops_per_cycle': Quantity('flop', 'higher'),
        'cycles_kept': Quantity('1', 'higher'),
        'longest_interruption': Quantity('us', 'lower'),
    } | OF_DISTURBANCE

    def figures(self):
        loads = {load: self.select(load=load) for load in ('scalar', 'vector')}
        middle = {load: one['frequency']['median'] for load, one in loads.items()}
        lowest = {load: one['frequency']['min'] for load, one in loads.items()}
        quanta = [rank['quantum'] for rank in loads['scalar']['ranks']]
        longest = max(quantum['longest'] - quantum['shortest'] for quantum in quanta)
        figures = self.as_figures(
            scalar_frequency=middle['scalar'] / 1e9,
            vector_frequency=middle['vector'] / 1e9,
            scalar_slowest_core=lowest['scalar'] / middle['scalar'],
            vector_slowest_core=lowest['vector'] / middle['vector'],
            vector_of_scalar=middle['vector'] / middle['scalar'],
            flops_per_cycle=loads['vector']['flops_per_cycle'],
            cycles_kept=1 - loads['scalar']['lost_share'],
            longest_interruption=longest * 1e6,
        )
        return figures | self.disturbance_figures()
