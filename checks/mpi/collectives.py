"""Collective operations between all ranks of a node or of several."""

import math

import reframe as rfm
from reframe.core.builtins import parameter

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import scales
from assay.programs.figure import Figure

#: A barrier has none.
NO_SIZE = 0
SMALL, LARGE = 8, 64 << 10
OPERATIONS = (
    *('barrier', 'bcast', 'reduce', 'allreduce', 'allgather'),
    *('alltoall', 'reduce_scatter', 'scatter', 'gather'),
)


@rfm.simple_test
class Collectives(MpiBenchmark):
    """Nine operations from 8 B to 64 KiB, as multiples of the same MPI's ping-pong.

    An operation between N ranks needs at least ceil(log2 N) messages one after the other, so it is
    held against that many ping-pong latencies, measured in the same job.
    """

    program = 'collectives'
    arguments = [
        *('--limits', f'--max {LARGE}', '--ci 0.01', '--budget 0.03'),
        f'--focus {NO_SIZE},{SMALL},{LARGE}',
    ]
    layout = parameter(['packed', 'spread'], type=str)
    scale = parameter(scales(), type=str)

    def figures(self):
        latency = self.report['limits']['ping_pong']['latency']
        steps = math.ceil(math.log2(self.num_tasks))
        small = {
            op: self.select(op=op, size=NO_SIZE if op == 'barrier' else SMALL)['time']
            for op in OPERATIONS
        }
        large = self.select(op='allreduce', size=LARGE)['time']['median']
        figures = {
            'allreduce_time': Figure(
                small['allreduce']['median'] * 1e6, 'us', 'lower', headline=True
            ),
            'allreduce_large_time': Figure(large * 1e6, 'us', 'lower'),
        }
        for op, time in small.items():
            over = time['min'] / (steps * latency)
            figures[f'{op}_over_ping_pong'] = Figure(over, '1', 'lower', must_be_held=True)
        return figures
