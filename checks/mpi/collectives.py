"""Collective operations between all ranks of a node or of several."""

import math

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before

from assay.checks.benchmark import (
    LARGE,
    LARGEST,
    MpiBenchmark,
    largest_block,
    whole_of_best,
)
from assay.checks.cases import scales
from assay.mpis import FAMILIES
from assay.programs.application import WHOLE_OF_BEST
from assay.programs.figure import Quantity
from assay.programs.guidelines import guidelines, violations
from assay.text import many

#: A barrier has none.
NO_SIZE = 0
SMALL, MEDIUM = 8, 8 << 10
OPERATIONS = (
    *('barrier', 'bcast', 'reduce', 'allreduce', 'allgather'),
    *('alltoall', 'reduce_scatter', 'scatter', 'gather'),
)

#: The sizes above SMALL that all operations have figures of, by their names in these.
SIZES = {'8k': MEDIUM, '1m': LARGEST}


@rfm.simple_test
class Collectives(MpiBenchmark):
    """Nine operations from 8 B to 1 MiB, at 8 B as multiples of the same MPI's ping-pong.

    An operation between N ranks needs at least ceil(log2 N) messages one after the other, so it is
    held against that many ping-pong latencies, measured in the same job. With many ranks sizes end
    at 64 KiB. None ought to take longer than others that do the same, measured in turn with it.
    Where one does, that is reported.
    """

    program = 'collectives'
    layout = parameter(['packed', 'spread'], type=str)
    scale = parameter(scales(), type=str)
    #: Others may have had the cores while the guidelines were measured.
    may_lack = frozenset({'worst_guideline'})

    measures = {
        'allreduce_time': Quantity('us', 'lower', headline=True),
        'allreduce_large_time': Quantity('us', 'lower'),
        'allreduce_whole_of_best': WHOLE_OF_BEST,
        'worst_guideline': Quantity('1', 'lower'),
        **{f'{op}_over_ping_pong': Quantity('1', 'lower', must_be_held=True) for op in OPERATIONS},
        **{f'{op}_{size}_time': Quantity('us', 'lower') for op in OPERATIONS for size in SIZES},
    }

    @property
    def sizes(self):
        """The measured sizes, out of SIZES."""
        most = largest_block(self.num_tasks)
        return {name: size for name, size in SIZES.items() if size <= most}

    @run_after('setup')
    def set_sizes(self):
        largest = max(LARGE, *self.sizes.values())
        focus = sorted({NO_SIZE, SMALL, LARGE, *self.sizes.values()})
        self.arguments = [
            *('--limits', '--guidelines', f'--max {largest}', '--ci 0.01', '--budget 0.04'),
            f'--focus {",".join(map(str, focus))}',
        ]

    def figures(self):
        latency = self.report['limits']['ping_pong']['latency']
        steps = math.ceil(math.log2(self.num_tasks))
        small = {
            op: self.select(op=op, size=NO_SIZE if op == 'barrier' else SMALL)['time']
            for op in OPERATIONS
        }
        large = self.select(op='allreduce', size=LARGE)['time']
        values = {
            'allreduce_time': small['allreduce']['best'] * 1e6,
            'allreduce_large_time': large['best'] * 1e6,
            'allreduce_whole_of_best': whole_of_best(small['allreduce']),
        }
        if held := guidelines(self.report['guidelines'], self.num_tasks):
            values['worst_guideline'] = held[0].excess
            self.tell_violations(held)
        for op, time in small.items():
            values[f'{op}_over_ping_pong'] = time['best'] / (steps * latency)
            if op == 'barrier':
                continue
            for name, size in self.sizes.items():
                values[f'{op}_{name}_time'] = self.select(op=op, size=size)['time']['best'] * 1e6
        return self.as_figures(**values)

    def tell_violations(self, held):
        if said := violations(held):
            extras = self.current_environ.extras
            mpi = f'{FAMILIES[self.family].name} {extras.get("version", "")}'.strip()
            more = f', and {many(len(said) - 1, "more violation")}' if said[1:] else ''
            self.remark(f'{mpi} over {self.fabric}, {self.layout}: {said[0]}{more}')


