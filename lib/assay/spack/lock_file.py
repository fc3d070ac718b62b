"""What Spack keeps of a package that it built: in a ``spack.lock``, and below its prefix."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

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


def compiled_with(prefix: Path, wanted: str) -> str:
    """The flags of the compilations of an installed package, for C and for C++.

    Spack's compiler wrapper adds those of the target, and those that the spec asks for. What the
    package's own build adds is known where it left CMake's list of commands, as ours does.

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
