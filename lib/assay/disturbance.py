"""Whether a node was the job's own: what else took time of its CPUs."""

from __future__ import annotations

from collections.abc import Mapping

from assay.figure import Figure
from assay.witness import Report

#: A share below this explains no missed reference. Seen on an idle machine: below 1%.
NOTICEABLE = 0.02

_WORDS = {
    'foreign_share': "other processes took {:.0%} of the time of the job's CPUs",
    'steal_share': 'the hypervisor took {:.0%} of the CPUs',
    'throttled_share': 'quotas withheld {:.0%} of the CPUs',
    'waited_share': 'a rank waited for a CPU in {:.0%} of its time',
}

#: Names of the figures that tell of a disturbance.
DISTURBANCES = tuple(_WORDS)


def disturbance_figures(report: Report) -> dict[str, Figure]:
    """The greatest share of each kind over the hosts of a job; empty if nobody looked."""
    seen = [host.disturbance for host in report.hosts if host.disturbance]
    return {
        name: Figure(max(getattr(one, name) for one in seen), '1', 'lower')
        for name in DISTURBANCES
        if seen
    }


def disturbed(shares: Mapping[str, float]) -> str | None:
    """What disturbed a job, in words; None if nothing did.

    :param shares: figures by name, among them those of :func:`disturbance_figures`.
    """
    took = {words: shares.get(name, 0.0) for name, words in _WORDS.items()}
    parts = [words.format(share) for words, share in took.items() if share >= NOTICEABLE]
    return f'the node was disturbed: {", ".join(parts)}' if parts else None
