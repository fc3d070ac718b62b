"""The kinds of faults: their names, what each is given, and what it does to a node.

On its own, so that a help text costs no import of what injects them.
"""

from typing import NamedTuple


class Kind(NamedTuple):
    """What stands behind the name of a fault."""

    value: str
    effect: str


KINDS = {
    'delay': Kind('us', 'packets to and from it come later'),
    'loss': Kind('percent', 'of the packets do not come'),
    'rate': Kind('Mbit/s', 'of its link'),
    'cpu': Kind('percent', 'of the time of its CPUs is what it gets'),
    'link': Kind('down|up', 'its cable'),
    'crash': Kind('', 'its power fails'),
    'boot': Kind('', 'it starts again'),
}
