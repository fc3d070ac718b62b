"""Heat diffusion with halo exchange: what communication costs a stencil code."""

import math
from dataclasses import replace

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before

from assay.checks.benchmark import MpiBenchmark, whole_of_best
from assay.checks.cases import scales
from assay.layout.layouts import THREADS
from assay.programs.application import WHOLE_OF_BEST
from assay.programs.benchmarks import check_halo
from assay.programs.figure import Quantity

STEPS = 4

#: The layout that hardware threads are held against, and the folder of its start.
PACKED = 'packed'


@rfm.simple_test
class Halo(MpiBenchmark):
    """A 3-D mesh on a 2-D rank grid with one rank per core, about a million points to a rank.

    Efficiency is the rate over that of the same update without any exchange, in the same job.
    With a rank on each hardware thread one of a rank on each core is measured in the job, too.
    """

    program = 'halo'
    witness_sections = 'placement,fabric,profile,matrix'
    always_sends = frozenset()  # as many chunks as there is time for
    layout = parameter(['packed', 'spread', 'one-per-numa', THREADS], type=str)
    scale = parameter(scales(), type=str)

    @run_after('init')
    def use_threads_on_one_node(self):
        if self.layout == THREADS:
            self.narrow_to_first_fabric()
            if self.scale != '1_node':
                self.valid_systems = []

    @run_after('setup')
    def set_mesh(self):
        self.arguments = arguments(self.mesh_of(self.placement))

    @run_before('run')
    def run_packed_beside_threads(self):
        if self.layout == THREADS:
            self.start_beside(PACKED, self.packed, arguments(self.mesh_of(self.packed)))

    @property
    def packed(self):
        placement = self.place(None, self.cores_per_rank, PACKED)
        # Where srun may use hardware threads it puts two of these ranks on a core.
        options = ['--threads-per-core=1'] if self.is_by_srun else []
        return replace(placement, options=[*placement.options, *options])

    def mesh_of(self, placement):
        return mesh(placement.ranks * self.node_count)

    def check_report(self, report, placement):
        check_halo(report, self.mesh_of(placement), STEPS)

    def verify_answers(self):
        super().verify_answers()
        if self.layout == THREADS:
            self.rate_of_packed = rate(self.report_beside(PACKED, self.packed, PACKED))

    measures = {
        'rate': Quantity('Mpoints/s', 'higher'),
        'rate_whole_of_best': WHOLE_OF_BEST,
        'communication_share': Quantity('1', 'lower'),
        'efficiency': Quantity('1', 'higher', headline=True),
        'overlapped_efficiency': Quantity('1', 'higher'),
        'threads_of_packed': Quantity('1', 'higher'),
    }

    def figures(self):
        blocking = self.select(method='blocking')
        # The best chunks of each, so that a passing disturbance of the machine does not count.
        best = {entry['method']: entry['time']['best'] for entry in self.report['results']}
        compared = {}
        if self.layout == THREADS:
            compared['threads_of_packed'] = rate(self.report) / self.rate_of_packed
        return self.as_figures(
            **compared,
            rate=rate(self.report) / 1e6,
            rate_whole_of_best=whole_of_best(blocking['time']),
            communication_share=blocking['communication_share']['avg'],
            efficiency=best['compute_only'] / best['blocking'],
            overlapped_efficiency=best['compute_only'] / best['overlapped'],
        )


def mesh(ranks):
    """The edges of the mesh for so many ranks.

    The rank grid is as MPI_Dims_create makes it: as square as it can be, the larger side first.
    """
    side = int(math.sqrt(ranks))
    y = next(n for n in range(side, 0, -1) if ranks % n == 0)
    return 64 * (ranks // y), 128 * y, 128


def arguments(mesh):
    """The program's arguments for a mesh."""
    return [f'--n {",".join(map(str, mesh))}', f'--steps {STEPS}', '--budget 0.3']


def rate(report):
    """Points that all ranks together updated in a second, by blocking messages."""
    methods = {entry['method']: entry for entry in report['results']}
    return methods['blocking']['points_per_second']
