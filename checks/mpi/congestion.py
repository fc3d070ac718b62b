"""Small messages of some ranks, alone and beside large ones of all others."""

from statistics import median

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import scales
from assay.programs.figure import Quantity

VICTIMS = ('latency', 'allreduce')
AGGRESSORS = ('incast', 'alltoall', 'shift')

#: The end of a figure's name, and what of the times it is in the report.
TOLD = {'': 'median', '_p99': 'p99'}

#: Two victims and two aggressors.
FEWEST_RANKS = 4


@rfm.simple_test
class Congestion(MpiBenchmark):
    """A ping-pong between random partners, and an allreduce, alone and beside a load of the others.

    GPCNeT's way. Every fifth rank of a node is a victim, so that victims and aggressors share the
    node's link. On one node of four cores or more they share its memory, or the loopback interface.
    """

    program = 'congestion'
    always_sends = frozenset()  # as many rounds as there is time for
    scale = parameter(scales(), type=str)
    is_smoke_case = False

    measures = {
        **{f'{victim}_alone{of}': Quantity('us', 'lower') for victim in VICTIMS for of in TOLD},
        **{
            f'{victim}_beside_{aggressor}{of}': Quantity('us', 'lower')
            for victim in VICTIMS
            for aggressor in AGGRESSORS
            for of in TOLD
        },
        **{
            f'{victim}_impact_of_{aggressor}{of}': Quantity(
                '1', 'lower', must_be_held=True, headline=(aggressor, of) == ('incast', '_p99')
            )
            for victim in VICTIMS
            for aggressor in AGGRESSORS
            for of in TOLD
        },
        **{f'bandwidth_of_{aggressor}': Quantity('MB/s', 'higher') for aggressor in AGGRESSORS},
    }

    @run_after('setup')
    def require_both_roles(self):
        self.skip_if(
            self.num_tasks < FEWEST_RANKS,
            f'two victims and two aggressors are {FEWEST_RANKS} ranks, and there are '
            f'{self.num_tasks} cores',
        )

    def figures(self):
        results = self.report['results']
        values = {}
        for of, name in TOLD.items():
            for one in results:
                victim, aggressor = one['victim'], one['aggressor']
                values[f'{victim}_beside_{aggressor}{of}'] = one['beside']['time'][name] * 1e6
                values[f'{victim}_impact_of_{aggressor}{of}'] = one['impact'][name]
            for victim in VICTIMS:
                alone = [one['alone']['time'][name] for one in results if one['victim'] == victim]
                values[f'{victim}_alone{of}'] = median(alone) * 1e6
        for aggressor in AGGRESSORS:
            values[f'bandwidth_of_{aggressor}'] = min(
                one['load']['bandwidth'] / 1e6 for one in results if one['aggressor'] == aggressor
            )
        return self.as_figures(**values)
