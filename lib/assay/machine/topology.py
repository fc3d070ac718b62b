"""The processors of a machine, as Linux shows them in /sys: cores, sockets, domains, caches.

A *CPU* is a hardware thread that is online. A *core* is the CPUs that share what computes. A *NUMA
domain* has CPUs: memory alone, as that of a GPU or behind CXL, is a domain for Linux too, but no
place for ranks. Kinds of cores differ in speed, as performance and efficiency cores do.

A kernel or hypervisor may say nothing, or what cannot be. A CPU of unknown core is a core of its
own; without sockets there is one; domains that do not divide the CPUs among them are taken for one.
``sources/witness/placement.c`` reads the same on each node of a job, by the same rules.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from assay.text import parse_cpus

Cpus = frozenset[int]

#: Of 1024, by which the kernel counts a CPU's speed: one below this share of another is of another
#: kind. The fastest of equal cores may be clocked a few percent higher.
ALIKE = 0.9

#: Where an x86 kernel lists the CPUs of each kind, the fastest first.
KINDS = ('cpu_core', 'cpu_atom', 'cpu_lowpower')

_UNITS = {'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}


@dataclass(frozen=True)
class Cache:
    """Caches of a level that are alike.

    :param size: bytes.
    :param sharing: the CPUs that share each.
    """

    level: int
    size: int
    linesize: int
    associativity: int
    sharing: tuple[Cpus, ...]


@dataclass(frozen=True)
class Topology:
    """CPUs by what they share, in the order of their first; no CPU stands twice in a list.

    :param domains: NUMA domains that have CPUs.
    :param kinds: CPUs of each kind of core, the fastest first; one where all cores are alike.
    :param memory_domains: numbers of the domains that have memory and no CPUs.
    :param offline: CPUs that are there and switched off.
    """

    cores: tuple[Cpus, ...]
    sockets: tuple[Cpus, ...]
    domains: tuple[Cpus, ...]
    caches: tuple[Cache, ...] = ()
    kinds: tuple[Cpus, ...] = ()
    memory_domains: Cpus = field(default_factory=frozenset)
    offline: Cpus = field(default_factory=frozenset)

    @property
    def cpus(self) -> Cpus:
        return frozenset().union(*self.cores)

    @property
    def core_kinds(self) -> list[int]:
        """The number of cores of each kind, the fastest first."""
        return [sum(1 for core in self.cores if core & kind) for kind in self.kinds]

    def restrict_to(self, cpus: Iterable[int]) -> Topology:
        """The topology of these CPUs alone; one of unknown cores if none of them is here."""
        own = frozenset(cpus)
        own = own & self.cpus or own
        return self._with(lambda one: one & own, own)

    def for_reframe(self) -> dict[str, Any]:
        """As ReFrame describes a processor, which is the same whichever its CPUs are.

        ReFrame divides CPUs by CPUs per core. Where cores have different numbers of them, it gets
        the first of each core; the CPUs are numbered anew.
        """
        even = self if len({*map(len, self.cores)}) == 1 else self.restrict_to(map(min, self.cores))
        numbers = {cpu: number for number, cpu in enumerate(sorted(even.cpus))}
        own = frozenset(numbers.values())
        return even._with(lambda one: frozenset(numbers[cpu] for cpu in one), own).describe()

    def describe(self) -> dict[str, Any]:
        """The same with the CPUs' own numbers, and cores as they are."""
        count = len(self.cpus)
        return {
            'num_cpus': count,
            'num_cpus_per_core': count // len(self.cores),
            'num_cpus_per_socket': count // len(self.sockets),
            'num_sockets': len(self.sockets),
            'topology': {
                'numa_nodes': _masks(self.domains),
                'sockets': _masks(self.sockets),
                'cores': _masks(self.cores),
                'caches': [
                    {
                        'type': f'L{one.level}',
                        'size': one.size,
                        'linesize': one.linesize,
                        'associativity': one.associativity,
                        'num_cpus': max(map(len, one.sharing)),
                        'cpusets': _masks(one.sharing),
                    }
                    for one in self.caches
                ],
            },
        }

    def _with(self, change: Callable[[Cpus], Cpus], cpus: Cpus) -> Topology:
        """With each list of CPUs changed; what has none left is left out.

        :param cpus: all that there are then.
        """

        def changed(sets: Iterable[Cpus]) -> list[Cpus]:
            return [one for one in map(change, sets) if one]

        caches = [replace(one, sharing=tuple(changed(one.sharing))) for one in self.caches]
        return replace(
            self,
            cores=_apart(changed(self.cores), cpus, alone=True),
            sockets=_apart(changed(self.sockets), cpus),
            domains=_dividing(changed(self.domains), cpus),
            caches=tuple(one for one in caches if one.sharing),
            kinds=tuple(changed(self.kinds)),
        )


# What the kernel shows ---------------------------------------------------------------------------


