"""A message that goes round all ranks: what a hop costs on average, over every link."""

import reframe as rfm
from reframe.core.builtins import parameter

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import scales
from assay.programs.figure import Figure

WORDS_SMALL, WORDS_LARGE = 1, 128 << 10
BYTES_OF_WORD = 8


@rfm.simple_test
class Ring(MpiBenchmark):
    """Sizes of 2^k - 1 and 2^k words of 8 bytes, up to 1 MiB, round one rank per core."""

    program = 'ring'
    arguments = [
        *('--limits', f'--max-words {WORDS_LARGE}', '--ci 0.01', '--budget 0.05'),
        f'--focus {BYTES_OF_WORD * WORDS_SMALL},{BYTES_OF_WORD * WORDS_LARGE}',
    ]
    layout = parameter(['packed', 'spread', 'one-per-numa', 'one-per-node'], type=str)
    scale = parameter(scales(), type=str)

    def figures(self):
        small = self.select(words=WORDS_SMALL)
        large = self.select(words=WORDS_LARGE)
        figures = {
            'hop_latency': Figure(small['time']['median'] * 1e6, 'us', 'lower', headline=True),
            'hop_bandwidth': Figure(large['bandwidth'] / 1e6, 'MB/s', 'higher'),
        }
        return figures | self.limit_figures('hop_', small, large)
