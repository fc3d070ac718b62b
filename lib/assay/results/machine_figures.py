"""Which figures are of the machine itself, and which only tell how quiet a job's nodes were."""

from __future__ import annotations

from assay.results.figure_series import Measured
from assay.witness.disturbance import DISTURBANCES

#: Of whatever check: a raw TCP socket between nodes, measured in the job beside MPI. The kernel,
#: the driver and the network make it; no MPI and no flag of a compiler does.
OF_THE_NETWORK = frozenset({'socket_latency', 'socket_bandwidth', 'socket_bandwidth_of_link'})
#: By check: what cores and memory of a node give. Programs without messages measure it.
OF_THE_NODE = {
    'Clock': frozenset(
        {
            *('scalar_frequency', 'vector_frequency', 'cycles_kept'),
            *('scalar_slowest_core', 'vector_slowest_core'),
        }
    ),
    'Stream': frozenset({'copy', 'scale', 'add', 'triad'}),
}
#: What a build can change of those: they are controls only where these facts are the same. Their
#: flags are the suite's own, whatever a site builds with.
_OF_THE_BUILD = ('by', 'compiler', 'flags', 'target')

#: Shares of a job's time that went to others. They excuse a value, and are none themselves.
CONDITIONS = frozenset({*DISTURBANCES, 'undisturbed_share'})


def is_of_the_network(one: Measured) -> bool:
    """Whether no change of software above the kernel can have touched it: it is of the network."""
    return one.figure.figure in OF_THE_NETWORK


def is_of_the_node(before: Measured, after: Measured) -> bool:
    """Whether no change between the two can have touched it but one of the nodes themselves."""
    if after.figure.figure not in OF_THE_NODE.get(after.check, ()):
        return False
    old, new = ([side.facts.get(name) for name in _OF_THE_BUILD] for side in (before, after))
    return old == new and None not in new
