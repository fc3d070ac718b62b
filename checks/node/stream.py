"""Memory bandwidth of a node, as STREAM counts it."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from assay.checks.benchmark import refusing, whole_of_best
from assay.checks.node_benchmark import NodeBenchmark
from assay.programs.benchmarks import check_stream
from assay.programs.figure import Figure

OPERATIONS = ('copy', 'scale', 'add', 'triad')


@rfm.simple_test
class Stream(NodeBenchmark):
    """Arrays of four times the last-level caches, all cores at once.

    In layout ``hybrid`` a rank is a NUMA domain, and each is also measured by itself.
    """

    program = 'stream'
    layout = parameter(['packed', 'hybrid'], type=str, loggable=True)

    @run_after('setup')
    def measure_domains(self):
        self.arguments = ['--alone'] if self.layout == 'hybrid' else []

    def verify_answers(self):
        super().verify_answers()
        with refusing(self.program):
            check_stream(self.report)

    def figures(self):
        triad = self.select(operation='triad', ranks='together')
        figures = {
            operation: Figure(
                self.select(operation=operation, ranks='together')['bandwidth']['best'] / 1e9,
                'GB/s',
                'higher',
                headline=operation == 'triad',
            )
            for operation in OPERATIONS
        }
        evenness = triad['slowest']['bandwidth'] / triad['fastest']['bandwidth']
        figures['triad_whole_of_best'] = whole_of_best(triad['time'])
        figures['slowest_rank_of_fastest'] = Figure(evenness, '1', 'higher', among_cores=True)
        if self.layout == 'hybrid':
            alone = self.select(operation='triad', ranks='alone')
            together = triad['bandwidth']['best'] / alone['bandwidth']['best']
            figures['domains_together_of_alone'] = Figure(together, '1', 'higher')
        return figures | self.disturbance_figures()
