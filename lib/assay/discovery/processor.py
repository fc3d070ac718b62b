"""The processor of a node: what of it a job may use, and how programs are compiled for it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from assay.config.environments import TUNED
from assay.discovery.node import Facts

#: Seconds that a compiler may take to say its version.
PATIENCE = 60


def flags(architectures: Sequence[str], compiler: str) -> tuple[str, ...]:
    """The compiler's options for processors; the benchmarks are built where ReFrame runs.

    They are those for the nearest that all can run and the compiler knows, or none.

    :param architectures: as archspec calls them.
    :param compiler: absolute path.
    """
    from archspec.cpu import TARGETS, UnsupportedMicroarchitecture, host

    if {*architectures} == {host().name}:
        return tuple(TUNED)
    if not {*architectures} <= TARGETS.keys():
        return ()
    name, version = _version(compiler)
    first, *others = ([TARGETS[one], *TARGETS[one].ancestors] for one in architectures)
    for target in first:
        if not all(target in lineage for lineage in others):
            continue
        try:
            if options := target.optimization_flags(name, version):
                return tuple(options.split())
        except UnsupportedMicroarchitecture:
            continue
    return ()


@lru_cache(maxsize=256)
def _version(compiler: str) -> tuple[str, str]:
    """A compiler's name for archspec, and its version."""
    try:
        said = subprocess.run(
            [compiler, '--version'],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors='replace',
            timeout=PATIENCE,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        said = ''
    # Behind a name there may be that of a package with another version.
    numbers = re.findall(r'\b\d+(?:\.\d+)+', re.sub(r'\(.*?\)', '', said))
    return 'clang' if 'clang' in said.lower() else 'gcc', numbers[0] if numbers else '0'


def usable(facts: Facts) -> dict[str, Any]:
    """A processor without the cores that a job may not use, the same whichever those are.

    Its CPUs are numbered anew where some are left out, and all is in order: a node of the same type
    is described by the same words.
    """
    processor, topology = facts.processor, facts.processor['topology']
    allowed = sum(1 << cpu for cpu in facts.allowed)
    cores = [mask for mask in _numbers(topology['cores']) if mask & allowed]
    whole = sum(cores)
    numbers = {cpu: number for number, cpu in enumerate(_bits(whole))}

    def left(masks: Iterable[str]) -> list[str]:
        kept = [[numbers[cpu] for cpu in _bits(mask & whole)] for mask in _numbers(masks)]
        return [hex(sum(1 << cpu for cpu in cpus)) for cpus in kept if cpus]

    # Some virtual machines have none.
    sockets = left(topology['sockets']) or [hex((1 << len(numbers)) - 1)]
    count = len(numbers)
    caches = sorted(topology['caches'], key=lambda one: (one['type'], one['size']))
    return processor | {
        'num_cpus': count,
        'num_cpus_per_socket': count // len(sockets),
        'num_sockets': len(sockets),
        'topology': {
            'numa_nodes': left(topology['numa_nodes']),
            'sockets': sockets,
            'cores': left(topology['cores']),
            'caches': [
                one | {'num_cpus': max(map(_count, sets)), 'cpusets': sets}
                for one in caches
                if (sets := left(one['cpusets']))
            ],
        },
    }


def _numbers(masks: Iterable[str]) -> list[int]:
    return sorted(int(mask, 16) for mask in masks)


def _bits(mask: int) -> list[int]:
    return [cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1]


def _count(mask: str) -> int:
    return int(mask, 16).bit_count()
