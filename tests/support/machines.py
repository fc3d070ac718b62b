"""Machines as Linux shows them in /sys/devices, one text file each: what they have, in few lines.

A line is ``path = content``. In a path ``[0,128 +1 x64]`` stands for 64 groups of CPUs: 0 and 128,
1 and 129, and so on. The file is there for each CPU, and ``{}`` is its group. Files that hold CPUs
are written as the kernel has them, under all names that it has for them; a folder of a cache, such
as ``index3 = L3 16384K``, with all that is in it.

To record a machine: ``python machines.py ROOT``, for the folder that has its /sys.
"""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path

from assay.text import as_list, parse_cpus

#: Files that hold masks, with all names of the same, and of the list beside it.
MASKS = {
    'core_cpus': ['core_cpus', 'thread_siblings'],
    'package_cpus': ['package_cpus', 'core_siblings'],
    'shared_cpu_map': ['shared_cpu_map'],
    'cpumap': ['cpumap'],
}


class Tree:
    """A folder or a file in memory: of a Path what reading a machine needs, as writing is slow."""

    def __init__(self, whole: Tree | None = None, path: str = '') -> None:
        self.files: dict[str, str] = whole.files if whole else {}
        self.folders: dict[str, dict[str, None]] = whole.folders if whole else {}
        self.path, self.name = path, path.rpartition('/')[2]

    def __truediv__(self, name: str) -> Tree:
        return Tree(self, f'{self.path}/{name}'.lstrip('/'))

    def put(self, text: str) -> None:
        """Make it a file."""
        self.files[self.path], path = text, self.path
        while path:
            path, _, name = path.rpartition('/')
            self.folders.setdefault(path, {})[name] = None

    def glob(self, pattern: str) -> list[Tree]:
        """Of this folder's own."""
        return [self / name for name in self.folders.get(self.path, ()) if fnmatch(name, pattern)]

    def read_text(self) -> str:
        if self.path not in self.files:
            raise FileNotFoundError(self.path)
        return self.files[self.path]

    def is_file(self) -> bool:
        return self.path in self.files

    def is_dir(self) -> bool:
        return self.path in self.folders

    def write(self, root: Path) -> Path:
        """Make real files of it."""
        for path, text in self.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return root


def lay(text: str) -> Tree:
    """A machine's files: the folder that has its /sys."""
    root = Tree()
    for line in text.splitlines():
        path, equals, content = line.partition(' =')
        if line.startswith('#') or not line:
            continue
        assert equals, f'not `path = content`: {line!r}'
        for number, group in _groups(path):
            where = re.sub(r'\[.*\]', str(number), path)
            file, content = root / 'sys' / 'devices' / where, content.strip()
            if cache := re.fullmatch(r'L(\d) (\w+)', content):
                kept = {'shared_cpu_map': group, 'type': 'Unified', 'level': cache[1]}
                for name, value in (kept | {'size': cache[2]}).items():
                    _put(file / name, value)
            else:
                _put(file, content.replace('{}', group))
    return root


def _groups(path: str):
    """The numbers that a path stands for, each with the list of its group."""
    match = re.search(r'\[([\d,-]+)(?: \+(\d+) x(\d+))?\]', path)
    if not match:
        return [(0, '')]
    first, step, count = parse_cpus(match[1]), int(match[2] or 0), int(match[3] or 1)
    groups = [[cpu + step * i for cpu in first] for i in range(count)]
    return [(cpu, as_list(group)) for group in groups for cpu in group]


def _put(file: Tree, content: str) -> None:
    if file.name not in MASKS:
        file.put(f'{content}\n')
        return
    folder, mask = Tree(file, file.path.rpartition('/')[0]), _mask(parse_cpus(content))
    for name in MASKS[file.name]:
        (folder / name).put(f'{mask}\n')
        (folder / (name.replace('map', 'list') if 'map' in name else f'{name}_list')).put(
            f'{content}\n'
        )


