"""Messages between two ranks: latency and bandwidth, and how near they are to the machine's own."""

import reframe as rfm
from reframe.core.builtins import parameter

from assay.checks.benchmark import (
    MpiBenchmark,
    limit_measures,
    refusing,
    whole_of_best,
    worst_step,
)
from assay.checks.cases import scales
from assay.programs.application import WHOLE_OF_BEST
from assay.programs.benchmarks import check_pt2pt
from assay.programs.figure import Quantity

#: MEDIUM is below every limit up to which an MPI sends a message at once (eagerly), over a network.
SMALL, MEDIUM, LARGE = 8, 2 << 10, 4 << 20


@rfm.simple_test
class PointToPoint(MpiBenchmark):
    """Ping-pong, and messages in both directions at once, from 0 B to 4 MiB.

    Within a node `packed` is two neighbouring cores and `spread` two NUMA domains.
    """

    program = 'pt2pt'
    arguments = [
        *('--limits', '--pattern ping-pong,bidirectional', f'--max {LARGE}', '--budget 0.08'),
        f'--focus {SMALL},{MEDIUM},{LARGE}',
    ]
    ranks = 2
    layout = parameter(['packed', 'spread'], type=str)
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

    def verify_answers(self):
        super().verify_answers()
        with refusing(self.program):
            check_pt2pt(self.report)

    def figures(self):
        small = self.select(pattern='ping-pong', size=SMALL)
        medium = self.select(pattern='ping-pong', size=MEDIUM)
        large = self.select(pattern='ping-pong', size=LARGE)
        both_ways = self.select(pattern='bidirectional', size=LARGE)
        figures = self.named(
            latency=small['time']['best'] * 1e6,
            bandwidth=large['bandwidth'] / 1e6,
            bidirectional_bandwidth=both_ways['bandwidth'] / 1e6,
            bidirectional_over_one_way=2 * large['time']['best'] / both_ways['time']['best'],
            medium_over_small=medium['time']['best'] / small['time']['best'],
            worst_step=worst_step(self.curve(pattern='ping-pong')),
            latency_whole_of_best=whole_of_best(small['time']),
        )
        return figures | self.limit_figures('', small, large)
