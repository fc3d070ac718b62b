"""The configuration of a system, made of what was found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from assay.config.environments import TUNED, tcp_over
from assay.config.fabrics import load_catalogue
from assay.discovery.node import NodeFacts
from assay.discovery.partitions import Partition, Seen, away_in_words, free_name
from assay.discovery.probing import MPIRUN, Probed
from assay.machine.mpi import Mpi
from assay.machine.topology import of_processor
from assay.text import many
from assay.tools import output_of_tool

#: What names the interface of UCX's TCP, and all devices that it may use.
UCX_DEVICES = 'UCX_NET_DEVICES'

#: Why a fabric was not confirmed, by the names of partition, environment and fabric.
LeftOut = dict[str, dict[str, dict[str, str]]]


@dataclass(frozen=True)
class InitOptions:
    """The options of `assay init`, which are used again when it looks again.

    :param access: options of sbatch.
    :param partitions: of Slurm; empty for all.
    :param mpis: names of MPIs; empty for all.
    """

    access: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    mpis: tuple[str, ...] = ()


@dataclass(frozen=True)
class MpiUse:
    """An MPI in a partition.

    :param fabrics: those that both have.
    :param pmi: by which srun starts its programs; None by its own launcher.
    :param flags: of its compiler, for the partition's processor.
    """

    mpi: Mpi
    fabrics: tuple[str, ...]
    pmi: str | None
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Drafted:
    """A partition for ReFrame.

    :param name: of it.
    :param where: what Slurm tells of it.
    :param facts: of its nodes, what they say of themselves.
    :param uses: the MPIs that it has, all with one launcher.
    """

    name: str
    where: Partition
    facts: tuple[NodeFacts, ...]
    uses: tuple[MpiUse, ...]
    is_this_machine: bool

    @property
    def words(self) -> str:
        """Its nodes in a few words: processors as they say themselves, the rest as Slurm does."""
        sockets, kind = self.processor['num_sockets'], self.where.type
        cores = many(len(self.processor['topology']['cores']) // sockets, 'core')
        return ', '.join([f'{many(sockets, "socket")} of {cores}', *kind.rest])

    @property
    def launcher(self) -> str:
        return _launcher(self.uses[0])

    @property
    def interface(self) -> str | None:
        """The network interface that its nodes have the address of their name on."""
        (name, *others) = {one.interface for one in self.facts}
        return None if others else name

    @property
    def variables(self) -> list[list[str]]:
        """The variables that keep TCP on the interface.

        UCX has one for TCP and for devices: where there are some it chooses by itself.
        """
        if not self.interface:
            return []
        has_devices = any(one.devices for one in self.facts)
        return [one for one in tcp_over(self.interface) if one[0] != UCX_DEVICES or not has_devices]

    @property
    def extras(self) -> dict[str, Any]:
        """The partition's extras; the memory is the least that Slurm or any node reports."""
        kind = self.where.type
        told = [kind.memory] if kind.knows_memory else []
        told += [self.where.memory] if self.where.memory else []
        least = min([*told, *(one.memory for one in self.facts)])
        kinds = max((one.core_kinds for one in self.facts), key=len)
        return (
            {'memory_gib': least >> 10}
            | ({'core_kinds': kinds} if len(kinds) > 1 else {})
            | ({'on_this_machine': True} if self.is_this_machine else {})
        )

    @property
    def scales(self) -> list[str]:
        return [f'scale_{name}' for name in self.where.scales]

    @property
    def scales_now(self) -> list[str]:
        """The scales for which there are enough nodes now."""
        return [f'scale_{name}' for name in self.where.scales_now]

    @property
    def fabrics(self) -> list[str]:
        """The fabrics of its MPIs, in the catalogue's order."""
        there = {fabric for use in self.uses for fabric in use.fabrics}
        return [name for name in load_catalogue().fabrics if name in there]

    @property
    def processor(self) -> dict[str, Any]:
        """As ReFrame describes one: the cores that a job may use on each of the nodes."""
        return min(map(usable_processor, self.facts), key=lambda one: len(one['topology']['cores']))


@dataclass(frozen=True)
class Draft:
    """The configuration of a system.

    :param scheduler: ReFrame's.
    :param missing: sentences on what has no place in it.
    """

    name: str
    asked: InitOptions
    scheduler: str
    partitions: tuple[Drafted, ...]
    missing: tuple[str, ...]

    @property
    def mpis(self) -> list[Mpi]:
        """Each that a partition has."""
        return list({use.mpi.name: use.mpi for one in self.partitions for use in one.uses}.values())

    @property
    def pairs(self) -> list[tuple[str, str, str]]:
        """Partition, environment and fabric of each way for messages."""
        return [
            (one.name, use.mpi.name, fabric)
            for one in self.partitions
            for use in one.uses
            for fabric in use.fabrics
        ]

    def without(self, left_out: LeftOut) -> Draft:
        """The same without some of its ways, and without partitions that have none left."""
        partitions = []
        for one in self.partitions:
            gone = left_out.get(one.name, {})
            uses = [
                replace(use, fabrics=tuple(f for f in use.fabrics if f not in gone.get(name, {})))
                for use in one.uses
                for name in [use.mpi.name]
            ]
            if uses := [use for use in uses if use.fabrics]:
                partitions.append(replace(one, uses=tuple(uses)))
        return replace(self, partitions=tuple(partitions))


