"""Telling Spack what a machine has: the ``packages.yaml`` of a system."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from assay import AssayError, paths
from assay.config.environments import spack_specs
from assay.files import write_whole
from assay.machine.mpi import Mpi
from assay.spack import blas
from assay.spack.tool import Spack, turn

#: What Spack looks for on the machine: compilers, and tools that only builds need. No MPIs: of
#: several in one prefix, as Debian's are, it would link any with the one that has the usual names.
LOOKED_FOR = [
    *('gcc', 'llvm', 'intel-oneapi-compilers', 'nvhpc', 'aocc', 'cce'),
    *('cmake', 'gmake', 'ninja', 'perl', 'python', 'pkgconf'),
    *('autoconf', 'automake', 'libtool', 'm4', 'bison', 'flex'),
]

#: The folder of what was found, beside what a site says.
FOUND = 'found'

HEADER = '# Written by `assay spack setup`, each time: what you add goes into ../packages.yaml.\n'


def packages_file(system: str) -> Path:
    """Where Spack reads what the machine of a system has; what a site adds is one folder up."""
    return paths.SPACK_CONFIG / system / FOUND / 'packages.yaml'


def write_packages(spack: Spack, system: str, mpis: Iterable[Mpi]) -> Path:
    """Write ``packages.yaml`` of a system, with what is on this machine; the file.

    :raises AssayError: if the site's own file is not valid.
    """
    file = packages_file(system)
    known = _packages_of(paths.SPACK_CONFIG / system / 'packages.yaml')
    with turn(spack):
        made = packages(_found(spack, system), mpis) | blas.packages(known)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, HEADER + yaml.safe_dump({'packages': made}, sort_keys=False))
    return file


def _packages_of(file: Path) -> dict[str, Any]:
    """What a ``packages.yaml`` says, nothing if it is not there.

    :raises AssayError: if it is not valid.
    """
    try:
        known: dict[str, Any] = yaml.safe_load(file.read_text())['packages'] or {}
        return {name.rstrip(':'): said or {} for name, said in known.items()}
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise AssayError(f'{file} is not valid: {error}') from None


def _found(spack: Spack, system: str) -> dict[str, Any]:
    """What Spack finds by itself."""
    spack.configure()
    file = spack.own / 'etc' / 'spack' / 'packages.yaml'
    # What a site says itself is not looked for.
    folder = paths.SPACK_CONFIG / system
    sites = ['-C', str(folder)] if folder.is_dir() else []
    spack.run(*sites, 'external', 'find', '--scope', spack.scope, *LOOKED_FOR)
    try:
        return _packages_of(file)
    finally:
        file.unlink(missing_ok=True)


def packages(found: dict[str, Any], mpis: Iterable[Mpi]) -> dict[str, Any]:
    """What Spack found, and each MPI in its own prefix."""
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
    return result | {'mpi': {'buildable': False}}


def assert_prepared(system: str) -> None:
    """See that the system has been set up for Spack, and that what it relies on is still there.

    :raises AssayError: if not.
    """
    remedy = f'run `assay spack setup --system {system}`'
    made, sites = packages_file(system), paths.SPACK_CONFIG / system / 'packages.yaml'
    if not made.exists():
        raise AssayError(f'{made} is not there: {remedy}.')
    for file, then in ((made, f'{remedy} again'), (sites, 'correct that file')):
        for package in _packages_of(file).values():
            for external in package.get('externals', []):
                prefix = Path(external.get('prefix', '/'))
                if not prefix.is_dir():
                    raise AssayError(
                        f'{external["spec"]} is no longer in {prefix}, where {file} has it: {then}.'
                    )
