"""Many senders to one rank, receives from any source, and messages that wait in line."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import scales
from assay.config.defects import load_defects
from assay.mpis import FAMILIES
from assay.programs.figure import Quantity

SMALL, LARGE = 8, 256 << 10

#: Receives, or messages, that wait before the one that is measured. The tcp provider of libfabric
#: keeps 64 messages that nobody asked for (FI_TCP_MAX_SAVED); behind more MPICH 4.3.2 hangs in a
#: barrier (docs/rest-of-mpi.md).
LINE = 48

#: A known defect that a job would hang by.
ANY_SOURCE = 'any-source'


@rfm.simple_test
class Matching(MpiBenchmark):
    """All ranks send to one, which receives by name and from any source; and long lines.

    An MPI that is known to hang in receives from any source, on this fabric, is measured without
    them, and that is reported: `KnownDefect` tells whether it still does.
    """

    program = 'matching'
    # By name a receive looks through all that arrived before: with N ranks the burst costs N^2.
    scale = parameter(scales(16), type=str)
    may_lack = frozenset({'any_source_over_named', 'any_source_large_over_named'})

    measures = {
        'incast_time': Quantity('us', 'lower', headline=True),
        'incast_bandwidth': Quantity('MB/s', 'higher', headline=True),
        'incast_over_ping_pong': Quantity('1', 'lower', must_be_held=True),
        'incast_bandwidth_of_ping_pong': Quantity('1', 'higher', must_be_held=True),
        'any_source_over_named': Quantity('1', 'lower', must_be_held=True),
        'any_source_large_over_named': Quantity('1', 'lower', must_be_held=True),
        'behind_receives_over_ping_pong': Quantity('1', 'lower', must_be_held=True),
        'behind_messages_over_ping_pong': Quantity('1', 'lower', must_be_held=True),
    }

    @run_after('setup')
    def set_arguments(self):
        sources = 'named' if self.hangs_by_defect else 'named,any'
        self.arguments = [
            *(f'--small {SMALL} --large {LARGE}', f'--source {sources}', f'--lines {LINE}'),
            '--budget 0.15',
        ]

    @property
    def version(self):
        return self.current_environ.extras.get('version', '')

    @property
    def hangs_by_defect(self):
        """Whether this MPI is known to hang on this fabric in receives from any source."""
        defect = load_defects()[ANY_SOURCE]
        known = defect.known.get(self.family)
        if not known or self.fabric not in defect.fabrics:
            return False
        return not self.version or known.state(self.version) == 'known'

    def best(self, **wanted):
        """Seconds of a message."""
        return self.select(**wanted)['time']['best']

    def figures(self):
        ping_pong = {size: self.best(measure='ping-pong', size=size) for size in (SMALL, LARGE)}
        named = {
            size: self.best(measure='incast', size=size, source='named') for size in (SMALL, LARGE)
        }
        figures = self.as_figures(
            incast_time=named[SMALL] * 1e6,
            incast_bandwidth=LARGE / named[LARGE] / 1e6,
            incast_over_ping_pong=named[SMALL] / ping_pong[SMALL],
            incast_bandwidth_of_ping_pong=ping_pong[LARGE] / named[LARGE],
            behind_receives_over_ping_pong=self.best(measure='posted') / ping_pong[SMALL],
            behind_messages_over_ping_pong=self.best(measure='unexpected') / ping_pong[SMALL],
        )
        if self.hangs_by_defect:
            mpi = FAMILIES[self.family].name
            self.remark(
                f'{mpi} {self.version} over {self.fabric} was not measured with MPI_ANY_SOURCE, in '
                f'which it is known to hang (KnownDefect %defect={ANY_SOURCE})'
            )
            return figures
        of_any = {
            size: self.best(measure='incast', size=size, source='any') for size in (SMALL, LARGE)
        }
        return figures | self.as_figures(
            any_source_over_named=of_any[SMALL] / named[SMALL],
            any_source_large_over_named=of_any[LARGE] / named[LARGE],
        )
