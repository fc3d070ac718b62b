"""MPI-IO on the file system of the job's folder: whether what is written can be read."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import scales
from assay.programs.figure import Quantity


@rfm.simple_test
class Files(MpiBenchmark):
    """All ranks write a file, each reads what the next one wrote, and looks at every byte.

    They do so independently, collectively, and with blocks that take turns in the file. The file is
    small and in the job's folder: its times are no benchmark of the file system.
    """

    program = 'files'
    scale = parameter(scales(), type=str)
    is_smoke_case = False

    measures = {
        'write_bandwidth': Quantity('MB/s', 'higher', headline=True),
        'read_bandwidth': Quantity('MB/s', 'higher', headline=True),
        **{
            f'{way}_write_of_independent': Quantity('1', 'higher', must_be_held=True)
            for way in ('collective', 'interleaved')
        },
        # What was just written is read by each rank from its own memory, and by few for all.
        **{
            f'{way}_read_of_independent': Quantity('1', 'higher')
            for way in ('collective', 'interleaved')
        },
    }

    @run_after('init')
    def use_one_fabric(self):
        self.narrow_to_first_fabric()

    @run_after('setup')
    def set_block(self):
        # Of four blocks a rank; all together are at most 64 MiB, up to 4,096 ranks.
        block = max(4 << 10, min(64 << 10, (16 << 20) // self.num_tasks // 8 * 8))
        self.arguments = [f'--budget 0.2 --block {block}']

    def figures(self):
        rates = {
            (entry['way'], entry['direction']): entry['bandwidth']
            for entry in self.report['results']
        }
        return self.as_figures(
            write_bandwidth=rates['independent', 'write'] / 1e6,
            read_bandwidth=rates['independent', 'read'] / 1e6,
            **{
                f'{way}_{direction}_of_independent': rates[way, direction]
                / rates['independent', direction]
                for way in ('collective', 'interleaved')
                for direction in ('write', 'read')
            },
        )
