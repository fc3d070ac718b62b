"""The rate of matrix products: what a dense code can get of a node's cores."""

import reframe as rfm
from reframe.core.builtins import parameter

from assay.checks.node_benchmark import NodeBenchmark
from assay.programs.figure import Figure


@rfm.simple_test
class Dgemm(NodeBenchmark):
    """Square matrices of 2000 rows for each rank, all cores at once."""

    program = 'dgemm'
    layout = parameter(['packed', 'hybrid'], type=str, loggable=True)

    def figures(self):
        (result,) = self.report['results']
        ranks = result['rank_rates']
        return {
            'rate': Figure(result['rate'] / 1e9, 'Gflop/s', 'higher', headline=True),
            'rate_of_limit': Figure(
                result['rate_best'] / result['limit'], '1', 'higher', must_be_held=True
            ),
            'slowest_rank_of_median': Figure(
                ranks['min'] / ranks['median'], '1', 'higher', among_cores=True
            ),
            **self.disturbance_figures(),
        }