def draft(
    name: str,
    asked: InitOptions,
    seen: Seen,
    probed: Mapping[str, Probed | str],
    mpis: Iterable[Mpi],
) -> Draft:
    """Make it of what Slurm tells and what jobs found.

    :param name: of the system.
    """
    partitions: list[Drafted] = []
    names = {one.name for one in seen.partitions}
    missing = [f'partition {key}: {why}' for key, why in seen.left_out.items()]
    for where in seen.partitions:
        if where.away:
            missing.append(
                f'{where.name}: {len(where.away)} of its {len(where.nodes)} nodes can have no job '
                f'now and were not looked at: {away_in_words(dict(where.away))}'
            )
        found = probed[where.name]
        if isinstance(found, str):
            missing.append(f'partition {where.name}: {found}')
            continue
        missing += _differences(where, found.facts)
        missing += [
            f'{where.name}: no MPI {key}: {fault}' for key, fault in sorted(found.faults.items())
        ]
        for one in _drafted(where, found, [*mpis]):
            own = one
            if one.name != where.name:
                own = replace(one, name=free_name(one.name, names))
                names.add(own.name)
            partitions.append(own)
            missing += [
                f'{own.name}: no fabric for {use.mpi.name}: its build has none that nodes have'
                for use in own.uses
                if not use.fabrics
            ]
    return Draft(name, asked, seen.scheduler, tuple(partitions), tuple(missing))


def _drafted(where: Partition, found: Probed, mpis: Sequence[Mpi]) -> Iterator[Drafted]:
    """A partition of Slurm as one of ReFrame, or several where its MPIs need several launchers."""
    catalogue = load_catalogue()
    there = [
        key
        for key, one in catalogue.fabrics.items()
        if not one.device or all(key in each.devices for each in found.facts)
    ]
    uses: dict[str, list[MpiUse]] = {}
    for mpi in mpis:
        if way := found.ways.get(mpi.name):
            fabrics = tuple(key for key in there if catalogue.no_recipe(key, mpi) is None)
            options = flags([one.processor.get('arch', '') for one in found.facts], mpi.compiler)
            use = MpiUse(mpi, fabrics, way if way != MPIRUN else None, options)
            uses.setdefault(_launcher(use), []).append(use)
    boot = Path('/proc/sys/kernel/random/boot_id').read_text().strip()
    is_this_machine = all(one.boot == boot for one in found.facts)
    for launcher, own in uses.items():
        name = where.name if launcher == 'srun' or len(uses) == 1 else f'{where.name}-{launcher}'
        yield Drafted(name, where, tuple(found.facts), tuple(own), is_this_machine)


def _launcher(use: MpiUse) -> str:
    """ReFrame's name of what starts its programs; some MPIs have no mpirun, but an mpiexec."""
    return 'srun' if use.pmi else Path(use.mpi.launcher).name


def _differences(where: Partition, facts: Sequence[NodeFacts]) -> Iterator[str]:
    """Facts in which Slurm and the nodes disagree, a sentence each."""
    for one in facts:
        cores = len(usable_processor(one)['topology']['cores'])
        if cores != where.type.cores:
            yield (
                f'{where.name}: a job may use {cores} core(s) of {one.name}, but Slurm says '
                f'{where.type.words}'
            )
        if one.interface is None:
            yield (
                f'{where.name}: no interface of {one.name} has the address that Slurm knows, so '
                f'each MPI chooses among {", ".join(one.interfaces) or "none"}'
            )
        elif others := sorted({*one.interfaces} - {one.interface}):
            yield (
                f'{where.name}: {one.name} has other networks than {one.interface}, where Slurm '
                f'reaches it: {", ".join(others)}'
            )
    if len({one.interface for one in facts}) > 1:
        named = ', '.join(f'{one.name} {one.interface}' for one in facts)
        yield (
            f'{where.name}: Slurm reaches its nodes on different interfaces, so no variable names '
            f'one, and each MPI chooses by itself: {named}'
        )
    for fabric in sorted({key for one in facts for key in one.devices}):
        if without := [one.name for one in facts if fabric not in one.devices]:
            yield f'{where.name}: no fabric {fabric}: {", ".join(without)} has no device for it'
    if len(models := {one.processor.get('model', 'unknown') for one in facts}) > 1:
        yield f'{where.name}: its nodes have different processors: {", ".join(sorted(models))}'


# Processors ---------------------------------------------------------------------------------------


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
    said = output_of_tool([compiler, '--version'], PATIENCE)
    # Behind a name there may be that of a package with another version.
    numbers = re.findall(r'\b\d+(?:\.\d+)+', re.sub(r'\(.*?\)', '', said))
    return 'clang' if 'clang' in said.lower() else 'gcc', numbers[0] if numbers else '0'


def usable_processor(facts: NodeFacts) -> dict[str, Any]:
    """A processor without what of it a job may not use, the same whichever that is.

    A node of the same type is described by the same words.
    """
    return facts.processor | of_processor(facts.processor).restrict_to(facts.allowed).for_reframe()
