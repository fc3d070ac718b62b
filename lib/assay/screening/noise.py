"""Nodes whose cores are interrupted: by other processes, interrupts and the kernel.

It is reported and decides nothing, as it is not known how often sound nodes differ so.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from assay.results.statistics.series import Floats
from assay.screening.measured import PARTS_OF_NOISE, Screening
from assay.screening.nodes import FEWEST_PEERS, kinds

#: Of one core's time: what takes less in the median sweep is left out. A rank on that core comes so
#: much later, and with it all that wait for it.
LEAST = 0.005
#: So many times as much as its peers': nodes of one image run the same daemons, whose turns differ.
#: It was not measured by how much.
TIMES = 4.0


def find_noise(now: Screening) -> dict[str, str]:
    """By node that is interrupted far more than its peers: by what, in words."""
    found = {}
    for numbers in kinds(now):
        if len(numbers) < FEWEST_PEERS:
            continue
        noise = [now.noise[number] for number in numbers]
        cores, processes = (
            _far_more(np.array([float(one.get(share, 0)) for one in noise]))
            for share in ('share', 'process_share')
        )
        for at in sorted({*cores, *processes}):
            found[now.nodes[numbers[at]]] = _words(noise[at], cores.get(at), processes.get(at))
    return found


def _far_more(shares: Floats) -> dict[int, float]:
    """The usual share, by the number of each node that has far more than it.

    That is the upper quartile of the others: a quarter of them may be noisy as well.
    """
    usual = {
        int(i): float(np.quantile(np.delete(shares, i), 0.75))
        for i in np.flatnonzero(shares >= LEAST)
    }
    return {i: often for i, often in usual.items() if shares[i] >= TIMES * often}


def _words(
    noise: Mapping[str, str | float], of_cores: float | None, of_processes: float | None
) -> str:
    """:param of_cores: what a core of its peers loses; None if the node's does not lose far more.
    :param of_processes: likewise, what the busiest process takes.
    """
    words = []
    if of_cores is not None:
        words.append(
            f'a core lost {noise["share"]:.1%} of its time to interruptions{_parts(noise)}, of its '
            f'peers {of_cores:.2%}; the longest took {1e3 * float(noise["longest"]):.3g} ms'
        )
        if 'all' in noise:
            words.append(f'all cores lost {noise["all"]:.2%}')
    if of_processes is not None:
        words.append(
            f'{noise["process"]} took {noise["process_share"]:.1%} of a core, of its peers the '
            f'busiest process {of_processes:.2%}'
        )
    return '; '.join(words)


def _parts(noise: Mapping[str, str | float]) -> str:
    """By what the core lost its time. The rest is the kernel's: its clock ticks, for example."""
    if 'others' not in noise:
        return ''
    others, interrupts, stolen = (float(noise[name]) for name in PARTS_OF_NOISE[1:])
    rest = max(float(noise['share']) - others - interrupts - stolen, 0.0)
    told = [f'{others:.1%} to other processes', f'{interrupts:.1%} to interrupts']
    if stolen:
        told.append(f'{stolen:.1%} to the hypervisor')
    return f' ({", ".join(told)}, {rest:.1%} to the kernel)'
