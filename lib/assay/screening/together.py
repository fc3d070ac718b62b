"""Links that went down of many nodes: what they share did it, as a switch that was restarted."""

from __future__ import annotations

from collections.abc import Iterator

from assay.screening.findings import Evidence, Finding
from assay.screening.measured import Screening

#: The part of the nodes beyond which it is not each one's own link.
MOST = 0.25


def went_down_together(now: Screening) -> Iterator[Finding]:
    """The switches whose nodes all lost their links, and the other nodes if many did.

    A single node's link is the node's own, however few nodes there are.
    """
    left = {name for name, faults in zip(now.nodes, now.faults, strict=True) if 'link' in faults}
    # The largest first: where a switch stands above others it is all of them.
    switches = sorted(now.switches.items(), key=lambda one: (-len(one[1]), one[0]))
    for switch, names in switches:
        members = {*names} & {*now.nodes}
        if len(members) > 1 and members <= left:
            left -= members
            yield _group(now, members, switch)
    if len(left) > max(1, MOST * len(now.nodes)):
        yield _group(now, left)


def _group(now: Screening, names: set[str], switch: str = '') -> Finding:
    members = tuple(sorted(names))
    first = now.number[members[0]]
    text = (
        f'links of {len(members)} of {len(now.nodes)} nodes went down; {members[0]}: '
        f'{now.faults[first]["link"]}'
    )
    return Finding('group', members, (Evidence('link', text),), switch)
