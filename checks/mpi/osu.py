"""The OSU Micro-Benchmarks, where Spack builds them: figures that everybody knows."""

from functools import cached_property

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before
from reframe.core.exceptions import SanityError

from assay.checks.benchmark import MpiBenchmark, limit_measures
from assay.checks.build import installed_build
from assay.checks.cases import scales
from assay.config.environments import feature
from assay.job.launch import LaunchError
from assay.programs import osu
from assay.programs.figure import Quantity

SMALL, LARGE = 8, 4 << 20

#: Each figure: the program that measures it, and the bytes of its messages.
RUNS = {
    'latency': ('osu_latency', SMALL),
    'bandwidth': ('osu_bw', LARGE),
    'bidirectional_bandwidth': ('osu_bibw', LARGE),
    'allreduce_time': ('osu_allreduce', SMALL),
    'alltoall_time': ('osu_alltoall', SMALL),
}


@rfm.simple_test
class OsuMicroBenchmarks(MpiBenchmark):
    """Latency, bandwidth one way and both ways, Allreduce and Alltoall between two ranks.

    Each program runs in a folder of its own, where its witness proves that it ran as asked. The
    machine's own limits are measured by our `limits` in the same job, just after.
    """

    program = 'limits'
    ranks = 2
    layout = parameter(['packed', 'spread'], type=str)
    scale = parameter(scales(2), type=str)
    is_smoke_case = False

    @run_after('init')
    def need_osu(self):
        self.narrow_to_features(feature(osu.PACKAGE))

    @cached_property
    def installed(self):
        return installed_build(self, osu.PACKAGE)

    @property
    def provenance(self):
        return self.installed.provenance

    @run_before('run')
    def run_osu_before_limits(self):
        for name, (program, size) in RUNS.items():
            path = osu.path(self.installed.prefix, program)
            command = self.start_line(str(path), f'-m {size}:{size}')
            self.prerun_cmds = [*self.prerun_cmds, f'echo {name}']
            self.start_before(name, command)

    def verify(self):
        super().verify()
        self.values = {}
        for name, (program, size) in RUNS.items():
            try:
                launch = self.launch_apart(name, program, self.placement, self.num_tasks)
                launch.assert_ended_well()
                self.values[name] = osu.read_osu_value(launch.text, program, size)
                launch.assert_as_asked()
            except (ValueError, LaunchError) as error:
                raise SanityError(f'{name}: {error}') from None

    measures = {
        'latency': Quantity('us', 'lower', headline=True),
        'bandwidth': Quantity('MB/s', 'higher', headline=True),
        'bidirectional_bandwidth': Quantity('MB/s', 'higher'),
        'bidirectional_over_one_way': Quantity('1', 'higher'),
        'allreduce_time': Quantity('us', 'lower'),
        'alltoall_time': Quantity('us', 'lower'),
    } | limit_measures('')

    def figures(self):
        values = self.values
        one_way, both_ways = values['bandwidth'], values['bidirectional_bandwidth']
        figures = self.as_figures(
            latency=values['latency'] * 1e6,
            bandwidth=one_way / 1e6,
            bidirectional_bandwidth=both_ways / 1e6,
            bidirectional_over_one_way=both_ways / one_way,
            allreduce_time=values['allreduce_time'] * 1e6,
            alltoall_time=values['alltoall_time'] * 1e6,
        )
        small = {'size': SMALL, 'bouts': [values['latency']]}
        large = {'size': LARGE, 'bouts': [LARGE / one_way]}
        return figures | self.limit_figures('', small, large)
