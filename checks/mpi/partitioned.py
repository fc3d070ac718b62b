"""Partitioned messages: what is sent as it gets ready, against a message of the whole."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import scales
from assay.mpis import FAMILIES
from assay.programs.figure import Quantity

SMALL, LARGE = 64 << 10, 4 << 20
PARTITIONS = (1, 2, 4, 8, 16)

#: What sources/mpi/partitioned.c says where it cannot measure, which is no failure.
LACKS = 'this MPI has no MPI_Psend_init'


@rfm.simple_test
class Partitioned(MpiBenchmark):
    """Messages of 1 to 16 partitions between two ranks, with a thread on each of their cores.

    They are held against one persistent message of as many bytes, and against one for each
    partition. An MPI that has no partitioned messages is skipped.
    """

    program = 'partitioned'
    ranks = 2
    most_threads = PARTITIONS[-1]
    scale = parameter(scales(2), type=str)
    is_smoke_case = False

    measures = {
        'partitioned_bandwidth': Quantity('MB/s', 'higher', headline=True),
        **{
            f'{figure}_{which}': Quantity('1', 'lower', must_be_held=True)
            for figure in ('one_over_whole', 'worst_over_messages')
            for which in ('small', 'large')
        },
    }

    @run_after('setup')
    def set_threads(self):
        self.arguments = [
            f'--sizes {SMALL},{LARGE}',
            f'--partitions {",".join(map(str, PARTITIONS))}',
        ]
        if self.threads > 1:
            self.arguments += [f'--threads {self.threads}', '--thread-multiple']

    def verify(self):
        if LACKS in self.launch.reason:
            name = FAMILIES[self.family].name
            self.skip(f'{name} has no partitioned messages (MPI 4.0) in this version')
        super().verify()

    def figures(self):
        times = {
            (entry['way'], entry['partitions'], entry['size']): entry['time']['best']
            for entry in self.report['results']
        }
        figures = {
            'partitioned_bandwidth': LARGE / times['partitioned', PARTITIONS[-1], LARGE] / 1e6
        }
        for which, size in (('small', SMALL), ('large', LARGE)):
            figures[f'one_over_whole_{which}'] = (
                times['partitioned', 1, size] / times['whole', 1, size]
            )
            figures[f'worst_over_messages_{which}'] = max(
                times['partitioned', parts, size] / times['messages', parts, size]
                for parts in PARTITIONS
            )
        return self.as_figures(**figures)
