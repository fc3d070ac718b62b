"""Heat diffusion with halo exchange: what communication costs a stencil code."""

import math
from dataclasses import replace

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before
from reframe.core.exceptions import SanityError

from assay.checks.benchmark import MpiBenchmark, whole_of_best
from assay.checks.cases import scales
from assay.layout.layouts import THREADS
from assay.programs.application import WHOLE_OF_BEST, WrongAnswerError
from assay.programs.benchmarks import check_halo
from assay.programs.figure import Quantity
from assay.witness.placement import misplaced_progress_thread

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


#: The name of the thread in sources/mpi/progress.h, and the folder of the start without threads.
PROGRESS, ALL_CORES = 'progress', 'all_cores'


@rfm.simple_test
class HaloProgress(MpiBenchmark):
    """Whether a progress thread is worth the core that it takes from the computation.

    Each rank computes on one core, and a thread of it that is pinned to a second one calls MPI
    meanwhile. In the same job a rank on each of these cores computes the same mesh without
    threads. The mesh of ``weak`` grows with the nodes; that of ``strong`` is the one of a node.
    """

    program = 'halo'
    always_sends = frozenset()  # as many chunks as there is time for
    cores_per_rank = 2
    scaling = parameter(['weak', 'strong'], type=str, loggable=True)
    scale = parameter(scales(), type=str)
    is_smoke_case = False
    is_maintenance_case = False

    @run_after('init')
    def leave_out_the_same(self):
        if self.scaling == 'strong' and self.scale == '1_node':
            self.valid_systems = []

    @run_after('setup')
    def set_arguments(self):
        self.arguments = [*arguments(self.mesh), '--progress-thread']

    @run_before('run')
    def run_all_cores_first(self):
        self.start_beside(ALL_CORES, self.all_cores, arguments(self.mesh))

    @property
    def all_cores(self):
        return self.place(self.cores_per_rank * self.placement.ranks, 1)

    @property
    def mesh(self):
        ranks = self.all_cores.ranks
        return mesh(ranks * self.node_count if self.scaling == 'weak' else ranks)

    def check_report(self, report, placement):
        check_halo(report, self.mesh, STEPS)
        if placement is self.placement:
            chunks = self.select(method='threaded')['clocks']['operations'] / STEPS
            # Each chunk and the warm-up begins with a call, before any message.
            if report['progress_calls'] <= chunks + 1:
                raise WrongAnswerError(
                    'the progress thread never called MPI while messages were under way'
                )

    def verify_answers(self):
        super().verify_answers()
        if fault := misplaced_progress_thread(self.launch.witnessed, PROGRESS):
            raise SanityError(fault)
        self.of_all_cores = self.report_beside(ALL_CORES, self.all_cores, self.layout)

    measures = {
        'rate': Quantity('Mpoints/s', 'higher'),
        'efficiency': Quantity('1', 'higher'),
        'wait_of_blocking': Quantity('1', 'lower'),
        'wait_of_blocking_without_thread': Quantity('1', 'lower'),
        'thread_of_no_thread': Quantity('1', 'higher'),
        'thread_of_all_cores': Quantity('1', 'higher', headline=True),
    }

    def figures(self):
        threaded, overlapped = self.select(method='threaded'), self.select(method='overlapped')
        alone, blocking = self.select(method='compute_only'), self.select(method='blocking')
        without = max(
            entry['points_per_second']
            for entry in self.of_all_cores['results']
            if entry['method'] != 'compute_only'
        )
        return self.as_figures(
            rate=threaded['points_per_second'] / 1e6,
            efficiency=alone['time']['best'] / threaded['time']['best'],
            wait_of_blocking=waiting(threaded) / waiting(blocking),
            wait_of_blocking_without_thread=waiting(overlapped) / waiting(blocking),
            thread_of_no_thread=overlapped['time']['best'] / threaded['time']['best'],
            thread_of_all_cores=threaded['points_per_second'] / without,
        )


def waiting(result):
    """Seconds of a step that a rank is in calls of MPI, of all chunks; each calls, so above 0."""
    clocks = result['clocks']
    return result['communication_share']['avg'] * clocks['seconds'] / clocks['operations']


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
