"""Many pairs of nodes at the same time: what procurement asks for, and the worst pair."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import scales
from assay.config.scales import is_at_most
from assay.programs.figure import Quantity


@rfm.simple_test
class Pairs(MpiBenchmark):
    """Latency and bandwidth of pairs of nodes, message rate and bisection, with a rank per core.

    Within a node each core stands for a node.
    """

    program = 'pairs'
    always_sends = frozenset()  # as many batches as there is time for
    scale = parameter(scales(), type=str)

    @run_after('init')
    def set_nodes(self):
        self.arguments = ['--budget 0.05']
        if is_at_most(self.scale, 1):
            self.arguments += ['--group 1']

    measures = {
        'message_rate': Quantity('Mmessages/s', 'higher', headline=True),
        'message_rate_whole_of_best': Quantity('1', 'higher'),
        'bisection_bandwidth': Quantity('GB/s', 'higher', headline=True),
        'pair_latency': Quantity('us', 'lower'),
        'pair_bandwidth': Quantity('GB/s', 'higher'),
        'worst_latency_over_median': Quantity('1', 'lower', must_be_held=True),
        'worst_bandwidth_of_median': Quantity('1', 'higher', must_be_held=True),
        'bisection_of_pairs': Quantity('1', 'higher', must_be_held=True),
        'messages_in_a_latency': Quantity('1', 'higher', must_be_held=True),
    }

    def figures(self):
        latency, bandwidth = self.select(measure='latency'), self.select(measure='bandwidth')
        bisection = self.select(measure='bisection')
        rates = [entry for entry in self.report['results'] if entry['measure'] == 'message_rate']
        all_send = rates[-1]
        partners = self.report['nodes'] // 2
        return self.as_figures(
            message_rate=all_send['best_rate'] / 1e6,
            message_rate_whole_of_best=all_send['rate'] / all_send['best_rate'],
            bisection_bandwidth=bisection['best_bandwidth'] / 1e9,
            pair_latency=latency['median'] * 1e6,
            pair_bandwidth=bandwidth['median'] / 1e9,
            worst_latency_over_median=latency['worst'] / latency['median'],
            worst_bandwidth_of_median=bandwidth['worst'] / bandwidth['median'],
            bisection_of_pairs=bisection['best_bandwidth'] / (partners * bandwidth['median']),
            messages_in_a_latency=rates[0]['best_rate'] / partners * latency['median'],
        )
