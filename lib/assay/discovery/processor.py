"""The processor of a node: what of it a job may use, and how programs are compiled for it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from assay.config.environments import TUNED
from assay.discovery.node import Facts
from assay.machine.topology import of_processor

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
    """A processor without what of it a job may not use, the same whichever that is.

    A node of the same type is described by the same words.
    """
    return facts.processor | of_processor(facts.processor).only(facts.allowed).for_reframe()
