"""A message that goes round all ranks: what a hop costs on average, over every link."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from assay.checks.benchmark import (
    MpiBenchmark,
    limit_measures,
    whole_of_best,
    worst_step,
)
from assay.checks.cases import scales
from assay.config.scales import is_at_most
from assay.programs.application import WHOLE_OF_BEST
from assay.programs.figure import Quantity

WORDS_SMALL, WORDS_LARGE = 1, 128 << 10
BYTES_OF_WORD = 8


@rfm.simple_test
class Ring(MpiBenchmark):
    """Sizes of 2^k - 1 and 2^k words of 8 bytes, up to 1 MiB, round one rank per core."""

    program = 'ring'
    arguments = [
        *('--limits', f'--max-words {WORDS_LARGE}', '--ci 0.01', '--budget 0.1'),
        f'--focus {BYTES_OF_WORD * WORDS_SMALL},{BYTES_OF_WORD * WORDS_LARGE}',
    ]
    layout = parameter(
        ['packed', 'spread', 'one-per-numa', 'one-per-node', 'cyclic', 'default'], type=str
    )
    scale = parameter(scales(), type=str)

    @run_after('init')
    def bind_by_default_on_one_fabric(self):
        if self.layout == 'default' and is_at_most(self.scale, 1):
            self.narrow_to_first_fabric()
        elif self.layout == 'default':
            self.narrow_to_best_between_nodes()

    measures = {
        'hop_latency': Quantity('us', 'lower', headline=True),
        'hop_bandwidth': Quantity('MB/s', 'higher'),
        'worst_step': Quantity('1', 'lower'),
        'odd_over_even': Quantity('1', 'lower'),
        'hop_whole_of_best': WHOLE_OF_BEST,
    } | limit_measures('hop_')

    def figures(self):
        small = self.select(words=WORDS_SMALL)
        large = self.select(words=WORDS_LARGE)
        figures = self.as_figures(
            hop_latency=small['time']['best'] * 1e6,
            hop_bandwidth=large['bandwidth'] / 1e6,
            worst_step=worst_step(self.even),
            odd_over_even=self.odd_over_even,
            hop_whole_of_best=whole_of_best(small['time']),
        )
        return figures | self.limit_figures('hop_', small, large)

    @property
    def even(self):
        """The sizes of 2^k words, and their times."""
        return [(size, time) for size, time in self.curve() if size & (size - 1) == 0]

    @property
    def odd_over_even(self):
        """The worst factor between 2^k - 1 and 2^k words, whichever is slower, from k = 3 on."""
        times = dict(self.curve())
        ratios = [times[size - BYTES_OF_WORD] / times[size] for size, _ in self.even[3:]]
        return max(max(ratio, 1 / ratio) for ratio in ratios)
