"""The configuration of a system, made of what was found; and its file."""

from __future__ import annotations

import os
import re
import runpy
import socket
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from assay import AssayError
from assay.config.environments import AS_ROOT, TUNED, environment, tcp_over
from assay.config.fabrics import load_catalogue
from assay.discovery.node import Facts
from assay.discovery.partitions import NodeType, Partition, Seen
from assay.discovery.probing import MPIRUN, Probed
from assay.machine.modules import modules_tool
from assay.machine.mpi import Mpi
from assay.spelling import many

#: What names the interface of UCX's TCP, and all devices that it may use.
UCX_DEVICES = 'UCX_NET_DEVICES'

#: Columns of the file.
WIDTH = 100

TEMPLATE = Path(__file__).with_name('system.py.jinja')

#: Why a fabric was not confirmed, by the names of partition, environment and fabric.
LeftOut = dict[str, dict[str, dict[str, str]]]


@dataclass(frozen=True)
class Asked:
    """What `assay init` was told, and is told again when it looks again.

    :param access: options of sbatch.
    :param partitions: of Slurm; empty for all.
    :param mpis: names of MPIs; empty for all.
    """

    access: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    mpis: tuple[str, ...] = ()


@dataclass(frozen=True)
class Use:
    """An MPI in a partition.

    :param fabrics: those that both have.
    :param pmi: by which srun starts its programs; None by its own launcher.
    """

    mpi: Mpi
    fabrics: tuple[str, ...]
    pmi: str | None


@dataclass(frozen=True)
class Drafted:
    """A partition for ReFrame.

    :param name: of it.
    :param where: what Slurm tells of it.
    :param facts: of its nodes, what they say of themselves.
    :param uses: the MPIs that it has, all with one launcher.
    :param flags: of compilers, for its processor.
    """

    name: str
    where: Partition
    facts: tuple[Facts, ...]
    uses: tuple[Use, ...]
    flags: tuple[str, ...]
    is_this_machine: bool

    @property
    def words(self) -> str:
        """Its nodes in a few words: processors as they say themselves, the rest as Slurm does."""
        sockets, kind = self.processor['num_sockets'], self.where.type
        cores = many(len(self.processor['topology']['cores']) // sockets, 'core')
        return f'{many(sockets, "socket")} of {cores}, {kind.words.partition(", ")[2]}'

    @property
    def launcher(self) -> str:
        return 'srun' if self.uses[0].pmi else MPIRUN

    @property
    def interface(self) -> str | None:
        """The network interface that its nodes have the address of their name on."""
        (name, *others) = {one.interface for one in self.facts}
        return None if others else name

    @property
    def other_interfaces(self) -> list[str]:
        return sorted({one for each in self.facts for one in each.interfaces} - {self.interface})

    @property
    def variables(self) -> list[list[str]]:
        """Those that keep TCP on the interface.

        UCX has one for TCP and for devices: where there are some it chooses by itself.
        """
        if not self.interface:
            return []
        has_devices = any(one.devices for one in self.facts)
        return [one for one in tcp_over(self.interface) if one[0] != UCX_DEVICES or not has_devices]

    @property
    def extras(self) -> dict[str, Any]:
        """What a job may take of a node's memory: of Slurm's word and the nodes' the least."""
        memory = min(self.where.type.memory, *(one.memory for one in self.facts)) // 1024
        return {'memory_gib': memory} | ({'on_this_machine': True} if self.is_this_machine else {})

    @property
    def scales(self) -> list[str]:
        return [f'scale_{name}' for name in self.where.scales]

    @property
    def fabrics(self) -> list[str]:
        """Those of its MPIs, in the catalogue's order."""
        there = {fabric for use in self.uses for fabric in use.fabrics}
        return [name for name in load_catalogue().fabrics if name in there]

    @property
    def processor(self) -> dict[str, Any]:
        """As ReFrame describes one: the cores that a job may use."""
        return _usable(self.facts[0])


@dataclass(frozen=True)
class Draft:
    """The configuration of a system.

    :param scheduler: ReFrame's.
    :param missing: sentences on what has no place in it.
    """

    name: str
    asked: Asked
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
        """The same without some of its ways, and what nothing is left of."""
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
    asked: Asked,
    seen: Seen,
    probed: Mapping[NodeType, Probed | str],
    mpis: Iterable[Mpi],
) -> Draft:
    """Make it of what Slurm tells and what jobs found.

    :param name: of the system.
    """
    partitions: list[Drafted] = []
    missing = [f'partition {key}: {why}' for key, why in seen.left_out.items()]
    for where in seen.partitions:
        found = probed[where.type]
        if isinstance(found, str):
            missing.append(f'partition {where.name}: {found}')
            continue
        missing += _differences(where, found.facts)
        missing += [
            f'{where.name}: no MPI {key}: {fault}' for key, fault in sorted(found.faults.items())
        ]
        partitions += _drafted(where, found, [*mpis])
    return Draft(name, asked, seen.scheduler, tuple(partitions), tuple(missing))


