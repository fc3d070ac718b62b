"""The rate of matrix products: what a dense code can get of a node's cores."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from assay.checks.benchmark import (
    OF_DISTURBANCE,
    NodeBenchmark,
    over_limit,
    whole_of_best,
)
from assay.programs.application import WHOLE_OF_BEST
from assay.programs.benchmarks import check_dgemm
from assay.programs.figure import Quantity


@rfm.simple_test
class Dgemm(NodeBenchmark):
    """Square matrices of 500 rows for each thread of a rank, 2000 at most, all cores at once.

    A product then takes some ms, so that many of them end before others want the core.
    """

    program = 'dgemm'
    layout = parameter(['packed', 'hybrid'], type=str, loggable=True)

    @run_after('setup')
    def set_order(self):
        self.order = min(500 * self.placement.threads, 2000)
        self.arguments = [f'--n {self.order}']

    def check_report(self, report, placement):
        check_dgemm(report, self.order)

    measures = {
        'rate': Quantity('Gflop/s', 'higher', headline=True),
        'rate_whole_of_best': WHOLE_OF_BEST,
        'rate_of_limit': Quantity('1', 'higher', must_be_held=True),
        'slowest_rank_of_median': Quantity('1', 'higher', among_cores=True),
    } | OF_DISTURBANCE

    def figures(self):
        (result,) = self.report['results']
        ranks = result['rank_rates']
        operations = result['rate_best'] * result['time']['best']
        over = over_limit(result['bouts'], [operations / limit for limit in result['limits']])
        figures = self.as_figures(
            rate=result['rate_best'] / 1e9,
            rate_whole_of_best=whole_of_best(result['time']),
            rate_of_limit=1 / over,
            slowest_rank_of_median=ranks['min'] / ranks['median'],
        )
        return figures | self.disturbance_figures()
