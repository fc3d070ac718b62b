"""Messages between two ranks: latency and bandwidth, and how near they are to the machine's own."""

from dataclasses import replace

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before

from assay.checks.benchmark import (
    MpiBenchmark,
    limit_measures,
    whole_of_best,
    worst_step,
)
from assay.checks.cases import scales
from assay.config.fabrics import DEFAULT, load_catalogue
from assay.mpis import FAMILIES
from assay.programs.application import WHOLE_OF_BEST
from assay.programs.figure import Quantity
from assay.witness.traffic import verify_traffic

#: MEDIUM is below every limit up to which an MPI sends a message at once (eagerly), over a network.
SMALL, MEDIUM, LARGE = 8, 2 << 10, 4 << 20


@rfm.simple_test
class PointToPoint(MpiBenchmark):
    """Ping-pong, and messages in both directions at once, from 0 B to 4 MiB.

    Within a node `packed` is two neighbouring cores and `spread` two NUMA domains. Between nodes
    `near` and `far` are a core beside the network port and one of another NUMA domain.
    """

    program = 'pt2pt'
    arguments = [
        *('--limits', '--pattern ping-pong,bidirectional', f'--max {LARGE}', '--budget 0.08'),
        f'--focus {SMALL},{MEDIUM},{LARGE}',
    ]
    ranks = 2
    layout = parameter(['packed', 'spread', 'near', 'far'], type=str)
    scale = parameter(scales(2), type=str)

    measures = {
        'latency': Quantity('us', 'lower', headline=True),
        'bandwidth': Quantity('MB/s', 'higher', headline=True),
        'bidirectional_bandwidth': Quantity('MB/s', 'higher'),
        'bidirectional_over_one_way': Quantity('1', 'higher'),
        'medium_over_small': Quantity('1', 'lower'),
        'worst_step': Quantity('1', 'lower'),
        'latency_whole_of_best': WHOLE_OF_BEST,
    } | limit_measures('')

    def figures(self):
        small = self.select(pattern='ping-pong', size=SMALL)
        medium = self.select(pattern='ping-pong', size=MEDIUM)
        large = self.select(pattern='ping-pong', size=LARGE)
        both_ways = self.select(pattern='bidirectional', size=LARGE)
        figures = self.as_figures(
            latency=small['time']['best'] * 1e6,
            bandwidth=large['bandwidth'] / 1e6,
            bidirectional_bandwidth=both_ways['bandwidth'] / 1e6,
            bidirectional_over_one_way=2 * large['time']['best'] / both_ways['time']['best'],
            medium_over_small=medium['time']['best'] / small['time']['best'],
            worst_step=worst_step(self.curve(pattern='ping-pong')),
            latency_whole_of_best=whole_of_best(small['time']),
        )
        return figures | self.limit_figures('', small, large)


#: The folder of the start on the best fabric, and the layout of its ranks.
FORCED, FORCED_LAYOUT = 'forced', 'packed'


@rfm.simple_test
class AsUsersGetIt(MpiBenchmark):
    """A ping-pong with nothing forced, after one on the best fabric there is, in the same job.

    The best is the first that partition and environment offer: between nodes a network with a
    device of its own before TCP, within a node shared memory.
    """

    program = 'pt2pt'
    arguments = [
        f'--pattern ping-pong --max {LARGE} --budget 0.08',
        f'--focus {SMALL},{MEDIUM},{LARGE}',
    ]
    ranks = 2
    fabric = parameter([DEFAULT], type=str, loggable=True)
    layout = parameter(['default'], type=str, loggable=True)
    scale = parameter(scales(2), type=str, loggable=True)

    measures = {
        'latency': Quantity('us', 'lower', headline=True),
        'bandwidth': Quantity('MB/s', 'higher', headline=True),
        'latency_over_forced': Quantity('1', 'lower', must_be_held=True),
        'bandwidth_of_forced': Quantity('1', 'higher', must_be_held=True),
        'cores_of_rank': Quantity('1', 'lower'),
    }

    @run_after('setup')
    def place_forced(self):
        self.placed = self.place(self.placement.ranks, self.cores_per_rank, FORCED_LAYOUT)

    @run_before('run')
    def run_forced_first(self):
        env = self.placed.env | load_catalogue().variables(self.way, self.family)
        self.start_beside(FORCED, replace(self.placed, env=env), self.arguments)

    def verify(self):
        super().verify()
        self.forced = self.report_beside(FORCED, self.placed, FORCED_LAYOUT)
        self.tell_of_devices(self.launch.witnessed)

    def tell_of_devices(self, report):
        """Remark on an MPI that goes over TCP beside a better network, if it is not said to use it.

        That is no fault of the machine, but users of that MPI have it.
        """
        devices = self.devices_not_offered
        if devices and verify_traffic(report, 'sockets', self.way) is None:
            where, mpi = self.current_environ.name, FAMILIES[self.family].name
            self.remark(
                f'{mpi} of environment {where} sent over TCP, and the partition has '
                f'{" and ".join(devices)}: have it built for that, or list what it can use among '
                f'the features of {where}'
            )

    def figures(self):
        small, large = (self.best_times(size) for size in (SMALL, LARGE))
        return self.as_figures(
            latency=small[0] * 1e6,
            bandwidth=LARGE / large[0] / 1e6,
            latency_over_forced=small[0] / small[1],
            bandwidth_of_forced=large[1] / large[0],
            cores_of_rank=max(len(rank.cores) for rank in self.launch.witnessed.processes),
        )

    def best_times(self, size):
        """Seconds of a message, with nothing forced and forced."""
        reports = self.report, self.forced
        return [
            result['time']['best']
            for report in reports
            for result in report['results']
            if result['size'] == size
        ]
