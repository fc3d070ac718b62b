"""Settings of ranks beside their variables: files, limits, kernels, libraries, interfaces and
clocks.

Pure functions over a report of the witness. ``docs/witness.md`` lists the settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import PurePath
from statistics import median

from assay.text import fold_nodes, plain
from assay.witness.report import LoadedLibrary, Machine, Report
from assay.witness.traffic import between_hosts
from assay.witness.variables import is_steering

#: Settings that a sentence names, and characters of each: some are text of others.
MOST, LONGEST = 4, 200

#: Seconds by which clocks of the day may differ; what keeps them in step keeps them to some ms.
APART = 1.0

#: Bytes that a rank has to be allowed to lock for a network that reads and writes its memory. With
#: the 64 KiB that Linux allowed before 5.16 no queue of messages can be made; with the 8 MiB since
#: then some MPIs still manage.
LEAST_LOCKED = 1 << 20

_MCA = re.compile(r'^(?:OMPI|PMIX|PRTE)_MCA_')
#: What the names of libraries begin with, in words.
OF_LIBRARIES = 'library '
#: Of the host's memory, by default half of it.
OF_MEMORY = 'shm:size'
#: How the variables begin that lines of such files stand for.
_OF_FILES = {
    'openmpi-mca-params': 'OMPI_MCA_',
    '/.openmpi/mca-params': 'OMPI_MCA_',
    'pmix-mca-params': 'PMIX_MCA_',
    '/.pmix/mca-params': 'PMIX_MCA_',
    'prte-mca-params': 'PRTE_MCA_',
    '/.prte/mca-params': 'PRTE_MCA_',
}
_SIZES = ('limit:memlock', 'limit:stack', 'limit:core', 'limit:as', 'shm:size')
#: Of sizes, each 1,024 times the one before.
UNITS = ('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB')
_LABELS = {
    'process:huge_pages': 'huge pages of the process',
    'process:may_lock': 'memory that the process may lock',
    'shm:size': 'size of /dev/shm',
    'clock:day': 'clock of the day',
}
_MISSING = {
    'file': 'not set',
    'variable': 'unset',
    'preloaded': 'not there',
    'library': 'not loaded',
    'clock': 'in step',
}


def by_host(report: Report) -> dict[str, dict[str, str]]:
    """The settings of each host, by the witness's names; of ranks that differ all values.

    Beside those of ranks ``library:NAME`` of what they have loaded, ``device:NAME:mtu`` and
    ``device:NAME:speed`` of the interfaces that their connections to other hosts went over, and
    ``clock:day`` of a host whose clock is off: how far ahead of the median host's.
    """
    if not report.settings:  # of an earlier witness
        return {}
    found = {}
    of_most = _libraries(report.libraries)
    for name, processes in report.by_host().items():
        values: dict[str, set[str]] = {}
        for process in processes:
            merged = report.settings | process.differs.settings
            own = process.differs.libraries
            for key, value in (*merged.items(), *(_libraries(own) if own else of_most)):
                if value is not None:
                    values.setdefault(key, set()).add(value)
        found[name] = {key: ' / '.join(sorted(some)) for key, some in sorted(values.items())}
    for name, device, key, value in _of_devices(report):
        found[name][f'device:{device}:{key}'] = value
    for name, ahead in _clocks(report).items():
        found[name]['clock:day'] = f'{ahead:+.0f} s'
    return found


def _libraries(loaded: Iterable[LoadedLibrary]) -> list[tuple[str, str]]:
    """The name of each library, with its version, the beginning of its build id, and its path."""
    found = []
    for one in loaded:
        if one.build_id is not None:
            # What auditwheel copies into a wheel gets a part of a checksum into its name.
            name = re.sub(r'-[\da-f]{8}$', '', PurePath(one.path).name.partition('.so')[0])
            told = filter(None, (one.version, one.build_id[:8], f'({one.path})'))
            found.append((f'library:{name}', ' '.join(told)))
    return found


def _of_devices(report: Report) -> Iterator[tuple[str, str, str, str]]:
    used = {(sender, socket.device) for sender, _, socket in between_hosts(report)}
    for host in report.hosts:
        for device in host.devices:
            if (host.name, device.name) in used:
                if device.mtu:
                    yield host.name, device.name, 'mtu', str(device.mtu)
                if device.speed:
                    yield host.name, device.name, 'speed', f'{device.speed * 8e-9:g} Gbit/s'


def _clocks(report: Report) -> dict[str, float]:
    """The hosts whose clock of the day is off, with the seconds that it is ahead of the median."""
    days = {host.name: host.clock.day for host in report.hosts if host.clock}
    known = {name: day for name, day in days.items() if day is not None}
    if not known:
        return {}
    middle = median(known.values())
    if len(known) == 2:  # unknown which is right: the report is in the time of rank 0's host
        middle = 0.0
    errors = {host.name: host.clock.error for host in report.hosts if host.clock}
    return {
        name: day - middle
        for name, day in known.items()
        if abs(day - middle) > APART + errors[name]
    }


def label(key: str) -> str:
    """A setting's name in words, by the witness's."""
    kind, _, name = key.partition(':')
    match kind:
        case 'limit':
            return f'limit of {name}'
        case 'kernel' | 'variable':
            return name
        case 'file':
            path, _, variable = name.rpartition(':')
            return f'{_MCA.sub("", variable)} in {path}'
        case 'preloaded':
            return f'preloaded library {name}'
        case 'library':
            return f'{OF_LIBRARIES}{name}'
        case 'device':
            device, _, what = name.rpartition(':')
            return f'{"MTU" if what == "mtu" else what} of {device}'
    return _LABELS.get(key, key)


def set_in_file(name: str) -> tuple[str, str] | None:
    """The variable that a line of a file stands for, and the file; None of another setting.

    :param name: in words.
    """
    found = re.fullmatch(r'(\S+) in (/.*)', name)
    if not found:
        return None
    variable, path = found.groups()
    return next((mca for name, mca in _OF_FILES.items() if name in path), '') + variable, path


def setting_in_words(key: str, value: str | None) -> str:
    """A setting's value in words."""
    if value is None:
        return _MISSING.get(key.partition(':')[0], 'not known')
    if key in _SIZES and value.isdecimal():
        return binary_size(int(value))
    return value