def read_topology(root: Path = Path('/')) -> Topology:
    """Read the topology of a machine.

    :param root: of its /sys.
    """
    devices = root / 'sys' / 'devices'
    folder, nodes = devices / 'system' / 'cpu', devices / 'system' / 'node'
    there = {int(one.name[3:]): one for one in folder.glob('cpu[0-9]*')}
    online = _list(folder / 'online') or frozenset(there)
    online -= {cpu for cpu, own in there.items() if _text(own / 'online') == '0'}
    if not online:
        online = frozenset(os.sched_getaffinity(0))
    topologies = {cpu: folder / f'cpu{cpu}' / 'topology' for cpu in online}

    def groups(*names: str) -> list[Cpus]:
        """The CPUs that are together by the first of these files that is there."""
        found: list[Cpus] = []
        known: set[int] = set()
        for cpu in sorted(online):
            if cpu not in known and (own := _cpus(topologies[cpu], *names) & online):
                found.append(own)
                known |= own
        return found

    domains = {int(one.name[4:]): _cpus(one, 'cpumap') & online for one in nodes.glob('node[0-9]*')}
    with_cpus = {number for number, cpus in domains.items() if cpus}
    cores = _apart(groups('core_cpus', 'thread_siblings'), online, alone=True)
    return Topology(
        cores=cores,
        sockets=_apart(groups('package_cpus', 'core_siblings'), online),
        domains=_dividing([cpus for cpus in domains.values() if cpus], online),
        caches=_caches(folder, online),
        kinds=_kinds(devices, online),
        memory_domains=(_list(nodes / 'has_memory') & domains.keys()) - with_cpus,
        offline=frozenset(there) - online,
    )


@lru_cache(maxsize=1)
def this_machine() -> Topology:
    """The topology of this machine; read once, as it does not change during a run."""
    return read_topology()


def usable_topology() -> Topology:
    """The part of this machine that this process may use by its affinity and control groups."""
    return this_machine().restrict_to(os.sched_getaffinity(0))


def usable_cores() -> int:
    """How many cores this process can keep busy: it may be allowed less time than theirs."""
    return int(max(1, min([len(usable_topology().cores), *cpu_limits()])))


def names() -> dict[str, str]:
    """The names of this machine's processor, as ReFrame has them."""
    import archspec.cpu

    host = archspec.cpu.host()
    return {
        'arch': host.name,
        'vendor': host.vendor,
        'model': archspec.cpu.brand_string() or 'N/A',
        'platform': platform.machine(),
    }


