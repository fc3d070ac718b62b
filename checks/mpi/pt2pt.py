"""Messages between two ranks: latency and bandwidth, and how near they are to the machine's own."""

import reframe as rfm
from reframe.core.builtins import parameter

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import scales
from assay.programs.figure import Figure

#: MEDIUM is below every limit up to which an MPI sends a message at once (eagerly), over a network.
SMALL, MEDIUM, LARGE = 8, 2 << 10, 4 << 20


@rfm.simple_test
class PointToPoint(MpiBenchmark):
    """Ping-pong, ping-ping, sendrecv, exchange and bidirectional from 0 B to 4 MiB.

    Within a node `packed` is two neighbouring cores and `spread` two NUMA domains.
    """

    program = 'pt2pt'
    arguments = ['--limits', f'--max {LARGE}', '--budget 0.02', f'--focus {SMALL},{MEDIUM},{LARGE}']
    ranks = 2
    layout = parameter(['packed', 'spread'], type=str)
    scale = parameter(scales(2), type=str)

    def figures(self):
        small = self.select(pattern='ping-pong', size=SMALL)
        medium = self.select(pattern='ping-pong', size=MEDIUM)
        large = self.select(pattern='ping-pong', size=LARGE)
        both_ways = self.select(pattern='bidirectional', size=LARGE)
        duplex = 2 * large['time']['min'] / both_ways['time']['min']
        figures = {
            'latency': Figure(small['time']['median'] * 1e6, 'us', 'lower', headline=True),
            'bandwidth': Figure(large['bandwidth'] / 1e6, 'MB/s', 'higher', headline=True),
            'bidirectional_bandwidth': Figure(both_ways['bandwidth'] / 1e6, 'MB/s', 'higher'),
            'bidirectional_over_one_way': Figure(duplex, '1', 'higher'),
            'medium_over_small': Figure(medium['time']['min'] / small['time']['min'], '1', 'lower'),
        }
        return figures | self.limit_figures('', small, large)
