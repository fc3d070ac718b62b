"""What a ``spack.lock`` tells of the package that it was made for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assay.machine.provenance import Provenance

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
