"""What Spack builds: each package on each MPI in an environment of Spack's of its own.

Such an environment is under ``.assay/spack``, made from the ``spack.yaml`` of this checkout: what
fails for one leaves the others alone. Installed packages are found by their records.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import AssayError, paths, say
from assay.config import settings
from assay.config.environments import OURS
from assay.files import write_whole
from assay.machine.provenance import checksum
from assay.spack import packages
from assay.spack.lock_file import Build, checksums, compile_flags, from_lock, keep_spec
from assay.spack.setup import assert_prepared
from assay.spack.tool import Spack, SpackError, SpackRefusedError, find_spack, turn

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


class NoBuildError(AssayError):
    """Spack finds no way to build a package, or it does not build."""


def install_package(spack: Spack, system: str, package: str, mpi: str, chosen: str = '') -> Build:
    """Have Spack install a package on an MPI of a system, unless that is done.

    :param chosen: as :class:`Environment` has it.
    :raises AssayError: if it cannot, saying why.
    """
    wanted = Environment(spack, system, package, mpi, chosen)
    if build := wanted.find_installed():
        return build
    with turn(spack):
        if build := wanted.find_installed():
            return build  # by another run, in the meantime
        say(f'Spack installs {wanted.spec} ...')
        wanted.concretize()
        return wanted.install()


def _mark(chosen: str) -> str:
    """What tells names of one choice of packages from those of others; empty for none."""
    told = '; '.join(packages.by_package(chosen).values())
    return f'-{hashlib.sha256(told.encode()).hexdigest()[:12]}' if told else ''


def rehearse(spack: Spack, system: str, package: str, mpi: str) -> str:
    """See whether a package can be built on an MPI here, as far as that shows without building it.

    :returns: its spec.
    :raises AssayError: if not, saying why.
    """
    wanted = Environment(spack, system, package, mpi)
    if not wanted.find_installed():
        with turn(spack):
            wanted.concretize()
            wanted.fetch()
    return wanted.spec


class Environment:
    """An environment of Spack, in its folder. Its contents are right, or are made again.

    :param chosen: what Spack is to choose of packages, each choice in a folder of its own.
    """

    def __init__(self, spack: Spack, system: str, package: str, mpi: str, chosen: str = '') -> None:
        self.spack = spack
        self.package = package
        self.spec = package if package in packages.groups()['without_mpi'] else f'{package} ^{mpi}'
        self.content = packages.environment_file(system, self.spec, chosen)
        self.sources = checksum() if package == OURS else ''
        name = re.sub(r'[^\w.-]+', '-', self.spec)
        self.folder = spack.state / 'environments' / system / f'{name}{_mark(chosen)}'
        self.fingerprint = self._fingerprint(paths.SPACK_CONFIG / system)

    def _fingerprint(self, config: Path) -> str:
        """Changes with everything that the outcome depends on."""
        facts = '\n'.join([str(self.spack), self.content, self.sources])
        digest = hashlib.sha256(facts.encode())
        for folder in (config, paths.RECIPES):
            for path in sorted(folder.rglob('*.*')):
                if path.suffix in ('.py', '.yaml'):
                    digest.update(f'{path}\n'.encode() + path.read_bytes())
        return digest.hexdigest()

    def find_installed(self) -> Build | None:
        """The build that was installed from these very sources, if it still exists."""
        build = self._recorded()
        return None if build is None or build.changed_file() else build

    def _recorded(self) -> Build | None:
        """What was installed from just what there is now, whatever became of it."""
        try:
            record = json.loads((self.folder / 'installed.json').read_text())
            build = Build.from_json(record)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return build if record['fingerprint'] == self.fingerprint else None

    def concretize(self) -> None:
        """Have Spack choose all that the spec leaves open, unless it has.

        :raises NoBuildError: if it finds no way.
        :raises AssayError: if it cannot be asked.
        """
        stamp = self.folder / 'concretized'
        if stamp.exists() and stamp.read_text() == self.fingerprint and self.spack.own.is_dir():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for before in (stamp, self._refusal):
            before.unlink(missing_ok=True)
        self.spack.configure()
        write_whole(self.folder / 'spack.yaml', self.content)
        self._ask('finds no way to build', 'concretize', '--force', '--quiet')
        write_whole(stamp, self.fingerprint)

    def why_refused(self) -> str:
        """Why Spack finds no way to build it, asked once for what there is now; empty for a way.

        :raises AssayError: if it cannot be asked.
        """
        with suppress(OSError):
            fingerprint, _, why = self._refusal.read_text().partition('\n')
            if fingerprint == self.fingerprint:
                return f'{why}; to ask again, remove {self._refusal}'
        try:
            self.concretize()
        except NoBuildError as error:
            write_whole(self._refusal, f'{self.fingerprint}\n{error}')
            return str(error)
        return ''

    @property
    def _refusal(self) -> Path:
        """The file that has the solver's last answer, if it found no way."""
        return self.folder / 'refused'

    def fetch(self) -> None:
        """Have all downloaded that the spec is made from.

        :raises AssayError: if something cannot be.
        """
        self._ask('cannot fetch what it takes for', 'fetch', '--dependencies')

    def install(self) -> Build:
        """Have it built and installed, and write down the result.

        :raises NoBuildError: if it does not build.
        :raises AssayError: if something else fails.
        """
        # Spack refuses what failed before, though the cause may be gone.
        self._ask('cannot install', 'clean', '--failures')
        # Nor does it look whether files that it installed are still what they were.
        recorded = self._recorded()
        again = ['--overwrite', '--yes-to-all'] if recorded and recorded.changed_file() else []
        self._ask('cannot install', 'install', *again)
        prefix = Path(self._ask('has lost', 'location', '--install-dir', self.package).strip())
        found = [
            path
            for part in ('bin', 'lib', 'libexec')
            for path in sorted((prefix / part).rglob('*'))
        ]
        facts = from_lock(json.loads((self.folder / 'spack.lock').read_text()))
        build = Build(
            prefix=prefix,
            sources=self.sources,
            files=checksums(prefix, (path for path in found if path.is_file())),
            provenance=replace(facts, flags=compile_flags(prefix, facts.flags)),
        )
        record = {'fingerprint': self.fingerprint, **build.to_json()}
        write_whole(self.folder / 'installed.json', json.dumps(record, indent=1))
        return build

    def _ask(self, failing: str, *arguments: str) -> str:
        try:
            return self.spack.run('-e', str(self.folder), *arguments)
        except SpackError as error:
            kind = NoBuildError if isinstance(error, SpackRefusedError) else AssayError
            raise kind(f'Spack {failing} {self.spec}: {error}') from None


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


