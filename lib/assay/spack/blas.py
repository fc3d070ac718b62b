"""Which BLAS our package is built with by Spack: the site's, or where it has none the wheel's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from assay import paths
from assay.config.environments import OURS

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


def packages(known: dict[str, Any]) -> dict[str, Any]:
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
        _pkg_config(option, 'openblas')
        for option in ('--modversion', '--variable=libdir', '--variable=includedir')
    )
    library = Path(libraries, 'libopenblas.so')
    if not (release and library.is_file()):
        return {}
    asked = [sys.executable, '-c', _TAKES_THREADS, str(library)]
    if subprocess.run(asked, stderr=subprocess.DEVNULL).returncode:
        return {}
    # A prefix of its own: under /usr Spack would take any of several.
    prefix = paths.SPACK / 'blas' / f'openblas-{release}-system'
    prefix.mkdir(parents=True, exist_ok=True)
    for name, target in (('lib', libraries), ('include', headers)):
        (prefix / name).unlink(missing_ok=True)
        (prefix / name).symlink_to(target)
    return _external('openblas', release, prefix)


def _pkg_config(*arguments: str) -> str:
    """Its answer, empty where there is none."""
    try:
        asked = subprocess.run(['pkg-config', *arguments], capture_output=True, text=True)
    except FileNotFoundError:
        return ''
    return '' if asked.returncode else asked.stdout.strip()


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
