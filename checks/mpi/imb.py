"""The real IMB-MPI1, where the MPI has one or Spack builds it: figures that everybody knows."""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before
from reframe.core.exceptions import SanityError

from assay.checks.benchmark import RESULT, Limit, MpiBenchmark, limit_measures, read_result
from assay.checks.build import installed_build
from assay.checks.cases import scales
from assay.config.environments import feature
from assay.job.launch import LaunchError
from assay.machine.provenance import of_binary
from assay.programs import imb
from assay.programs.figure import Quantity
from assay.programs.imb import PROGRAM

PACKAGE = 'intel-mpi-benchmarks'  # Spack's name of it
TWO_RANKS = ('PingPong', 'PingPing', 'Sendrecv', 'Exchange', 'Allreduce', 'Alltoall')
SMALL, LARGE = 8, 4 << 20
#: Sizes that are measured: those of figures, and others by which a message is known.
SIZES = (0, SMALL, 1 << 10, 64 << 10, LARGE)
SIZES_FILE = 'sizes'
BEFORE = 'before'


@rfm.simple_test
class IntelMpiBenchmarks(MpiBenchmark):
    """PingPong, PingPing, Sendrecv, Exchange, Allreduce and Alltoall between two ranks.

    IMB-MPI1 runs in a folder of its own, where its witness proves that it ran as asked. The
    machine's own limits are measured by our `limits` in the same job, just before and just after.
    """

    program = 'limits'
    ranks = 2
    layout = parameter(['packed', 'spread'], type=str)
    scale = parameter(scales(2), type=str)

    @run_after('init')
    def need_imb(self):
        self.narrow_to_features('imb', feature(PACKAGE))

    @property
    def is_by_spack(self):
        return feature(PACKAGE) in self.current_environ.features

    @property
    def imb(self):
        if self.is_by_spack:
            return installed_build(self, PACKAGE).path(PROGRAM)
        return Path(self.current_environ.extras['imb'])

    @run_before('run')
    def run_imb_between_limits(self):
        limits = self.start_line(self.executable, '--json', RESULT)
        # IMB-MPI1 runs in a folder of its own.
        options = f'-iter 1000,40 -npmin 2 -msglen ../{SIZES_FILE}'
        imb = self.start_line(str(self.imb), options, *TWO_RANKS)
        Path(self.stagedir, SIZES_FILE).write_text(''.join(f'{size}\n' for size in SIZES))
        self.start_before(BEFORE, limits)
        self.start_before(PROGRAM, imb)
        if not self.is_by_spack:
            libraries = self.current_environ.extras['imb_libraries']
            self.env_vars['LD_LIBRARY_PATH'] = f'{libraries}:$LD_LIBRARY_PATH'

    @property
    def provenance(self):
        return (
            installed_build(self, PACKAGE).provenance if self.is_by_spack else of_binary(self.imb)
        )

    def verify(self):
        super().verify()
        for folder, program in ((BEFORE, self.program), (PROGRAM, PROGRAM)):
            try:
                launch = self.launch_apart(folder, program, self.placement, self.num_tasks)
                launch.assert_ended_well()
                if program == PROGRAM:
                    self.tables = imb.read_imb_tables(launch.text)
                launch.assert_as_asked()
            except ValueError as error:
                raise SanityError(f'{error}: {launch.reason}') from None
            except LaunchError as error:
                raise SanityError(f'{folder}: {error}') from None
        for name in TWO_RANKS:
            ranks = self.tables.get(name, (0, []))[0]
            if ranks != self.num_tasks:
                raise SanityError(f'{name} ran with {ranks} rank(s) instead of {self.num_tasks}')

    @property
    def limit(self):
        """The slower of the two that were measured around IMB-MPI1.

        It measures for a second, in which the host of a virtual machine may move its CPUs apart: a
        cache line then takes several times as long.
        """
        before = read_result(self.ended_job.folder / BEFORE / RESULT, self.program)
        around = [self.limit_in(report) for report in (before, self.report)]
        if None in around:
            return None
        return Limit(max(one.latency for one in around), min(one.bandwidth for one in around))

    def row(self, name, size):
        return next(row for row in self.tables[name][1] if row.size == size)

    measures = {
        'latency': Quantity('us', 'lower', headline=True),
        'bandwidth': Quantity('MB/s', 'higher', headline=True),
        'ping_ping_latency': Quantity('us', 'lower'),
        'allreduce_time': Quantity('us', 'lower'),
        'alltoall_time': Quantity('us', 'lower'),
        'sendrecv_bandwidth': Quantity('MB/s', 'higher'),
        'exchange_bandwidth': Quantity('MB/s', 'higher'),
    } | limit_measures('')

    def figures(self):
        small, large = self.row('PingPong', SMALL), self.row('PingPong', LARGE)
        figures = self.as_figures(
            latency=small.time * 1e6,
            bandwidth=large.bandwidth / 1e6,
            ping_ping_latency=self.row('PingPing', SMALL).time * 1e6,
            allreduce_time=self.row('Allreduce', SMALL).time * 1e6,
            alltoall_time=self.row('Alltoall', SMALL).time * 1e6,
            sendrecv_bandwidth=self.row('Sendrecv', LARGE).bandwidth / 1e6,
            exchange_bandwidth=self.row('Exchange', LARGE).bandwidth / 1e6,
        )
        best = [{'size': row.size, 'bouts': [row.time]} for row in (small, large)]
        return figures | self.limit_figures('', *best)
