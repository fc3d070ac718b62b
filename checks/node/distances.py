"""Memory of each NUMA domain, from the cores of each."""

import reframe as rfm
from reframe.core.builtins import parameter

from assay.checks.benchmark import OF_DISTURBANCE, NodeBenchmark
from assay.programs.figure import Quantity


@rfm.simple_test
class Distances(NodeBenchmark):
    """Latency for one core and bandwidth for all of a domain, as matrices of the domains.

    Own is the memory of the domain of the cores, remote any other; the worst of each are figures.
    """

    program = 'distances'
    layout = parameter(['one-per-node'], type=str, loggable=True)
    is_smoke_case = False
    #: On a node with one domain.
    may_lack = frozenset({'remote_latency', 'remote_bandwidth', 'own_over_remote_latency'})

    measures = {
        'own_latency': Quantity('ns', 'lower', headline=True, must_be_held=True),
        'own_bandwidth': Quantity('GB/s', 'higher', headline=True),
        'slowest_domain_latency': Quantity('1', 'lower', must_be_held=True),
        'slowest_domain_bandwidth': Quantity('1', 'higher'),
        'remote_latency': Quantity('ns', 'lower'),
        'remote_bandwidth': Quantity('GB/s', 'higher'),
        'own_over_remote_latency': Quantity('1', 'lower', must_be_held=True),
    } | OF_DISTURBANCE

    def matrix(self, measure, is_own):
        """Its values by the domain of the cores, of their own memory or of all others'."""
        found = {}
        for one in self.report['results']:
            if one['measure'] == measure and (one['from'] == one['memory_of']) == is_own:
                found.setdefault(one['from'], []).append(one['value'])
        return found

    def figures(self):
        latency = {of: 1e9 * one for of, (one,) in self.matrix('latency', True).items()}
        bandwidth = {of: one / 1e9 for of, (one,) in self.matrix('bandwidth', True).items()}
        values = {
            'own_latency': max(latency.values()),
            'own_bandwidth': min(bandwidth.values()),
            'slowest_domain_latency': max(latency.values()) / min(latency.values()),
            'slowest_domain_bandwidth': min(bandwidth.values()) / max(bandwidth.values()),
        }
        # Of domains with cores alone: memory without any may be of another kind.
        remote = self.matrix('latency', False)
        if remote:
            values['remote_latency'] = 1e9 * max(map(max, remote.values()))
            rates = self.matrix('bandwidth', False)
            values['remote_bandwidth'] = min(map(min, rates.values())) / 1e9
            values['own_over_remote_latency'] = max(
                latency[of] / (1e9 * min(remote[of])) for of in latency if of in remote
            )
        return self.as_figures(**values) | self.disturbance_figures()