def _drafted(where: Partition, found: Probed, mpis: Sequence[Mpi]) -> Iterator[Drafted]:
    """A partition of Slurm as one of ReFrame, or two where its MPIs need two launchers."""
    catalogue = load_catalogue()
    there = [
        key
        for key, one in catalogue.fabrics.items()
        if not one.device or all(key in each.devices for each in found.facts)
    ]
    uses: dict[bool, list[Use]] = {}
    for mpi in mpis:
        if way := found.ways.get(mpi.name):
            fabrics = tuple(key for key in there if catalogue.no_recipe(key, mpi) is None)
            by_srun = way != MPIRUN
            uses.setdefault(by_srun, []).append(Use(mpi, fabrics, way if by_srun else None))
    flags = _flags(found.facts[0].processor.get('arch', ''))
    boot = Path('/proc/sys/kernel/random/boot_id').read_text().strip()
    is_this_machine = all(one.boot == boot for one in found.facts)
    for by_srun, own in uses.items():
        name = where.name if by_srun or len(uses) == 1 else f'{where.name}-{MPIRUN}'
        yield Drafted(name, where, tuple(found.facts), tuple(own), flags, is_this_machine)


def _flags(architecture: str) -> tuple[str, ...]:
    """The compiler's for the nodes: the benchmarks are built where ReFrame runs."""
    from archspec.cpu import TARGETS, host

    if architecture in ('', host().name) or architecture not in TARGETS:
        return tuple(TUNED)
    newest = '99'  # an older compiler that does not know the processor says so itself
    return tuple(TARGETS[architecture].optimization_flags('gcc', newest).split())


def _differences(where: Partition, facts: Sequence[Facts]) -> Iterator[str]:
    """What Slurm and the nodes do not agree on."""
    for one in facts:
        cores = len(_usable(one)['topology']['cores'])
        if cores != where.type.cores:
            yield (
                f'{where.name}: a job may use {cores} core(s) of {one.name}, where Slurm is told '
                f'{where.type.words}'
            )
        if one.interface is None:
            yield f'{where.name}: no interface of {one.name} has the address that Slurm knows'
    if len(models := {one.processor.get('model', 'unknown') for one in facts}) > 1:
        yield f'{where.name}: its nodes have different processors: {", ".join(sorted(models))}'


def _usable(facts: Facts) -> dict[str, Any]:
    """A processor without the cores that a job may not use, the same whichever those are.

    Its CPUs are numbered anew where some are left out, and all is in order: a node of the same type
    is described by the same words.
    """
    processor, topology = facts.processor, facts.processor['topology']
    allowed = sum(1 << cpu for cpu in facts.allowed)
    cores = [mask for mask in _numbers(topology['cores']) if mask & allowed]
    usable = sum(cores)
    numbers = {cpu: number for number, cpu in enumerate(_bits(usable))}

    def left(masks: Iterable[str]) -> list[str]:
        kept = [[numbers[cpu] for cpu in _bits(mask & usable)] for mask in _numbers(masks)]
        return [hex(sum(1 << cpu for cpu in cpus)) for cpus in kept if cpus]

    sockets, count = left(topology['sockets']), len(numbers)
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
                for sets in [left(one['cpusets'])]
            ],
        },
    }


def _numbers(masks: Iterable[str]) -> list[int]:
    return sorted(int(mask, 16) for mask in masks)


def _bits(mask: int) -> list[int]:
    return [cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1]


def _count(mask: str) -> int:
    return int(mask, 16).bit_count()


def written(made: Draft, left_out: LeftOut | None) -> str:
    """The text of the file.

    :param left_out: what was not confirmed; None before anything was.
    """
    from jinja2 import Environment, StrictUndefined

    template = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    template.filters |= {'py': _python, 'variable': lambda name: re.sub(r'\W', '_', name)}
    confirmed = made.without(left_out or {})
    text = template.from_string(TEMPLATE.read_text()).render(
        draft=confirmed,
        asked=asdict(made.asked),
        left_out=left_out,
        host=re.escape(socket.gethostname()),
        modules_system=modules_tool(),
        environments={mpi.name: environment(mpi) for mpi in confirmed.mpis},
        fabrics=set(load_catalogue().fabrics),
        as_root=AS_ROOT if os.geteuid() == 0 else [],
    )
    return f'{text.rstrip()}\n'


def _python(value: Any, depth: int, beside: int = 24) -> str:
    """A value as Python has it: in one line if there is room, else its items in lines of their own.

    :param depth: blanks before the line in which it begins, and before its end.
    :param beside: what else stands in that line.
    """
    short = repr(value)
    if not isinstance(value, dict | list) or len(short) <= WIDTH - depth - beside:
        return short
    inner = depth + 4
    if isinstance(value, dict):
        heads = {key: f'{key!r}: ' for key in value}
        lines = [f'{heads[key]}{_python(value[key], inner, len(heads[key]) + 1)},' for key in value]
    elif all(isinstance(item, str) for item in value):
        words = ', '.join(map(repr, value)) + ','
        room = WIDTH - inner
        lines = textwrap.wrap(words, room, break_long_words=False, break_on_hyphens=False)
    else:
        lines = [f'{_python(item, inner, 1)},' for item in value]
    first, last = '{}' if isinstance(value, dict) else '[]'
    return '\n'.join([first, *(f'{" " * inner}{line}' for line in lines), f'{" " * depth}{last}'])


def read_again(path: Path) -> tuple[Asked, LeftOut]:
    """What an earlier `assay init` was told and did not confirm, from the file that it wrote.

    :raises AssayError: if it did not write it.
    """
    try:
        values = runpy.run_path(str(path))
        asked = {key: tuple(words) for key, words in values['asked'].items()}
        return Asked(**asked), values['left_out']
    except Exception as error:  # a configuration file is a program: it can raise anything
        raise AssayError(
            f'{path} was not written by `assay init`, which changes no other file: '
            f'choose another name ({type(error).__name__}: {error})'
        ) from error
