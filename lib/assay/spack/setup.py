"""Telling Spack what a machine has: the ``packages.yaml`` of a system.

Our package is built with the site's BLAS, or where it has none the wheel's.
"""

from __future__ import annotations

import os
import shutil
import sys
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
from assay.tools import ask, output_of_tool

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
        made = packages(_found(spack, system), mpis) | blas_packages(known)
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


#: Spack's packages that are one: a site that has one of them in its own file needs no other.
_PROVIDERS = {
    *('openblas', 'intel-oneapi-mkl', 'amdblis', 'blis', 'flexiblas', 'cray-libsci'),
    *('armpl-gcc', 'acfl', 'nvpl-blas', 'essl', 'fujitsu-ssl2'),
}

#: Whether several threads may call it at once, as sources/common/openblas.h decides it.
_TAKES_THREADS = """
import ctypes, sys
config = ctypes.CDLL(sys.argv[1]).openblas_get_config
config.restype = ctypes.c_char_p
sys.exit(b'SINGLE_THREADED' in config() and b'USE_LOCKING' not in config())
"""


def blas_packages(known: dict[str, Any]) -> dict[str, Any]:
    """What ``packages.yaml`` says of BLAS.

    :param known: the packages in the site's own file.
    """
    everything = known.get('all', {})
    if _PROVIDERS & {*known} or 'blas' in known or 'blas' in everything.get('providers', {}):
        return _wheel()
    if found := _openblas() or _mkl():
        return found | _wheel()
    # Not required: then what a site requires of all packages would not hold for ours.
    return _wheel() | {OURS: {'prefer': ['+openblas_wheel']}}


def _external(package: str, release: str, prefix: Path) -> dict[str, Any]:
    external = {'spec': f'{package}@{release}', 'prefix': str(prefix)}
    return {package: {'externals': [external], 'buildable': False}}


def _openblas() -> dict[str, Any]:
    """What pkg-config knows, of the system or of a loaded module."""
    release, libraries, headers = (
        output_of_tool(['pkg-config', option, 'openblas']).strip()
        for option in ('--modversion', '--variable=libdir', '--variable=includedir')
    )
    library = Path(libraries, 'libopenblas.so')
    if not (release and library.is_file()):
        return {}
    if ask([sys.executable, '-c', _TAKES_THREADS, library]).returncode:
        return {}
    # A prefix of its own: under /usr Spack would take any of several.
    prefix = paths.SPACK / 'blas' / f'openblas-{release}-system'
    prefix.mkdir(parents=True, exist_ok=True)
    for name, target in (('lib', libraries), ('include', headers)):
        (prefix / name).unlink(missing_ok=True)
        (prefix / name).symlink_to(target)
    return _external('openblas', release, prefix)


def _mkl() -> dict[str, Any]:
    """What ``MKLROOT`` names: ``<prefix>/mkl/<version>``, as Spack's package is laid out."""
    root = Path(os.environ.get('MKLROOT', '/nowhere')).resolve()
    if root.parent.name != 'mkl' or not (root / 'lib').is_dir():
        return {}
    return _external('intel-oneapi-mkl', root.name, root.parents[1])


def _wheel() -> dict[str, Any]:
    """A copy of the wheel's: .venv, where that is, is replaced when the locks change."""
    wheel = find_spec('scipy_openblas32')
    assert wheel and wheel.origin, 'requirements.lock has it'
    release = version('scipy-openblas32')
    copied = paths.SPACK / 'blas' / f'scipy-openblas32-{release}'
    if not copied.is_dir():
        draft = copied.with_name(f'{copied.name}.new')  # renamed when it is whole
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(Path(wheel.origin).parent, draft, ignore=lambda *_: ['__pycache__'])
        draft.rename(copied)
    return _external('scipy-openblas32', release, copied)
