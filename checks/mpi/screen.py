"""All nodes of a partition in one job, to find the one that is not like the others."""

import json

import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before, variable
from reframe.core.exceptions import ReframeError, SanityError

from assay.checks.benchmark import RESULT, MpiBenchmark, as_sanity_error, read_result
from assay.checks.cases import offered_features
from assay.config.fabrics import load_catalogue
from assay.programs.benchmarks import check_nodes
from assay.programs.figure import Quantity

CROSSING = [name for name, one in load_catalogue().fabrics.items() if one.crosses_nodes]

#: Of `nodes`, and of the first tournament of `pairs`; the second is the job's own program.
NODES, FIRST = 'nodes', 'first'

#: What is wrong with the placement, by node; and the part of the nodes that it may be wrong on.
MISPLACED, MOST_MISPLACED = 'misplaced.json', 0.25


@rfm.simple_test
class Screen(MpiBenchmark):
    """What each node gives, alone and all at once, and how fast it reaches the others, twice.

    `assay screen` finds from the job's files who is to blame. The figures are of the node and the
    pair in the middle.
    """

    program = 'pairs'
    always_sends = frozenset()
    fabric = parameter(offered_features(CROSSING), type=str, loggable=True)
    layout = parameter(['hybrid'], type=str, loggable=True)
    scale = parameter(['all_nodes'], type=str, loggable=True)
    #: Nodes of the job; 0 for all that are idle.
    asked_nodes = variable(int, value=0)
    quick = variable(bool, value=False)
    time_limit = '30m'

    @run_after('init')
    def select_where_to_run(self):
        self.valid_systems = [f'+{self.fabric}']
        self.valid_prog_environs = [f'+mpi +{self.fabric}']

    @run_after('init')
    def select_modes(self):
        self.tags |= {'screen'}

    @property
    def node_count(self):
        if not self._count:
            self.job.num_tasks_per_node = 1
            self._count = self.asked_nodes or self._idle_nodes()
        return self._count

    _count = 0

    def _idle_nodes(self):
        where = self.current_partition
        if where.scheduler.is_local:
            raise ReframeError(
                f'a screening holds nodes against each other, and {where.fullname} is one machine: '
                f'choose a partition that has a scheduler'
            )
        try:
            count = self.job.guess_num_tasks()
        except NotImplementedError:
            raise ReframeError(
                f'{where.scheduler.registered_name} does not tell which nodes are idle: '
                f'name them by --nodes'
            ) from None
        if count < 2:
            raise ReframeError(f'{count} node(s) of {where.fullname} are idle: two are needed')
        return count

    @run_before('run')
    def measure_nodes_and_links(self):
        self.arguments = ['--tournament', '--budget 0.05', '--json', RESULT]
        self.executable_opts = self.arguments
        sweeps = '--sweeps 3' if self.quick else '--sweeps 8'
        commands = {
            NODES: [self.build.product('nodes'), sweeps, '--json', RESULT],
            FIRST: [self.build.product('pairs'), *self.arguments],
        }
        placed = self.placement, self.num_tasks
        for folder, command in commands.items():
            self.start_before(folder, self.start_line(*command, placed=placed))
        self.keep_files = [*self.keep_files, MISPLACED]

    def verify(self):
        launches = [
            self.launch_apart(folder, program, self.placement, self.num_tasks)
            for folder, program in ((NODES, 'nodes'), (FIRST, 'pairs'))
        ]
        for launch in (*launches, self.launch):
            launch.assert_ended_well()
            launch.assert_as_asked(but_single_nodes=True)
        self.first_launch = launches[1]
        self.misplaced = launches[0].placement_faults()
        # Of a few nodes it is what is wrong with them; of more, with the job.
        if len(self.misplaced) > MOST_MISPLACED * self.node_count:
            raise SanityError(next(iter(self.misplaced.values())))
        (self.ended_job.folder / MISPLACED).write_text(json.dumps(self.misplaced))
        self.verify_answers()

    def verify_answers(self):
        super().verify_answers()
        self.nodes = read_result(self.ended_job.folder / NODES / RESULT, 'nodes')
        with as_sanity_error(NODES):
            check_nodes(self.nodes)
        first = read_result(self.ended_job.folder / FIRST / RESULT, 'pairs')
        self.hold(first, self.first_launch, self.placement)

    measures = {
        'triad': Quantity('GB/s', 'higher', headline=True),
        'dgemm': Quantity('Gflop/s', 'higher', headline=True),
        'frequency': Quantity('GHz', 'higher'),
        'slowest_node_of_median': Quantity('1', 'higher', must_be_held=True),
        'well_placed_share': Quantity('1', 'higher', must_be_held=True),
        'pair_latency': Quantity('us', 'lower', headline=True),
        'pair_bandwidth': Quantity('GB/s', 'higher', headline=True),
    }

    def figures(self):
        entries = self.nodes['results']
        nodes = {
            name: np.median([entry['together'][name] for entry in entries], axis=1)
            for name in ('triad', 'dgemm', 'frequency')
        }
        middle = {name: float(np.median(values)) for name, values in nodes.items()}
        latency, bandwidth = self.select(measure='latency'), self.select(measure='bandwidth')
        return self.as_figures(
            triad=middle['triad'] / 1e9,
            dgemm=middle['dgemm'] / 1e9,
            frequency=middle['frequency'] / 1e9,
            slowest_node_of_median=float(nodes['dgemm'].min()) / middle['dgemm'],
            well_placed_share=1 - len(self.misplaced) / self.node_count,
            pair_latency=latency['median'] * 1e6,
            pair_bandwidth=bandwidth['median'] / 1e9,
        )
