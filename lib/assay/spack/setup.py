"""Telling Spack what a machine has: the ``packages.yaml`` of a system."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from assay import AssayError, paths
from assay.config.environments import OURS, spack_specs
from assay.files import write_whole
from assay.machine.mpi import Mpi
from assay.spack.tool import Spack, turn

#: What Spack looks for on the machine: compilers, and tools that only builds need. No MPIs: of
#: several in one prefix, as Debian's are, it would link any with the one that has the usual names.
LOOKED_FOR = [
    *('gcc', 'llvm', 'intel-oneapi-compilers', 'nvhpc', 'aocc', 'cce'),
    *('cmake', 'gmake', 'ninja', 'perl', 'python', 'pkgconf'),
    *('autoconf', 'automake', 'libtool', 'm4', 'bison', 'flex'),
]

HEADER = '# Written by `assay spack setup`; once edited it is left alone. sha256 of the rest: '


def packages_file(system: str) -> Path:
    """Where Spack reads what the machine of a system has."""
    return paths.SPACK_CONFIG / system / 'packages.yaml'


def write_packages(spack: Spack, system: str, mpis: Iterable[Mpi]) -> bool:
    """Write ``packages.yaml`` of a system, with what is on this machine.

    :returns: whether it was written: one that somebody has edited is left as it is.
    """
    file = packages_file(system)
    with turn(spack):
        if file.exists() and _is_edited(file.read_text()):
            return False
        file.parent.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump({'packages': packages(_found(spack, system), mpis)}, sort_keys=False)
        write_whole(file, f'{HEADER}{_checksum(text)}\n{text}')
    return True


def _is_edited(text: str) -> bool:
    first, _, rest = text.partition('\n')
    return first != HEADER + _checksum(rest)


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _found(spack: Spack, system: str) -> dict[str, Any]:
    """What Spack finds by itself."""
    spack.configure()
    file = spack.state / 'user' / 'packages.yaml'
    file.unlink(missing_ok=True)
    # For the system's repos.yaml, where there is one; it would not find again what it knows.
    folder = paths.SPACK_CONFIG / system
    packages_file(system).unlink(missing_ok=True)
    spack.run('-C', str(folder), 'external', 'find', '--scope', 'user', *LOOKED_FOR)
    try:
        found: dict[str, Any] = yaml.safe_load(file.read_text())['packages']
        return found
    finally:
        file.unlink()


def packages(found: dict[str, Any], mpis: Iterable[Mpi]) -> dict[str, Any]:
    """What Spack found, each MPI in its own prefix, and OpenBLAS from .venv for our sources."""
    result = dict(found)
    mpis = list(mpis)
    specs = spack_specs(mpis)
    for mpi in mpis:
        if mpi.name not in specs:
            continue
        package, _, number = specs[mpi.name].partition('@=')
        external: dict[str, Any] = {'spec': f'{package}@{number}', 'prefix': str(mpi.prefix)}
        if mpi.modules:
            external['modules'] = list(mpi.modules)
        known = result.setdefault(package, {'externals': [], 'buildable': False})
        known['externals'].append(external)
    wheel = find_spec('scipy_openblas32')
    assert wheel and wheel.origin, 'requirements.lock has it'
    release = version('scipy-openblas32')
    return result | {
        'mpi': {'buildable': False},
        'scipy-openblas32': {
            'externals': [
                {'spec': f'scipy-openblas32@{release}', 'prefix': str(Path(wheel.origin).parent)}
            ],
            'buildable': False,
        },
        # Not required: then what a site requires of all packages would not hold for ours.
        OURS: {'prefer': ['+openblas_wheel']},
    }


def assert_prepared(system: str) -> None:
    """See that the system has been set up for Spack, and that what it relies on is still there.

    :raises AssayError: if not.
    """
    file = packages_file(system)
    remedy = f'run `assay spack setup --system {system}`'
    try:
        known = yaml.safe_load(file.read_text())['packages']
    except FileNotFoundError:
        raise AssayError(f'{file.parent} has no packages.yaml: {remedy}.') from None
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise AssayError(f'{file} is not valid: {error}') from None
    for package in known.values():
        for external in package.get('externals', []):
            prefix = Path(external.get('prefix', '/'))
            if not prefix.is_dir():
                raise AssayError(
                    f'{external["spec"]} is no longer in {prefix}, where {file} '
                    f'has it: {remedy} again.'
                )
