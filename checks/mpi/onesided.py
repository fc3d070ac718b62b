"""One-sided operations between two ranks, and what they cost beside messages."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import scales
from assay.config.fabrics import load_catalogue
from assay.programs.figure import Quantity

SMALL, LARGE = 8, 1 << 20

#: The ways to complete each of the operations that move memory, and of those that fetch.
OPERATIONS = ('put', 'get', 'accumulate')
SYNCS = {
    **dict.fromkeys(OPERATIONS, ('fence', 'pscw', 'lock', 'flush')),
    'fetch_add': ('lock', 'flush'),
}


#: The folder of the start in which the other ways are measured, of the smallest size, and these.
OTHERS, WAYS = 'others', ('fence', 'pscw', 'lock')


@rfm.simple_test
class OneSided(MpiBenchmark):
    """Put, get and accumulate from 8 B to 1 MiB, and fetch-and-add, by flush.

    Fence, PSCW and lock are measured in the same job, of 8 B.

    They are held against the ping-pong of the same MPI between the same two ranks.
    """

    program = 'onesided'
    arguments = ['--sync flush', f'--max {LARGE}', '--budget 0.04', f'--focus {SMALL},{LARGE}']
    ranks = 2
    layout = parameter(['packed', 'spread'], type=str)
    scale = parameter(scales(2), type=str)
    is_smoke_case = False

    measures = {
        'put_time': Quantity('us', 'lower', headline=True),
        'put_bandwidth': Quantity('MB/s', 'higher', headline=True),
        **{
            f'{op}_{sync}_over_ping_pong': Quantity('1', 'lower', must_be_held=True)
            for op, syncs in SYNCS.items()
            for sync in syncs
        },
        **{
            f'{op}_bandwidth_of_ping_pong': Quantity('1', 'higher', must_be_held=True)
            for op in OPERATIONS
        },
    }

    @run_after('setup')
    def force_one_sided(self):
        recipe = load_catalogue().recipe(self.fabric, self.family)
        self.skip_if(
            recipe.one_sided is None,
            f'one-sided operations of {self.family} cannot be made to go by {self.fabric}',
        )
        self.env_vars = {**recipe.one_sided, **self.env_vars}

    @run_before('run')
    def measure_others_first(self):
        arguments = [f'--op {",".join(SYNCS)} --sync {",".join(WAYS)} --max {SMALL} --budget 0.04']
        self.start_beside(OTHERS, self.placement, arguments)

    def verify_answers(self):
        super().verify_answers()
        others = self.report_beside(OTHERS, self.placement, self.layout)
        results = [*self.report['results'], *others['results']]
        self.times = {
            (entry['op'], entry['sync'], entry['size']): entry['time']['best'] for entry in results
        }

    def best(self, op, size, sync='flush'):
        """Seconds of an operation."""
        return self.times[op, sync, size]

    def figures(self):
        small, large = (self.best('ping_pong', size, 'messages') for size in (SMALL, LARGE))
        return self.as_figures(
            put_time=self.best('put', SMALL) * 1e6,
            put_bandwidth=LARGE / self.best('put', LARGE) / 1e6,
            **{
                f'{op}_{sync}_over_ping_pong': self.best(op, SMALL, sync) / small
                for op, syncs in SYNCS.items()
                for sync in syncs
            },
            **{f'{op}_bandwidth_of_ping_pong': large / self.best(op, LARGE) for op in OPERATIONS},
        )
