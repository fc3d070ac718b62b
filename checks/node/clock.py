"""Frequency of the cores under load, and what keeps them from it."""

import reframe as rfm

from assay.checks.node_benchmark import NodeBenchmark
from assay.programs.figure import Figure


@rfm.simple_test
class Clock(NodeBenchmark):
    """All cores at once, without and with the widest vectors, a second each."""

    program = 'clock'
    arguments = ['--seconds 1']

    def figures(self):
        scalar, vector = self.select(load='scalar'), self.select(load='vector')
        figures = {
            f'{entry["load"]}_frequency': Figure(
                entry['frequency']['median'] / 1e9,
                'GHz',
                'higher',
                headline=entry is vector,
            )
            for entry in (scalar, vector)
        }
        for entry in (scalar, vector):
            evenness = entry['frequency']['min'] / entry['frequency']['median']
            figures[f'{entry["load"]}_slowest_core'] = Figure(
                evenness, '1', 'higher', among_cores=True
            )
        ratio = vector['frequency']['median'] / scalar['frequency']['median']
        return figures | {
            'vector_of_scalar': Figure(ratio, '1', 'higher'),
            'flops_per_cycle': Figure(vector['flops_per_cycle'], 'flop', 'higher'),
            'cycles_kept': Figure(1 - scalar['lost_share'], '1', 'higher'),
            **self.disturbance_figures(),
        }
