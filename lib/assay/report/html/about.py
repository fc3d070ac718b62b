"""What was measured: where, with which software, and by which suite; once for all cases."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from assay.results.cases import Case
from assay.results.provenance import nodes_of
from assay.text import plain

#: Facts in words; a fact that is not listed keeps its name.
NAMES = {
    'by': 'built by',
    'spec': 'Spack spec',
    'hash': 'hash of the build',
    'mpi': 'MPI, built with',
    'flags': 'compiler flags',
    'target': 'built for',
    'suite_commit': 'commit of the suite',
    'ran_mpi': 'MPI, as it ran',
}

#: Values of one fact that are told.
MOST = 12


@dataclass(frozen=True)
class MeasuredWith:
    """What was measured with, in one respect.

    :param values: each value, and in how many cases.
    :param more: how many values are not told.
    """

    name: str
    values: Sequence[tuple[str, int]]
    more: int = 0


def measured_with(cases: Sequence[Case]) -> tuple[list[MeasuredWith], list[MeasuredWith]]:
    """Facts of some cases, and the environment variables that their jobs had."""
    told: dict[str, Counter[str]] = {
        name: Counter() for name in ('system', 'partition', 'environment', 'fabric', 'nodes')
    }
    variables: dict[str, Counter[str]] = {}
    for case in cases:
        told['system'][case.system] += 1
        told['partition'][case.partition] += 1
        told['environment'][case.environment] += 1
        told['fabric'][case.fabric] += 1
        told['nodes'][nodes_of(case)] += 1
        for name, value in case.facts:
            kind = variables if re.fullmatch(r'[A-Z].*', name) else told
            kind.setdefault(name, Counter())[value] += 1
    return _as_facts(told), _as_facts(variables)


def _as_facts(told: dict[str, Counter[str]]) -> list[MeasuredWith]:
    found = []
    for name, counts in told.items():
        values = [(plain(value), count) for value, count in counts.most_common() if value]
        if values:
            words = NAMES.get(name, name.removeprefix('ran_on_').removeprefix('ran_'))
            label = plain(words if name.isupper() else words.replace('_', ' '))
            found.append(MeasuredWith(label, values[:MOST], len(values[MOST:])))
    return found
