"""Heat diffusion with halo exchange: what communication costs a stencil code."""

import math

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from assay.checks.benchmark import MpiBenchmark, refusing, whole_of_best
from assay.checks.cases import scales
from assay.programs.application import WHOLE_OF_BEST
from assay.programs.benchmarks import check_halo
from assay.programs.figure import Quantity

STEPS = 4


@rfm.simple_test
class Halo(MpiBenchmark):
    """A 3-D mesh on a 2-D rank grid with one rank per core, about a million points to a rank.

    Efficiency is the rate over that of the same update without any exchange, in the same job.
    """

    program = 'halo'
    witness_sections = 'placement,fabric,profile,matrix'
    always_sends = frozenset()  # as many chunks as there is time for
    layout = parameter(['packed', 'spread', 'one-per-numa'], type=str)
    scale = parameter(scales(), type=str)

    @run_after('setup')
    def set_mesh(self):
        # The rank grid as MPI_Dims_create makes it: as square as it can be, the larger side first.
        side = int(math.sqrt(self.num_tasks))
        y = next(n for n in range(side, 0, -1) if self.num_tasks % n == 0)
        x = self.num_tasks // y
        self.mesh = (64 * x, 128 * y, 128)
        edges = ','.join(map(str, self.mesh))
        self.arguments = [f'--n {edges}', f'--steps {STEPS}', '--budget 0.3']

    def verify_answers(self):
        super().verify_answers()
        with refusing(self.program):
            check_halo(self.report, self.mesh, STEPS)

    measures = {
        'rate': Quantity('Mpoints/s', 'higher'),
        'rate_whole_of_best': WHOLE_OF_BEST,
        'communication_share': Quantity('1', 'lower'),
        'efficiency': Quantity('1', 'higher', headline=True),
        'overlapped_efficiency': Quantity('1', 'higher'),
    }

    def figures(self):
        blocking = self.select(method='blocking')
        # The best chunks of each, so that a passing disturbance of the machine does not count.
        best = {entry['method']: entry['time']['best'] for entry in self.report['results']}
        return self.named(
            rate=blocking['points_per_second'] / 1e6,
            rate_whole_of_best=whole_of_best(blocking['time']),
            communication_share=blocking['communication_share']['avg'],
            efficiency=best['compute_only'] / best['blocking'],
            overlapped_efficiency=best['compute_only'] / best['overlapped'],
        )
