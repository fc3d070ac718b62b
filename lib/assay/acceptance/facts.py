"""Facts of the system that a check needs, kept as data beside the outputs of its job.

The configuration is a program, and of another checkout: whoever computes figures again runs none.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay import AssayError
from assay.files import read_bounded
from assay.machine import topology
from assay.machine.topology import usable_memory

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

GIB = float(1 << 30)

#: Bytes of a file of them at most.
MOST = 16 << 20

Name = Annotated[str, Field(pattern=r'^[A-Za-z0-9_.-]+$', max_length=200)]


class _Facts(BaseModel):
    model_config = ConfigDict(extra='forbid', frozen=True)


class PartitionFacts(_Facts):
    """A partition.

    :param cores: of a node, that jobs may use.
    :param memory_gib: of a node; None if nobody has said it.
    :param processor: as ReFrame describes it.
    """

    name: Name
    launcher: Name
    features: tuple[str, ...]
    extras: dict[str, Any]
    environments: tuple[Name, ...]
    cores: int | None
    memory_gib: float | None
    processor: dict[str, Any]


class EnvironmentFacts(_Facts):
    """A compiler and an MPI."""

    name: Name
    features: tuple[str, ...]
    extras: dict[str, Any]


class Facts(_Facts):
    """A system, as checks see it."""

    system: Name
    partitions: tuple[PartitionFacts, ...]
    environments: tuple[EnvironmentFacts, ...]

    def text(self) -> str:
        """As it is kept."""
        return f'{self.model_dump_json(indent=1)}\n'


def of_site(site: _SiteConfig) -> Facts:
    """The facts of the system of a loaded configuration.

    :raises AssayError: if what ReFrame found out about a processor cannot be read.
    """
    system = site['systems'][0]
    return Facts(
        system=system['name'],
        partitions=tuple(_partition(site, system['name'], one) for one in system['partitions']),
        environments=tuple(
            EnvironmentFacts(
                name=one['name'],
                features=tuple(one.get('features', ())),
                extras=_plain_data(one.get('extras', {})),
            )
            for one in site['environments']
        ),
    )


def read_kept_facts(path: Path) -> Facts:
    """The facts in a file.

    :raises AssayError: if it holds none.
    """
    try:
        return Facts.model_validate_json(read_bounded(path, MOST))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = '.'.join(map(str, first['loc']))
        raise AssayError(f'{path}: {where}: {first["msg"]}') from None


def _partition(site: _SiteConfig, system: str, partition: dict[str, Any]) -> PartitionFacts:
    is_local = partition['scheduler'] == 'local'
    processor = partition.get('processor') or _found_out(site, system, partition['name'], is_local)
    cores, memory = topology.core_count(processor) or None, None
    extras = _plain_data(partition.get('extras', {}))
    if is_local:  # as checks see it where their jobs start beside them
        cores = cores and min(cores, topology.usable_cores())
        processor = _with_usable_domains(processor)
        memory = usable_memory() / GIB
    elif 'memory_gib' in extras:
        memory = float(extras['memory_gib'])
    return PartitionFacts(
        name=partition['name'],
        launcher=partition['launcher'],
        features=tuple(partition.get('features', ())),
        extras=extras,
        environments=tuple(partition.get('environs', ())),
        cores=cores,
        memory_gib=memory,
        processor=_plain_data(processor),
    )


def _with_usable_domains(processor: dict[str, Any]) -> dict[str, Any]:
    """A processor with no more NUMA domains than this process may use."""
    shown = processor.get('topology') or {}
    domains = [mask for mask in shown.get('numa_nodes', []) if int(mask, 16)]
    kept = domains[: len(topology.usable_topology().domains)]
    return {**processor, 'topology': {**shown, 'numa_nodes': kept}}


def _found_out(site: _SiteConfig, system: str, partition: str, is_local: bool) -> dict[str, Any]:
    """The processor as ReFrame detected it, where the configuration does not describe it."""
    folder = os.path.expandvars(site.get('general/0/topology_prefix'))
    path = Path(folder, f'{system}-{partition}', 'processor.json')
    if path.is_file():
        try:
            found: dict[str, Any] = json.loads(read_bounded(path, MOST))
        except ValueError as error:
            raise AssayError(f'{path}: not valid: {error}: remove it') from None
        return found
    return topology.names() | topology.this_machine().for_reframe() if is_local else {}


def _plain_data(value: Any) -> Any:
    """Convert a Python value of a configuration to types that JSON has."""
    return json.loads(json.dumps(value, default=str))