def assert_installable(site: _SiteConfig, system: str, matching: Iterable[str] = ('.*',)) -> None:
    """See, in a second, that Spack can be asked for what :func:`install_for_checks` installs.

    :raises AssayError: if not.
    """
    if wanted := _wanted(site, system, matching):
        _spack_for(system, wanted)


def install_for_checks(
    site: _SiteConfig,
    system: str,
    matching: Iterable[str] = ('.*',),
    chosen: str | None = None,
) -> None:
    """Have installed what Spack builds for each environment, as its features say.

    :param site: the system's configuration, loaded.
    :param matching: expressions: the environments' names match one of them.
    :param chosen: what Spack is to choose of packages; None for those of the environment.
    :raises NoBuildError: if Spack finds no way, or one does not build.
    :raises AssayError: if that cannot be otherwise.
    """
    install_on(site, system, _wanted(site, system, matching), chosen)


def why_not_chosen(site: _SiteConfig, system: str, environment: str, chosen: str) -> str:
    """Why Spack finds no way to build all that an environment has of it; empty if it finds one.

    :param chosen: what it is to choose of packages.
    :raises AssayError: if it cannot be asked.
    """
    wanted = _wanted(site, system, [f'^{re.escape(environment)}$'])
    if not wanted:
        raise AssayError(
            f'no partition of {system} has the environment {environment} now, for which Spack is '
            f'to build'
        )
    spack = _spack_for(system, wanted)
    mpi = mpis(site, system)[environment]
    for _, package in wanted:
        one = Environment(spack, system.partition(':')[0], package, mpi, chosen)
        with turn(spack):
            if why := one.why_refused():
                return why
    return ''


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
    packages.assert_listed(package for _, package in wanted)
    spack = find_spack()
    assert_prepared(system.partition(':')[0])
    return spack


def _packages(features: Iterable[str]) -> Iterator[str]:
    """The packages that an environment's features name: the inverse of :func:`feature`."""
    for name in features:
        if name == 'spack':
            yield OURS
        elif name.startswith('spack-'):
            yield name.removeprefix('spack-')


def install_on(
    site: _SiteConfig,
    system: str,
    wanted: Iterable[tuple[str, str]],
    chosen: str | None = None,
) -> dict[tuple[str, str], Build]:
    """Have packages installed, and tell ReFrame where.

    :param site: the system's configuration, loaded.
    :param wanted: pairs of an environment of ReFrame and a package, which the result is of.
    :param chosen: as in :func:`install_for_checks`.
    :raises AssayError: if one cannot be installed.
    """
    wanted = list(wanted)
    if not wanted:
        return {}
    name = system.partition(':')[0]
    spack = _spack_for(system, wanted)
    on = mpis(site, system)
    chosen = packages.chosen_specs() if chosen is None else chosen
    builds = {
        (environ, package): install_package(spack, name, package, on[environ], chosen)
        for environ, package in wanted
    }
    records = {_key(*pair, chosen): build.to_json() for pair, build in builds.items()}
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
        build = Build.from_json(
            _read(_table(system))[_key(environment, package, packages.chosen_specs())]
        )
    except (KeyError, TypeError, ValueError):
        raise AssayError(f'Spack has built no {package} for {environment}: {remedy}') from None
    if changed := build.changed_file():
        raise AssayError(f'{build.prefix / changed} is not what Spack installed there: {remedy}')
    if package == OURS and build.sources != checksum():
        raise AssayError(f'the sources are not those of {build.prefix}: {remedy}')
    keep_spec(build.prefix, build.provenance.hash)
    return build


def _key(environment: str, package: str, chosen: str) -> str:
    return f'{package} for {environment}{_mark(chosen)}'


def _table(system: str) -> Path:
    return paths.SPACK / 'builds' / f'{system}.json'


def _read(table: Path) -> dict[str, Any]:
    try:
        known: dict[str, Any] = json.loads(table.read_text())
    except (OSError, ValueError):
        return {}
    return known
