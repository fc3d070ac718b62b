"""What is recorded of a package that Spack built: here, in ``spack.lock``, below its prefix."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from assay import paths
from assay.files import write_whole
from assay.machine.provenance import Provenance, flags_by_language

FLAGS = ('cflags', 'cppflags', 'cxxflags', 'fflags', 'ldflags', 'ldlibs')


def from_lock(lock: Mapping[str, Any]) -> Provenance:
    """The facts of the one root of a ``spack.lock``."""
    specs = lock['concrete_specs']
    (root,) = lock['roots']
    spec = specs[root['hash']]

    def provider(*virtuals: str) -> str:
        """Name and version of the direct dependency that stands for one of the virtual packages."""
        for edge in spec.get('dependencies', []):
            provided = edge['parameters']['virtuals'] or [edge['name']]
            if set(virtuals) & set(provided):
                return f'{edge["name"]}@{specs[edge["hash"]]["version"]}'
        return ''

    mpi = provider('mpi')
    flags = {flag for name in FLAGS for flag in spec['parameters'].get(name, [])}
    target = spec['arch']['target']
    others = sorted(each['name'] + '@' + each['version'] for each in specs.values() if each != spec)
    words = [f'{spec["name"]}@{spec["version"]}', *_variants(spec), *(f'^{one}' for one in others)]
    return Provenance(
        by='spack',
        spec=' '.join(words),
        hash=root['hash'],
        compiler=provider('cxx', 'c'),
        flags=' '.join(sorted(flags)),
        mpi=mpi,
        blas=provider('blas', 'scipy-openblas32'),
        target=target if isinstance(target, str) else target['name'],
    )


def _variants(spec: Mapping[str, Any]) -> Iterator[str]:
    """As Spack writes them."""
    for name, value in sorted(spec['parameters'].items()):
        if name in FLAGS:
            continue
        if isinstance(value, bool):
            yield f'{"+" if value else "~"}{name}'
        else:
            yield f'{name}={",".join(value) if isinstance(value, list) else value}'


def compile_flags(prefix: Path, wanted: str) -> str:
    """The flags of the compilations of an installed package, for C and for C++.

    Spack's compiler wrapper adds those of the target, and those that the spec asks for. Flags
    of the package's own build are known where it left CMake's list of commands, as ours does.

    :param wanted: the flags of the spec.
    """
    kept = prefix / '.spack'
    try:
        variables = (kept / 'spack-build-env.txt').read_text(errors='replace')
    except OSError:
        return wanted
    by_package: dict[str, str] = {}
    for commands in sorted(kept.rglob('compile_commands.json'))[:1]:
        by_package = flags_by_language(commands)
    told = []
    for language, compiler in (('C', 'CC'), ('C++', 'CXX')):
        found = re.search(rf'\bSPACK_TARGET_ARGS_{compiler}=([^;\n]*)', variables)
        target = ' '.join(shlex.split(found[1])) if found else ''
        if flags := ' '.join(filter(None, [target, by_package.get(language, ''), wanted])):
            told.append(f'{language}: {flags}')
    return '; '.join(told)


def keep_spec(prefix: Path, full_hash: str) -> None:
    """Keep the spec of an installed package with the history, once: its hash tells all of it.

    :param full_hash: Spack's, which figures carry as ``built_hash``.
    """
    kept = paths.SPECS / f'{full_hash}.json'
    spec = prefix / '.spack' / 'spec.json'
    if spec.is_file() and not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, spec.read_text())


# Thousands of figures of a history are of the same build.
@lru_cache(maxsize=64)
def kept_spec(full_hash: str) -> dict[str, str]:
    """Each package that a build was made from, itself among them, with all that Spack chose of it.

    Empty if its spec was not kept.
    """
    if not re.fullmatch('[a-z0-9]{32}', full_hash):
        return {}
    try:
        nodes = json.loads((paths.SPECS / f'{full_hash}.json').read_text())['spec']['nodes']
        packages = defaultdict(list)
        for node in nodes:
            packages[node['name']].append(' '.join(_choices(node)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    # Of a tool that only builds need there may be several.
    return {name: '; '.join(sorted(each)) for name, each in packages.items()}


def _choices(node: Mapping[str, Any]) -> Iterator[str]:
    """What Spack chose of a package, in its own words."""
    yield f'@{node["version"]}'
    yield from _variants(node)
    parameters = node['parameters']
    yield from (f'{name}="{" ".join(parameters[name])}"' for name in FLAGS if parameters.get(name))
    target = node['arch']['target']
    yield f'os={node["arch"]["platform_os"]}'
    yield f'target={target if isinstance(target, str) else target["name"]}'
    if external := node.get('external'):
        yield f'prefix={external["path"]}'
    if recipe := node.get('package_hash'):
        yield f'recipe={recipe[:8]}'


@dataclass(frozen=True)
class Build:
    """A package as Spack has installed it.

    :param sources: checksum of the sources of this checkout that it was made from; empty for
        others' packages.
    :param files: the checksums of its programs and libraries, by their paths below the prefix.
    """

    prefix: Path
    sources: str
    files: Mapping[str, str]
    provenance: Provenance

    def path(self, name: str) -> Path:
        """The absolute path of a program or a library."""
        return self.prefix / ('lib' if '.so' in name else 'bin') / name

    def changed_file(self) -> str:
        """A file that is gone, or is not what Spack installed there; empty if there is none."""
        for name, known in self.files.items():
            try:
                content = (self.prefix / name).read_bytes()
            except OSError:
                return name
            if _checksum(content) != known:
                return name
        return ''

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {'prefix': str(self.prefix)}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Build:
        return cls(
            prefix=Path(record['prefix']),
            sources=record['sources'],
            files=dict(record['files']),
            provenance=Provenance(**record['provenance']),
        )


def checksums(prefix: Path, files: Iterable[Path]) -> dict[str, str]:
    """What :attr:`Build.files` has of files below a prefix."""
    return {str(path.relative_to(prefix)): _checksum(path.read_bytes()) for path in files}


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