def _caches(folder: Path, online: Cpus) -> tuple[Cache, ...]:
    found: dict[tuple[int, int, int, int], list[Cpus]] = {}
    known: dict[str, set[int]] = {}
    for cpu in sorted(online):
        for own in (folder / f'cpu{cpu}' / 'cache').glob('index[0-9]*'):
            seen = known.setdefault(own.name, set())
            if cpu in seen:
                continue
            sharing = _cpus(own, 'shared_cpu_map') & online | {cpu}
            seen |= sharing
            level, size = _number(own / 'level'), _size(own / 'size')
            if level and size and _text(own / 'type') != 'Instruction':
                line = _number(own / 'coherency_line_size')
                # Of `ways_of_associativity` some kernels have no number for a full one.
                lines = _number(own / 'number_of_sets') * line
                lines *= _number(own / 'physical_line_partition')
                key = (level, size, line, size // lines if lines else 0)
                found.setdefault(key, []).append(sharing)
    return tuple(Cache(*key, tuple(sets)) for key, sets in sorted(found.items()))


def _kinds(devices: Path, online: Cpus) -> tuple[Cpus, ...]:
    told = [_list(devices / name / 'cpus') & online for name in KINDS]
    if frozenset().union(*told) == online:
        return tuple(one for one in told if one)
    speeds = {
        cpu: _number(devices / 'system' / 'cpu' / f'cpu{cpu}' / 'cpu_capacity') for cpu in online
    }
    found: list[Cpus] = []
    if all(speeds.values()):
        while left := online.difference(*found):
            least = ALIKE * max(speeds[cpu] for cpu in left)
            found.append(frozenset(cpu for cpu in left if speeds[cpu] >= least))
    return tuple(found) or (online,)


def _text(file: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        # Some kernels end a mask with a byte of zero.
        return file.read_text().strip(' \n\0')
    return ''


def _number(file: Path) -> int:
    text = _text(file)
    return int(text) if text.isdigit() else 0


def _size(file: Path) -> int:
    """Bytes, of a size such as 32K."""
    text = _text(file)
    number, unit = text.rstrip('KMG'), text.lstrip('0123456789')
    return int(number) * _UNITS.get(unit, 1) if number.isdigit() else 0


def _list(file: Path) -> Cpus:
    with suppress(ValueError):
        return parse_cpus(_text(file))
    return frozenset()


def _cpus(folder: Path, *names: str) -> Cpus:
    """The CPUs in the first of these files that exists: a mask, or beside it a list."""
    for name in names:
        with suppress(ValueError):  # not there, or empty
            return _members(int(_text(folder / name).replace(',', ''), 16))
        if found := _list(folder / name.replace('map', 'list')) or _list(folder / f'{name}_list'):
            return found
    return frozenset()


# What ReFrame gets -------------------------------------------------------------------------------


def of_processor(processor: Mapping[str, Any]) -> Topology:
    """The topology in a processor's description, which ReFrame made or somebody wrote."""
    topology = processor.get('topology') or {}
    cores, sockets, domains = (
        [one for mask in topology.get(key, []) if (one := _members(int(mask, 16)))]
        for key in ('cores', 'sockets', 'numa_nodes')
    )
    cpus = frozenset().union(*cores, *([] if cores else (domains or sockets)))
    if not cpus:
        cpus = frozenset(range(processor.get('num_cpus') or 0))
    return Topology(
        cores=_apart(cores, cpus, alone=True),
        sockets=_apart(sockets, cpus),
        domains=_dividing(domains, cpus),
        caches=tuple(
            Cache(
                int(one['type'].lstrip('L')),
                one['size'],
                one.get('linesize', 0),
                one.get('associativity', 0),
                tuple(_members(int(mask, 16)) for mask in one['cpusets']),
            )
            for one in sorted(
                topology.get('caches', []), key=lambda one: (one['type'], one['size'])
            )
        ),
        kinds=(cpus,),
    )


def core_count(processor: Mapping[str, Any]) -> int:
    """Cores of a description; 0 if it does not say.

    It may be one that ReFrame made itself, whose CPUs are also those that are offline.
    """
    if cores := (processor.get('topology') or {}).get('cores'):
        return sum(1 for mask in {*cores} if int(mask, 16))
    return (processor.get('num_cpus') or 0) // (processor.get('num_cpus_per_core') or 1)


def domain_count(processor: Mapping[str, Any]) -> int:
    """NUMA domains with CPUs of a description; at least one."""
    masks = (processor.get('topology') or {}).get('numa_nodes', [])
    return sum(1 for mask in masks if int(mask, 16)) or 1


def _members(mask: int) -> Cpus:
    return frozenset(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


def _masks(sets: Iterable[Cpus]) -> list[str]:
    return [hex(sum(1 << cpu for cpu in one)) for one in sets]


def _apart(sets: Iterable[Cpus], cpus: Cpus, alone: bool = False) -> tuple[Cpus, ...]:
    """Sets that share no CPU and hold all: what is in none is one set, or each is one alone."""
    found: list[Cpus] = []
    left = cpus
    for one in sorted(sets, key=min):
        if own := one & left:
            found.append(own)
            left -= own
    rest = [frozenset([cpu]) for cpu in left] if alone else [left]
    return tuple(sorted([*found, *filter(None, rest)], key=min))


def _dividing(sets: Iterable[Cpus], cpus: Cpus) -> tuple[Cpus, ...]:
    """These sets if each CPU is in one of them, otherwise one of all."""
    found = sorted(filter(None, (one & cpus for one in sets)), key=min)
    is_right = sum(map(len, found)) == len(cpus) == len(frozenset().union(*found))
    return tuple(found) if is_right else (cpus,)


# What control groups leave of it ------------------------------------------------------------------


#: The control groups of a process, and where the kernel shows them.
CGROUP, CGROUPS = Path('/proc/self/cgroup'), Path('/sys/fs/cgroup')


def usable_memory() -> int:
    """Bytes of this machine's memory, or what its control groups leave this process of it."""
    return min([os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE'), *_memory_limits()])


def _memory_limits() -> Iterator[int]:
    """Bytes, for each group that has a limit."""
    for is_v2, folder in _groups('memory'):
        # In a container the upper groups may not be there to see.
        with suppress(OSError, ValueError):  # no number: no limit
            name = 'memory.max' if is_v2 else 'memory.limit_in_bytes'
            yield int((folder / name).read_text())


def cpu_limits() -> Iterator[float]:
    """CPUs' worth of time, for each group that has a limit."""
    for is_v2, folder in _groups('cpu'):
        with suppress(OSError, ValueError):
            if is_v2:
                quota, period = map(int, (folder / 'cpu.max').read_text().split())
            else:
                quota = int((folder / 'cpu.cfs_quota_us').read_text())
                period = int((folder / 'cpu.cfs_period_us').read_text())
            if quota > 0 < period:
                yield quota / period


def _groups(controller: str) -> Iterator[tuple[bool, Path]]:
    """Folders of this process's groups and of those above; whether they are of version 2."""
    try:
        lines = CGROUP.read_text().splitlines()
    except OSError:  # a kernel without them
        return
    for line in lines:
        _, controllers, inner = line.split(':', 2)
        if not controllers:
            top = CGROUPS
        elif controller in controllers.split(','):
            top = CGROUPS / controller
        else:
            continue
        own = top / inner.lstrip('/')
        for folder in (own, *own.parents):
            yield not controllers, folder