#: Operations beside OPERATIONS, and how many messages follow each other in a simple one of N ranks.
OTHERS = {
    **dict.fromkeys(('scan', 'exscan', 'alltoallv', 'scatterv', 'gatherv'), lambda n: n - 1),
    'allgatherv': lambda n: math.ceil(math.log2(n)),
    **dict.fromkeys(('neighbor_allgather', 'neighbor_alltoall'), lambda n: 1),
}

#: Seconds. Making a communicator is held to no shorter latency.
NETWORK_LATENCY = 2e-6

#: What makes a communicator and frees it again, in the time of a call; none has a size.
MAKERS = ('comm_dup', 'comm_split')

#: The folder of the start in which the ways to call operations are compared, its layout, and these.
CALLS, PACKED = 'calls', 'packed'
CALLED = ('barrier', 'bcast', 'allreduce', 'alltoall')


@rfm.simple_test
class CollectivesMore(MpiBenchmark):
    """Scans, operations with a v, of neighbours, that make communicators; and all ways to call.

    A scan and an operation with a v may be a chain of all ranks, and are held against as many
    ping-pongs. A nonblocking or persistent call does the same as the blocking one, and is held
    against that.
    """

    program = 'collectives'
    scale = parameter(scales(), type=str)
    is_smoke_case = False
    #: Not all MPIs have persistent collectives; with many ranks sizes end at 64 KiB.
    may_lack = frozenset({'persistent_over_blocking', *(f'{op}_1m_time' for op in OTHERS)})

    measures = {
        'allgatherv_time': Quantity('us', 'lower', headline=True),
        'iallreduce_time': Quantity('us', 'lower', headline=True),
        'nonblocking_over_blocking': Quantity('1', 'lower', must_be_held=True),
        'persistent_over_blocking': Quantity('1', 'lower', must_be_held=True),
        **{
            f'{op}_over_ping_pong': Quantity('1', 'lower', must_be_held=True)
            for op in (*OTHERS, *MAKERS)
        },
        **{f'{op}_{size}_time': Quantity('us', 'lower') for op in OTHERS for size in SIZES},
    }

    @run_after('setup')
    def set_sizes(self):
        self.largest = largest_block(self.num_tasks)
        sizes = [size for size in SIZES.values() if size <= self.largest]
        self.arguments = [
            *(f'--op {",".join((*OTHERS, *MAKERS))}', '--limits', f'--max {self.largest}'),
            f'--ci 0.01 --budget 0.02 --focus {",".join(map(str, (NO_SIZE, SMALL, *sizes)))}',
        ]

    @run_before('run')
    def compare_calls_first(self):
        arguments = [
            *(f'--op {",".join(CALLED)}', '--call blocking,nonblocking,persistent'),
            f'--max {SMALL} --ci 0.01 --budget 0.05',
        ]
        self.start_beside(CALLS, self.placement, arguments)

    def verify_answers(self):
        super().verify_answers()
        calls = self.report_beside(CALLS, self.placement, PACKED)
        self.calls = {
            (entry['call'], entry['op']): entry['time']['best'] for entry in calls['results']
        }

    def best(self, op, size):
        """Seconds of a call."""
        return self.select(op=op, size=size)['time']['best']

    def over_blocking(self, call):
        """The worst factor between such a call and the blocking one, of the smallest size."""
        return max(self.calls[call, op] / self.calls['blocking', op] for op in CALLED)

    def figures(self):
        latency = self.report['limits']['ping_pong']['latency']
        values = {
            'allgatherv_time': self.best('allgatherv', SMALL) * 1e6,
            'iallreduce_time': self.calls['nonblocking', 'allreduce'] * 1e6,
            'nonblocking_over_blocking': self.over_blocking('nonblocking'),
        }
        if ('persistent', CALLED[0]) in self.calls:
            values['persistent_over_blocking'] = self.over_blocking('persistent')
        # A communicator may have memory or hardware of its own set up, within a node as well.
        ping_pongs = math.ceil(math.log2(self.num_tasks)) * max(latency, NETWORK_LATENCY)
        for op in MAKERS:
            values[f'{op}_over_ping_pong'] = self.best(op, NO_SIZE) / ping_pongs
        for op, steps in OTHERS.items():
            values[f'{op}_over_ping_pong'] = self.best(op, SMALL) / (
                steps(self.num_tasks) * latency
            )
            for name, size in SIZES.items():
                if size <= self.largest:
                    values[f'{op}_{name}_time'] = self.best(op, size) * 1e6
        return self.as_figures(**values)
