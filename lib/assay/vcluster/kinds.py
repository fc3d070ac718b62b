"""The kinds of faults: their names, what each is given, and what it does to a node.

On its own, so that a help text costs no import of what injects them.
"""

from typing import NamedTuple


class Kind(NamedTuple):
    """What stands behind the name of a fault."""

    value: str
    effect: str


KINDS = {
    'delay': Kind('US', 'delay packets to and from the node by US microseconds'),
    'loss': Kind('PERCENT', 'drop PERCENT of packets to and from the node'),
    'rate': Kind('MBITS', "limit the node's link to MBITS Mbit/s each way"),
    'cpu': Kind('PERCENT', "limit the node's CPU time to PERCENT"),
    'link': Kind('down|up', "take the node's link down, or bring it up"),
    'crash': Kind('', 'power the node off without a shutdown'),
    'boot': Kind('', 'power the node on'),
}
