"""Memory bandwidth of a node, as STREAM counts it."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from assay.checks.benchmark import OF_DISTURBANCE, NodeBenchmark, whole_of_best
from assay.programs.application import WHOLE_OF_BEST
from assay.programs.figure import Quantity

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

    measures = {
        **dict.fromkeys(('copy', 'scale', 'add'), Quantity('GB/s', 'higher')),
        'triad': Quantity('GB/s', 'higher', headline=True),
        'triad_whole_of_best': WHOLE_OF_BEST,
        'slowest_rank_of_fastest': Quantity('1', 'higher', among_cores=True),
        'domains_together_of_alone': Quantity('1', 'higher'),
    } | OF_DISTURBANCE

    def figures(self):
        together = {
            operation: self.select(operation=operation, ranks='together')
            for operation in OPERATIONS
        }
        triad = together['triad']
        values = {name: one['bandwidth']['best'] / 1e9 for name, one in together.items()}
        values['triad_whole_of_best'] = whole_of_best(triad['time'])
        values['slowest_rank_of_fastest'] = (
            triad['slowest']['bandwidth'] / triad['fastest']['bandwidth']
        )
        if self.layout == 'hybrid':
            alone = self.select(operation='triad', ranks='alone')
            values['domains_together_of_alone'] = (
                triad['bandwidth']['best'] / alone['bandwidth']['best']
            )
        return self.as_figures(**values) | self.disturbance_figures()