def binary_size(number: int) -> str:
    """Bytes with a binary unit: to two digits, as /dev/shm is a part of a memory like no other."""
    power = min((number.bit_length() - 1) // 10 if number else 0, len(UNITS) - 1)
    scaled = number / (1 << 10 * power)
    return f'{float(f"{scaled:.2g}") if scaled < 100 else round(scaled):g} {UNITS[power]}'


def facts(report: Report) -> dict[str, str]:
    """The settings of a job in words, by their names in words; hosts that differ are named."""
    hosts = by_host(report)
    keys = sorted({key for settings in hosts.values() for key in settings})
    return {label(key): _named(_alike(key, hosts), len(hosts)) for key in keys}


def known_to_both(
    before: Mapping[str, str], after: Mapping[str, str], kind: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Facts of two sides; those of a kind only if both know some of it.

    Earlier witnesses did not look for all.

    :param kind: what the names of these facts begin with.
    """
    sides = before, after
    if all(any(name.startswith(kind) for name in side) for side in sides):
        return dict(before), dict(after)
    kept = [
        {name: value for name, value in side.items() if not name.startswith(kind)} for side in sides
    ]
    return kept[0], kept[1]


def _named(alike: Mapping[str, list[str]], count: int) -> str:
    """Values, each with the hosts that have it; a value alone if all of so many hosts have it."""
    if [count] == [len(names) for names in alike.values()]:
        return next(iter(alike))
    return ', '.join(f'{value} ({fold_nodes(names)})' for value, names in sorted(alike.items()))


def _alike(key: str, hosts: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """The hosts that have each value of a setting."""
    found: dict[str, list[str]] = {}
    for name, settings in hosts.items():
        found.setdefault(setting_in_words(key, settings.get(key)), []).append(name)
    return found


def host_differences(report: Report) -> list[str]:
    """Settings and variables in which the hosts of a job differ, each as text.

    The value of most hosts comes first.
    """
    hosts = by_host(report)
    for name, variables in _variables_of_hosts(report).items():
        hosts.setdefault(name, {}).update(variables)
    found = []
    for key in sorted({key for settings in hosts.values() for key in settings}):
        alike = _alike(key, hosts)
        if len(alike) > 1 and key != 'clock:day':
            most_first = sorted(alike.items(), key=lambda one: (-len(one[1]), one[0]))
            parts = [f'{value} on {fold_nodes(names)}' for value, names in most_first]
            found.append(plain(f'{label(key)} ({", ".join(parts)})', LONGEST))
    return [*found, *_clock_difference(report)]


def _variables_of_hosts(report: Report) -> dict[str, dict[str, str]]:
    """The steering variables of each host that some rank has otherwise, but none of its own ranks.

    Variables that differ between ranks of a host say nothing about the host.
    """
    names = {name for process in report.processes for name in process.differs.environment}
    found: dict[str, dict[str, str]] = {host.name: {} for host in report.hosts}
    for name in filter(is_steering, names):
        values: dict[str, set[str | None]] = {}
        for process in report.processes:
            value = report.environment_of(process).get(name)
            values.setdefault(process.host, set()).add(value)
        if all(len(of_host) == 1 for of_host in values.values()):
            for host, (value,) in values.items():
                if value is not None:
                    found[host][f'variable:{name}'] = value
    return found


def _clock_difference(report: Report) -> Iterator[str]:
    """The two hosts whose clocks of the day are farthest apart, if they are."""
    if not _clocks(report):
        return
    clocks = [(host.name, host.clock) for host in report.hosts if host.clock]
    days = [(name, one.day, one.error) for name, one in clocks if one.day is not None]
    one, other = max(combinations(days, 2), key=lambda two: abs(two[0][1] - two[1][1]))
    apart, error = abs(one[1] - other[1]), max(one[2], other[2])
    yield plain(
        f'clock of the day ({one[0]} and {other[0]} are {apart:.1f} s apart, to within '
        f'{1e3 * error:.2g} ms)',
        LONGEST,
    )


def left_in_files(report: Report) -> list[str]:
    """The settings that files made for the ranks, or preloaded, and that are in force, as text.

    A variable of the environment comes before what a file sets, but not where that overrides. One
    with the same value is the file's: Open MPI's launcher hands it on so.
    """
    hosts = by_host(report)
    variables = report.values_of_variables()
    found: dict[str, list[str]] = {}
    for name, settings in hosts.items():
        seen: set[str] = set()
        for key in _in_force(report, settings):
            kind, _, rest = key.partition(':')
            if kind == 'preloaded':
                by = '' if settings[key] == 'unknown' else f' in {settings[key]}'
                found.setdefault(f'preloading of {rest}{by}', []).append(name)
            elif kind == 'file':
                path, _, variable = rest.rpartition(':')
                overrides = path.endswith('-override.conf')
                comes_before = variables.get(variable, {'-'}).isdisjoint({'-', settings[key]})
                if variable in seen or (comes_before and not overrides):
                    continue
                seen.add(variable)
                text = f'{_MCA.sub("", variable)}={settings[key]} in {path}'
                found.setdefault(text, []).append(name)
    everywhere = len(hosts)
    return [
        plain(text if len(names) == everywhere else f'{text}, on {fold_nodes(names)}', LONGEST)
        for text, names in found.items()
    ]


def set_by_files(report: Report) -> dict[str, set[str]]:
    """The values that files set variables to, on any host."""
    found: dict[str, set[str]] = {}
    for settings in by_host(report).values():
        for key, value in settings.items():
            if key.startswith('file:'):
                found.setdefault(key.rpartition(':')[2], set()).add(value)
    return found


def _in_force(report: Report, settings: Mapping[str, str]) -> Iterator[str]:
    """Names of settings of a host in the order of the witness, which is that in which files win."""
    yield from (key for key in report.settings if key in settings)
    yield from (key for key in settings if key not in report.settings)


def verify_settings(report: Report, carrier: str, only_if_all: bool = False) -> str | None:
    """A setting that no MPI can work around, in a sentence; None if there is none.

    :param carrier: of the fabric that was asked for.
    :param only_if_all: leave out what is wrong on some hosts only: the caller reports it.
    """
    hosts = by_host(report)
    if len(hosts) < 2 or carrier not in _BROKEN:
        return None
    key, is_bad, sentence = _BROKEN[carrier]
    bad = [name for name, settings in hosts.items() if is_bad(settings)]
    if not bad or (only_if_all and len(bad) < len(hosts)):
        return None
    return sentence.format(hosts=fold_nodes(bad), value=setting_in_words(key, hosts[bad[0]][key]))


def _locks_little(settings: Mapping[str, str]) -> bool:
    if settings.get('process:may_lock') == 'any':
        return False
    limits = re.findall(r'\d+', settings.get('limit:memlock', ''))
    return any(int(one) < LEAST_LOCKED for one in limits)


def _has_small_windows(settings: Mapping[str, str]) -> bool:
    return settings.get('kernel:net.ipv4.tcp_window_scaling') == '0'


_LOCKED = (
    'limit:memlock',
    _locks_little,
    'ranks on {hosts} may lock no more than {value} of memory (ulimit -l), and over this fabric '
    'buffers of messages have to be locked: set it to unlimited, for slurmd too (LimitMEMLOCK)',
)
#: By carrier: the setting, whether a host has it wrong, and the sentence.
_BROKEN: dict[str, tuple[str, Callable[[Mapping[str, str]], bool], str]] = {
    'sockets': (
        'kernel:net.ipv4.tcp_window_scaling',
        _has_small_windows,
        'TCP has no window scaling on {hosts} (net.ipv4.tcp_window_scaling={value}), so that no '
        'connection carries more than 64 KiB in a round trip',
    ),
    'infiniband': _LOCKED,
}


# The machine --------------------------------------------------------------------------------------


def machine_facts(report: Report) -> dict[str, str]:
    """The facts of a job's hosts, by field; empty where they could not be read.

    Hosts that differ stand behind what each has, in the order of the words:
    ``6.1.0 (n[1-2]), 6.5.0 (n3)``. The same hosts give the same text, whichever rank 0 is on.
    """
    return {name: _machine_of_all(report, name) for name in Machine.model_fields}


def _machine_of_all(report: Report, name: str) -> str:
    hosts: dict[str, list[str]] = {}
    for host in report.hosts:
        if host.machine and (value := ' '.join(getattr(host.machine, name).split())):
            hosts.setdefault(value, []).append(host.name)
    return _named(hosts, len(report.hosts))
