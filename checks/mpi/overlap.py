"""Whether messages travel while the ranks compute."""

from dataclasses import replace

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from assay.checks.benchmark import MpiBenchmark, assert_async_progress
from assay.checks.cases import scales
from assay.mpis import FAMILIES
from assay.programs.figure import Quantity

LARGEST = 16 << 20


@rfm.simple_test
class Overlap(MpiBenchmark):
    """Messages of 1 to 16 MiB both ways, with computation that takes as long.

    Outside the smoke mode it takes half and twice as long, too.

    `progress` is what moves the messages meanwhile: nothing, calls of MPI_Testall, or the MPI's
    own asynchronous progress, for which each rank has a second core. That has to hide something.
    """

    program = 'overlap'
    ranks = 2
    progress = parameter(['none', 'test', 'async'], type=str, loggable=True)
    layout = parameter(['packed', 'spread'], type=str)
    scale = parameter(scales(2), type=str)

    @property
    def is_smoke_case(self):
        return super().is_smoke_case and self.progress == 'none'

    @run_after('init')
    def set_progress(self):
        ratios = '1' if self.is_smoke_case else '0.5,1,2'
        self.arguments = [f'--max {LARGEST}', f'--ratios {ratios}', '--budget 0.06']
        if self.progress == 'test':
            self.arguments += ['--progress test']
        elif self.progress == 'async':
            self.arguments += ['--thread-multiple']
            self.cores_per_rank = 2
            self.valid_prog_environs = [
                f'+{family} +{self.fabric}'
                for family, mpi in FAMILIES.items()
                if mpi.async_progress
            ]

    @run_after('setup')
    def switch_on_async_progress(self):
        if self.progress == 'async':
            self.env_vars |= FAMILIES[self.family].async_progress.env

    def verify_answers(self):
        super().verify_answers()
        if self.progress == 'async':
            assert_async_progress(self.family, self.launch)

    measures = {
        'overlap': Quantity('1', 'higher', headline=True),
        'excess': Quantity('1', 'lower'),
    }

    def figures(self):
        points = [point for result in self.report['results'] for point in result['points']]
        even = next(p for p in self.select(size=LARGEST)['points'] if p['ratio'] == 1)
        figures = self.as_figures(
            overlap=hidden(even), excess=max(excess(point) for point in points)
        )
        if self.progress == 'async':
            figures['overlap'] = replace(figures['overlap'], must_be_held=True)
        return figures


#: Bytes of an allreduce, and those of an alltoall to all ranks and to one at most.
REDUCED, EXCHANGED, BLOCK = 1 << 20, 16 << 20, 64 << 10


@rfm.simple_test
class CollectivesOverlap(MpiBenchmark):
    """A nonblocking allreduce and alltoall of all ranks, with computation that takes as long.

    The computation calls MPI_Testall in between, without which few MPIs go on with a collective.
    """

    program = 'overlap'
    operation = parameter(['allreduce', 'alltoall'], type=str, loggable=True)
    scale = parameter(scales(), type=str)
    is_smoke_case = False

    @run_after('setup')
    def set_size(self):
        block = max(8, min(BLOCK, EXCHANGED // (8 * self.num_tasks) * 8))
        self.size = REDUCED if self.operation == 'allreduce' else block
        self.arguments = [
            *(f'--operation {self.operation}', f'--min {self.size} --max {self.size}'),
            *('--ratios 1', '--progress test', '--budget 0.2'),
        ]

    measures = {
        'overlap': Quantity('1', 'higher', headline=True),
        'excess': Quantity('1', 'lower', must_be_held=True),
        'collective_time': Quantity('us', 'lower'),
    }

    def figures(self):
        (point,) = self.select(size=self.size)['points']
        return self.as_figures(
            overlap=hidden(point), excess=excess(point), collective_time=best(point)[0] * 1e6
        )


def best(point):
    """The best times of communication, computation, and both together, in seconds."""
    return [point[part]['time']['best'] for part in ('communication', 'computation', 'total')]


def hidden(point):
    """The share of the shorter of the two that was hidden behind the other."""
    communication, computation, total = best(point)
    return (communication + computation - total) / min(communication, computation)


def excess(point):
    """Time of both together over their sum: more than 1 is time that overlapping cost."""
    communication, computation, total = best(point)
    return total / (communication + computation)
