"""The kinds of faults: their names, what each is given, and what it does to a node or a switch.

On its own, so that a help text costs no import of what injects them.
"""

from typing import NamedTuple


class Kind(NamedTuple):
    """What stands behind the name of a fault."""

    value: str
    effect: str


KINDS = {
    'delay': Kind('US', 'delay packets to and from it by US microseconds'),
    'loss': Kind('PERCENT', 'drop PERCENT of packets to and from it'),
    'rate': Kind('MBITS', 'limit its link to MBITS Mbit/s each way'),
    'cpu': Kind('PERCENT', 'limit its CPU time to PERCENT'),
    'link': Kind('down|up', 'take its link down, or bring it up'),
    'crash': Kind('', 'power it off without a shutdown'),
    'boot': Kind('', 'power it on'),
}