@lru_cache(maxsize=256)
def _mask(cpus) -> str:
    """As the kernel writes it: 32 bits a word, the highest first."""
    words = [0] * (max(cpus, default=0) // 32 + 1)
    for cpu in cpus:
        words[cpu // 32] |= 1 << cpu % 32
    return ','.join(f'{word:08x}' for word in reversed(words))


# Recording ---------------------------------------------------------------------------------------


def record(root: Path | Tree) -> str:
    """What :func:`lay` makes of a machine's /sys."""
    devices = root / 'sys' / 'devices'
    cpu, nodes = devices / 'system' / 'cpu', devices / 'system' / 'node'
    there = sorted(int(one.name[3:]) for one in cpu.glob('cpu[0-9]*'))
    lines = []
    if online := _text(cpu / 'online'):
        lines.append(f'system/cpu/online = {online}')
    off = [n for n in there if _text(cpu / f'cpu{n}/online') == '0']
    off = off or sorted({*there} - parse_cpus(online)) if online else off
    if off:
        lines.append(f'system/cpu/cpu[{as_list(off)}]/online = 0')
    for name, others in (('core_cpus', 'thread_siblings'), ('package_cpus', 'core_siblings')):
        sets = {n: _cpus(cpu / f'cpu{n}/topology', name, others) for n in there if n not in off}
        lines += [f'system/cpu/cpu{which}/topology/{name} = {{}}' for which in _runs(sets)]
    caches = [one / 'cache' for one in cpu.glob('cpu[0-9]*')]
    indices = sorted({one.name for cache in caches for one in cache.glob('index[0-9]*')})
    for index in indices:
        kinds = {}
        for n in there:
            own = cpu / f'cpu{n}/cache/{index}'
            if n not in off and own.is_dir():
                kind = tuple(_text(own / name) for name in ('level', 'type', 'size'))
                kinds.setdefault(kind, {})[n] = _cpus(own, 'shared_cpu_map')
        # What only holds code is for no data, and the first level tells nothing more.
        for (level, kind, size), sets in kinds.items():
            if level > '1' and size and kind != 'Instruction':
                at = [f'system/cpu/cpu{which}/cache/{index}' for which in _runs(sets)]
                lines += [f'{one} = L{level} {size}' for one in at]
    speeds = {}
    for n in there:
        if speed := _text(cpu / f'cpu{n}/cpu_capacity'):
            speeds.setdefault(speed, []).append(n)
    lines += [f'system/cpu/cpu[{as_list(n)}]/cpu_capacity = {s}' for s, n in speeds.items()]
    for name in ('cpu_core', 'cpu_atom', 'cpu_lowpower'):
        if text := _text(devices / name / 'cpus'):
            lines.append(f'{name}/cpus = {text}')
    empty = []
    for node in sorted(int(one.name[4:]) for one in nodes.glob('node[0-9]*')):
        if cpus := _cpus(nodes / f'node{node}', 'cpumap'):
            lines.append(f'system/node/node{node}/cpumap = {as_list(cpus)}')
        else:
            empty.append(node)
    if empty:
        lines.append(f'system/node/node[{as_list(empty)}]/cpumap =')
    for name in ('has_cpu', 'has_memory'):
        if text := _text(nodes / name):
            lines.append(f'system/node/{name} = {text}')
    return '\n'.join(line.rstrip() for line in lines) + '\n'


def _text(file: Path) -> str:
    return file.read_text().strip(' \n\0') if file.is_file() else ''


def _cpus(folder: Path, *names: str) -> frozenset[int]:
    for name in names:
        if text := _text(folder / name).replace(',', ''):
            mask = int(text, 16)
            return frozenset(bit for bit in range(mask.bit_length()) if mask >> bit & 1)
    return frozenset()


def _runs(sets) -> list[str]:
    """Groups of CPUs, and those that are the same but for a shift as one."""
    groups = sorted({tuple(sorted(one)) for one in sets.values() if one})
    runs = []
    while groups:
        first, *groups = groups
        step, count = (groups[0][0] - first[0] if groups else 0), 1
        while step and (after := tuple(cpu + step * count for cpu in first)) in groups:
            groups.remove(after)
            count += 1
        runs.append(f'[{as_list([*first])}' + (f' +{step} x{count}]' if count > 1 else ']'))
    return runs


if __name__ == '__main__':
    sys.stdout.write(record(Path(sys.argv[1])))
