"""Many pairs of nodes at the same time: what procurement asks for, and the worst pair."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after
from reframe.core.exceptions import SanityError

from assay.checks.benchmark import MpiBenchmark
from assay.checks.cases import scales
from assay.config.scales import SCALES
from assay.programs.figure import Figure


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
        if SCALES[self.scale] == 1:
            self.arguments += ['--group 1']

    def verify_answers(self):
        super().verify_answers()
        rounds = self.report['rounds']
        if rounds['measured'] < rounds['planned']:
            raise SanityError(
                f'only {rounds["measured"]} of {rounds["planned"]} rounds were measured: they took '
                f'more than ten times as long as planned'
            )

    def figures(self):
        latency, bandwidth = self.select(measure='latency'), self.select(measure='bandwidth')
        bisection = self.select(measure='bisection')
        rates = [entry for entry in self.report['results'] if entry['measure'] == 'message_rate']
        all_send = rates[-1]
        partners = self.report['nodes'] // 2
        return {
            'message_rate': Figure(
                all_send['best_rate'] / 1e6, 'Mmessages/s', 'higher', headline=True
            ),
            'message_rate_whole_of_best': Figure(
                all_send['rate'] / all_send['best_rate'], '1', 'higher'
            ),
            'bisection_bandwidth': Figure(
                bisection['best_bandwidth'] / 1e9, 'GB/s', 'higher', headline=True
            ),
            'pair_latency': Figure(latency['median'] * 1e6, 'us', 'lower'),
            'pair_bandwidth': Figure(bandwidth['median'] / 1e9, 'GB/s', 'higher'),
            'worst_latency_over_median': Figure(
                latency['worst'] / latency['median'], '1', 'lower', must_be_held=True
            ),
            'worst_bandwidth_of_median': Figure(
                bandwidth['worst'] / bandwidth['median'], '1', 'higher', must_be_held=True
            ),
            'bisection_of_pairs': Figure(
                bisection['best_bandwidth'] / (partners * bandwidth['median']),
                '1',
                'higher',
                must_be_held=True,
            ),
            'messages_in_a_latency': Figure(
                rates[0]['best_rate'] / partners * latency['median'],
                '1',
                'higher',
                must_be_held=True,
            ),
        }
