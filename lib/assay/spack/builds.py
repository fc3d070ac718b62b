"""What Spack builds for each environment of ReFrame: installed once, then found by its record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import AssayError, paths
from assay.config import settings
from assay.config.environments import OURS
from assay.files import write_whole
from assay.machine.provenance import checksum
from assay.spack.environment import install
from assay.spack.lock_file import keep_spec
from assay.spack.packages import assert_listed
from assay.spack.record import Build
from assay.spack.setup import assert_prepared
from assay.spack.tool import Spack, find_spack, turn

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


def mpis(site: _SiteConfig, system: str) -> dict[str, str]:
    """The MPI, as Spack's spec of it, of each environment of a system that Spack builds for.

    :param site: its configuration, loaded.
    :raises AssayError: if an environment does not say it.
    """
    names = {name for part in site.get('systems/0/partitions') for name in part['environs']}
    found = {}
    for environment in site['environments']:
        name = environment['name']
        if name not in names or 'spack' not in environment.get('features', []):
            continue
        if 'spack' not in environment.get('extras', {}):
            raise AssayError(
                f"{settings.system_file(system)}: environment {name} has the feature 'spack', but "
                f"its extras do not say which MPI that is: {{'spack': 'openmpi@=5.0.8'}}, or so."
            )
        found[name] = environment['extras']['spack']
    return found


def mpis_to_build_for(site: _SiteConfig, system: str) -> list[str]:
    """As :func:`mpis`, each once.

    :raises AssayError: if there is none.
    """
    if found := list(dict.fromkeys(mpis(site, system).values())):
        return found
    raise AssayError(
        f'no environment of {system} is for Spack: give one an MPI first, by `assay run -l` or '
        f'in {settings.system_file(system)}.'
    )


def assert_possible(site: _SiteConfig, system: str, matching: Iterable[str] = ('.*',)) -> None:
    """See, in a second, that Spack can be asked for what :func:`install_for_checks` installs.

    :raises AssayError: if not.
    """
    if wanted := _wanted(site, system, matching):
        _spack_for(system, wanted)


def install_for_checks(site: _SiteConfig, system: str, matching: Iterable[str] = ('.*',)) -> None:
    """Have installed what Spack builds for each environment, as its features say.

    :param site: the system's configuration, loaded.
    :param matching: expressions, one of which the environments' names match.
    :raises AssayError: if that cannot be.
    """
    install_on(site, system, _wanted(site, system, matching))


def _wanted(site: _SiteConfig, system: str, matching: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of an environment of ReFrame and a package that checks of it run."""
    features = {each['name']: each.get('features', []) for each in site['environments']}
    return [
        (environ, package)
        for environ in mpis(site, system)
        if any(re.match(pattern, environ) for pattern in matching)
        for package in _packages(features[environ])
    ]


def _spack_for(system: str, wanted: Iterable[tuple[str, str]]) -> Spack:
    """The Spack that builds for a system, which was set up.

    :raises AssayError: if there is none, or a package is unknown.
    """
    assert_listed(package for _, package in wanted)
    spack = find_spack()
    assert_prepared(system.partition(':')[0])
    return spack


def _packages(features: Iterable[str]) -> Iterator[str]:
    """Those that an environment's features name: the inverse of :func:`feature`."""
    for name in features:
        if name == 'spack':
            yield OURS
        elif name.startswith('spack-'):
            yield name.removeprefix('spack-')


def install_on(
    site: _SiteConfig, system: str, wanted: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Build]:
    """Have packages installed, and tell ReFrame where.

    :param site: the system's configuration, loaded.
    :param wanted: pairs of an environment of ReFrame and a package, which the result is of.
    :raises AssayError: if one cannot be installed.
    """
    wanted = list(wanted)
    if not wanted:
        return {}
    name = system.partition(':')[0]
    spack = _spack_for(system, wanted)
    on = mpis(site, system)
    builds = {
        (environ, package): install(spack, name, package, on[environ])
        for environ, package in wanted
    }
    records = {_key(*pair): build.to_json() for pair, build in builds.items()}
    table = _table(name)
    # Those of other runs stay.
    if (known := _read(table)) != {**known, **records}:
        with turn(spack):
            table.parent.mkdir(exist_ok=True)
            write_whole(table, json.dumps({**_read(table), **records}, indent=1))
    return builds


def build_of(system: str, environment: str, package: str = OURS) -> Build:
    """What Spack has installed for an environment, if it is there and of today's sources.

    Its spec is kept with the history, where what is measured of it will be.

    :raises AssayError: if not.
    """
    remedy = f'run `assay spack install {package} --system {system}`'
    try:
        build = Build.from_json(_read(_table(system))[_key(environment, package)])
    except (KeyError, TypeError, ValueError):
        raise AssayError(f'Spack has built no {package} for {environment}: {remedy}') from None
    if changed := build.changed():
        raise AssayError(f'{build.prefix / changed} is not what Spack installed there: {remedy}')
    if package == OURS and build.sources != checksum():
        raise AssayError(f'the sources are not those of {build.prefix}: {remedy}')
    keep_spec(build.prefix, build.provenance.hash)
    return build


def _key(environment: str, package: str) -> str:
    return f'{package} for {environment}'


def _table(system: str) -> Path:
    return paths.SPACK / 'builds' / f'{system}.json'


def _read(table: Path) -> dict[str, Any]:
    try:
        known: dict[str, Any] = json.loads(table.read_text())
    except (OSError, ValueError):
        return {}
    return known
